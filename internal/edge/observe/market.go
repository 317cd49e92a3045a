package observe

import (
	"github.com/prometheus/client_golang/prometheus"

	"sluice.dev/sluice/internal/core/market/score"
	"sluice.dev/sluice/internal/core/status"
)

// market turns the counts of a market that negotiates into counters. Under another mechanism they stay at 0.
type market struct {
	last  status.Negotiation
	tally []tally
}

// tally is one counter and what it counts.
type tally struct {
	of      func(*status.Negotiation) int64
	counter prometheus.Counter
}

func newMarket(r *prometheus.Registry) market {
	var m market
	counter := func(name, help string, of func(*status.Negotiation) int64) {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		r.MustRegister(c)
		m.tally = append(m.tally, tally{of, c})
	}
	counter("sluice_market_rounds_total", "Rounds that were cleared.", func(n *status.Negotiation) int64 { return n.Rounds })
	counter("sluice_market_calls_total", "Rounds announced to the agent of an external job, one for each agent.",
		func(n *status.Negotiation) int64 { return n.Calls })
	counter("sluice_market_answers_total", "Answers of agents that came in time.", func(n *status.Negotiation) int64 { return n.Answers })
	counter("sluice_market_missed_total", "Rounds that closed without the answer of an agent that was asked.",
		func(n *status.Negotiation) int64 { return n.Missed })
	counter("sluice_market_variants_total", "Variants that were looked at, of jobs of all kinds.",
		func(n *status.Negotiation) int64 { return n.Variants })
	counter("sluice_market_denied_total", "Variants that broke a rule.", func(n *status.Negotiation) int64 { return n.Denied })
	counter("sluice_market_awards_total", "Variants that were sold.", func(n *status.Negotiation) int64 { return n.Awards })
	counter("sluice_market_declined_total", "Times that a job which the policy picked (mechanism sja) cut no piece that fits, and the "+
		"next in order was asked.", func(n *status.Negotiation) int64 { return n.Declined })
	counter("sluice_market_planned_total", "Variants that were part of a plan and began too late to be sold.",
		func(n *status.Negotiation) int64 { return n.Planned })
	counter("sluice_market_withdrawn_total", "Subjobs withdrawn before they began, for something better.",
		func(n *status.Negotiation) int64 { return n.Withdrawn })
	joint := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_market_joint_weight_total", Help: "Of windows cleared together: the weight that won, the bound that no plan " +
			"passes, and what clearing them one after another would have lost.",
	}, []string{"plan"})
	r.MustRegister(joint)
	for plan, of := range map[string]func(*status.Negotiation) int64{
		"won": func(n *status.Negotiation) int64 { return n.Value }, "bound": func(n *status.Negotiation) int64 { return n.Bound },
		"regret": func(n *status.Negotiation) int64 { return n.Regret },
	} {
		m.tally = append(m.tally, tally{of, inScore{joint.WithLabelValues(plan)}})
	}
	return m
}

// inScore counts millionths as scores.
type inScore struct{ prometheus.Counter }

func (c inScore) Add(millionths float64) { c.Counter.Add(millionths / score.One) }

// count adds what has come since it was last called. What went down, such as a regret below 0, is not counted.
func (m *market) count(n status.Negotiation) {
	if n == m.last {
		return
	}
	for _, t := range m.tally {
		t.counter.Add(float64(max(0, t.of(&n)-t.of(&m.last))))
	}
	m.last = n
}
