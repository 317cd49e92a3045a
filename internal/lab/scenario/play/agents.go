package play

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/lab/bidder"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/sim"
	"sluice.dev/sluice/internal/lab/workload"
)

// bidders makes the agents of a run. Those of one name share their strategy.
func bidders(s *scenario.Scenario) sim.Agents {
	strategies := map[string]bidder.Strategy{}
	return func(j *workload.Job, spec *job.Spec) sim.Agent {
		a := s.AgentsOf(j.Group)
		if strategies[a.Name] == nil {
			strategies[a.Name] = a.Strategy.New(a.By)
		}
		return bidder.New(spec, strategies[a.Name], a.Think)
	}
}
