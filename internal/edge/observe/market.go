package observe

import (
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/status"
)

// market turns the counts of a market that negotiates into counters. Under another mechanism they stay at 0.
type market struct {
	last  status.Negotiation
	shown []shown[status.Negotiation]
}

func newMarket(f factory) (m market) {
	counter := func(name, help string, of func(*status.Negotiation) int64) {
		m.shown = append(m.shown, shown[status.Negotiation]{
			of: func(n *status.Negotiation) float64 { return float64(of(n)) }, counter: f.counter(name, help),
		})
	}
	counter("sluice_market_rounds_total", "Rounds that were cleared.", func(n *status.Negotiation) int64 { return n.Rounds })
	counter("sluice_market_agent_calls_total", "Rounds announced to the agent of an external job, one for each agent.",
		func(n *status.Negotiation) int64 { return n.Calls })
	counter("sluice_market_agent_answers_total", "Answers of agents that came in time.",
		func(n *status.Negotiation) int64 { return n.Answers })
	counter("sluice_market_agent_misses_total", "Rounds that closed without the answer of an agent that was asked.",
		func(n *status.Negotiation) int64 { return n.Missed })
	counter("sluice_market_variants_total", "Variants that were looked at, of jobs of all kinds.",
		func(n *status.Negotiation) int64 { return n.Variants })
	counter("sluice_market_variants_denied_total", "Variants that broke a rule.", func(n *status.Negotiation) int64 { return n.Denied })
	counter("sluice_market_awards_total", "Variants that were sold.", func(n *status.Negotiation) int64 { return n.Awards })
	counter("sluice_market_picks_declined_total", "Times that a job which the policy picked (mechanism sja) cut no piece that fits, "+
		"and the next in order was asked.", func(n *status.Negotiation) int64 { return n.Declined })
	counter("sluice_market_variants_planned_total", "Variants that were part of a plan and began too late to be sold.",
		func(n *status.Negotiation) int64 { return n.Planned })
	counter("sluice_market_subjobs_withdrawn_total", "Subjobs withdrawn before they began, for something better.",
		func(n *status.Negotiation) int64 { return n.Withdrawn })
	joint := f.counters("sluice_market_joint_weight_total", "Of windows cleared together: the weight that won, the bound that no plan "+
		"passes, and what clearing them one after another would have lost.", "plan")
	for plan, millionths := range map[string]func(*status.Negotiation) int64{
		"won": func(n *status.Negotiation) int64 { return n.Value }, "bound": func(n *status.Negotiation) int64 { return n.Bound },
		"regret": func(n *status.Negotiation) int64 { return n.Regret },
	} {
		m.shown = append(m.shown, shown[status.Negotiation]{
			of:      func(n *status.Negotiation) float64 { return float64(millionths(n)) / score.One },
			counter: joint.WithLabelValues(plan),
		})
	}
	return m
}

// count adds what has come since it was last called.
func (m *market) count(n status.Negotiation) {
	if n == m.last {
		return
	}
	for _, s := range m.shown {
		s.show(&n, &m.last)
	}
	m.last = n
}
