package scenario

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/bidder"
)

// agents reads a list such as [{strategy: honest, share: 90%}, {name: liars, strategy: inflate, share: 10%}].
func (s *Scenario) agents(v strict.Value) {
	total := int64(0)
	for _, e := range v.List("a list of agents such as [{strategy: honest, share: 100%, think: 5ms}]", 100) {
		o := e.Object("name", "strategy", "by", "share", "think")
		strategy := o.Need("strategy", "honest")
		kind, known := bidder.Find(strategy.Text("a strategy such as honest", "honest"))
		if !known {
			strategy.Wrong("there is no strategy %q; %s", strategy.Text("", ""), strict.Hint(strategy.Text("", ""), bidder.Names()))
		}
		a := Agents{
			Name: o.Get("name").Label(kind.Name), Strategy: kind, By: kind.By,
			Share: o.Get("share").Fraction(AllShares, 0, AllShares, 0), Think: o.Get("think").Duration(0, time.Minute, time.Millisecond),
		}
		if by := o.Get("by"); by.Given() && kind.By == 0 {
			by.Wrong("the strategy %s has no number; leave it out", kind.Name)
		} else if by.Given() {
			a.By = int64(by.Real(0, 1000, 1) * 1000)
		}
		if a.Name == Own {
			e.Wrong("is called %s, which stands for jobs without an agent", Own)
		}
		if known && s.AgentsOf(a.Name) != nil {
			e.Wrong("there are agents %s already; give each a name of its own", a.Name)
		}
		if total += a.Share; total > AllShares {
			o.Get("share").Wrong("makes the shares add up to more than all jobs")
		}
		s.Workload.Agents = append(s.Workload.Agents, a)
	}
}

// AgentsOf are the agents of a name, nil if there are none.
func (s *Scenario) AgentsOf(name string) *Agents {
	i := slices.IndexFunc(s.Workload.Agents, func(a Agents) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Workload.Agents[i]
}

// agentName reads the name of the agents that bid for a job or a stream of jobs; empty: the shares decide.
func (s *Scenario) agentName(v strict.Value) string {
	name := v.Label("")
	if name == "" || name == Own || s.AgentsOf(name) != nil {
		return name
	}
	known := []string{Own}
	for i := range s.Workload.Agents {
		known = append(known, s.Workload.Agents[i].Name)
	}
	v.Wrong("there are no agents %q; %s", name, strict.Hint(name, known))
	return ""
}

// groups are the groups of jobs of which figures are given, sorted by name; none where nobody has an agent.
func (s *Scenario) groups() (out []string) {
	for i := range s.Workload.Agents {
		out = append(out, s.Workload.Agents[i].Name)
	}
	if len(out) > 0 {
		out = append(out, Own)
	}
	slices.Sort(out)
	return out
}
