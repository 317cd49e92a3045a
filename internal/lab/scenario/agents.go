package scenario

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/bidder"
	"sluice.dev/sluice/internal/lab/sim"
	"sluice.dev/sluice/internal/lab/workload"
)

// Agents are the agents of external jobs of one kind. Its jobs are a group of which figures are given.
type Agents struct {
	// Name of the group: that of the strategy if none was given.
	Name     string
	Strategy bidder.Kind
	// By is the strategy's number, in parts per thousand.
	By int64
	// Share of the divisible jobs that do not say who bids for them, in parts per million.
	Share int64
	// Think is how long an agent thinks before it answers.
	Think time.Duration
}

// Own is the group of the divisible jobs that answer for themselves, in a scenario in which others have agents.
const Own = "own"

// allShares is a share of all.
const allShares = 1_000_000

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
			Share: o.Get("share").Fraction(allShares, 0, allShares, 0), Think: o.Get("think").Duration(0, time.Minute, time.Millisecond),
		}
		if by := o.Get("by"); by.Given() && kind.By == 0 {
			by.Wrong("the strategy %s has no number; leave it out", kind.Name)
		} else if by.Given() {
			a.By = int64(by.Real(0, 1000, 1) * 1000)
		}
		if a.Name == Own {
			e.Wrong("is called %s, which stands for jobs without an agent", Own)
		}
		if known && s.agentsOf(a.Name) != nil {
			e.Wrong("there are agents %s already; give each a name of its own", a.Name)
		}
		if total += a.Share; total > allShares {
			o.Get("share").Wrong("makes the shares add up to more than all jobs")
		}
		s.Workload.Agents = append(s.Workload.Agents, a)
	}
}

// agentsOf are the agents of a name, nil if there are none.
func (s *Scenario) agentsOf(name string) *Agents {
	i := slices.IndexFunc(s.Workload.Agents, func(a Agents) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Workload.Agents[i]
}

// agentName reads the name of the agents that bid for a job or a stream of jobs; empty: the shares decide.
func (s *Scenario) agentName(v strict.Value) string {
	name := v.Label("")
	if name == "" || name == Own || s.agentsOf(name) != nil {
		return name
	}
	known := []string{Own}
	for i := range s.Workload.Agents {
		known = append(known, s.Workload.Agents[i].Name)
	}
	v.Wrong("there are no agents %q; %s", name, strict.Hint(name, known))
	return ""
}

// assign says who bids for a job: as it says itself in its group, else as the shares have it. The jobs of a smaller share
// are among those of a larger one.
func (o *offered) assign(j *workload.Job) {
	if len(o.agents) == 0 {
		return
	}
	if j.Kind == job.Rigid {
		j.Group = ""
		return
	}
	if j.Group == "" {
		j.Group = Own
		draw := prng.New(o.seed, prng.Name("agents"), uint64(j.Number))
		at := int64(draw.IntN(allShares))
		for i := range o.agents {
			if at -= o.agents[i].Share; at < 0 {
				j.Group = o.agents[i].Name
				break
			}
		}
	}
	j.External = j.Group != Own
}

// bidders makes the agents of a run. Those of one name share their strategy.
func (s *Scenario) bidders() sim.Agents {
	strategies := map[string]bidder.Strategy{}
	return func(j *workload.Job, spec *job.Spec) sim.Agent {
		a := s.agentsOf(j.Group)
		if strategies[a.Name] == nil {
			strategies[a.Name] = a.Strategy.New(a.By)
		}
		return bidder.New(spec, strategies[a.Name], a.Think)
	}
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
