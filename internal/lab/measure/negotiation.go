package measure

// Negotiation is what the market of a run has done, over the whole run.
type Negotiation struct {
	// Rounds cleared, one for each window in each; Calls to agents, and how many they Missed to answer in time.
	Rounds, Calls, Missed int64
	// Variants that were looked at; Denied for breaking a rule, looked at or not.
	Variants, Denied int64
	// Awards are the subjobs sold in a round, Withdrawn those of them that were taken back before they began.
	Awards, Withdrawn int64
	// Weight is the sum of what awards were cleared with: scores, or scores times milliseconds where a market weighs by time.
	Weight float64
	// Of windows cleared together: the Value of what was sold, the Bound that no plan passes, and the Regret: what clearing the
	// same windows one after another would have lost.
	Value, Bound, Regret int64
	// Waits of jobs with a predicted range, and how many ended Sooner or Later than that; of every mechanism with a zone.
	Waits, Sooner, Later int64
	// Kept are subjobs that were sold on a learned end of their gap, CutShort those of them that it cut short.
	Kept, CutShort int64
	// AgentMessages went from and to agents of external jobs.
	AgentMessages int64
}

// Set gives the metrics; messages are those between all parties over the whole run, agents included.
func (n *Negotiation) Set(m *Metrics, messages int64) {
	awards := float64(n.Awards)
	m.Set(Rounds, float64(n.Rounds))
	m.Set(Awards, awards)
	m.Set(MessagesPerAward, ratio(float64(messages), awards))
	m.Set(AgentMessagesPerAward, ratio(float64(n.AgentMessages), awards))
	m.Set(VariantsPerAward, ratio(float64(n.Variants), awards))
	m.Set(DeniedPerAward, ratio(float64(n.Denied), awards))
	m.Set(MissedShare, ratio(float64(n.Missed), float64(n.Calls)))
	m.Set(WithdrawnShare, ratio(float64(n.Withdrawn), awards))
	m.Set(ClearingMean, ratio(n.Weight/1e6, awards))
	m.Set(JointGain, ratio(float64(n.Regret), float64(n.Value)))
	m.Set(ClearedShare, ratio(float64(n.Value), float64(n.Bound)))
}
