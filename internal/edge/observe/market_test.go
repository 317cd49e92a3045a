package observe

import (
	"testing"

	"sluice.dev/sluice/internal/core/status"
)

// TestMarket: counters grow by what the market has done since they were last told, and never fall.
func TestMarket(t *testing.T) {
	o := New(Options{})
	expect(t, scrape(t, o), `sluice_market_rounds_total 0`, `sluice_market_joint_weight_total{plan="won"} 0`)
	n := status.Negotiation{
		Rounds: 3, Calls: 200, Answers: 198, Missed: 2, Variants: 790, Denied: 5, Awards: 4, Planned: 1, Withdrawn: 1, Value: 2_500_000,
		Bound: 3_000_000, Regret: 500_000,
	}
	for range 3 { // being told again changes nothing
		o.Negotiated(n)
	}
	n.Rounds, n.Awards, n.Regret = 4, 6, 400_000
	o.Negotiated(n)
	expect(t, scrape(t, o),
		`sluice_market_rounds_total 4`,
		`sluice_market_agent_calls_total 200`,
		`sluice_market_agent_answers_total 198`,
		`sluice_market_agent_misses_total 2`,
		`sluice_market_variants_total 790`,
		`sluice_market_variants_denied_total 5`,
		`sluice_market_awards_total 6`,
		`sluice_market_variants_planned_total 1`,
		`sluice_market_subjobs_withdrawn_total 1`,
		`sluice_market_joint_weight_total{plan="won"} 2.5`,
		`sluice_market_joint_weight_total{plan="bound"} 3`,
		`sluice_market_joint_weight_total{plan="regret"} 0.5`)
}
