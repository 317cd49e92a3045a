package main

import (
	"context"
	"reflect"
	"sync"

	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
	"sluice.dev/sluice/internal/lab/scenario/play"
)

// memory of what has run: studies share the setting from which they depart, and the same scenario, mechanism and seed give
// the same figures. Different scenarios may run at once.
type memory struct {
	data *play.Traces
	mu   sync.Mutex
	past []remembered
}

type remembered struct {
	scenario *scenario.Scenario
	runs     map[string]map[uint64]outcome.Result
}

// run is play.Run, without what has run before.
func (m *memory) run(ctx context.Context, o play.Options) (runs []outcome.Result, err error) {
	known := m.of(o.Scenario)
	all := o.Mechanisms
	o.Mechanisms = nil
	for _, x := range all {
		for _, seed := range o.Seeds {
			if _, ran := known[x.Name][seed]; !ran {
				o.Mechanisms = append(o.Mechanisms, x)
				break
			}
		}
	}
	if len(o.Mechanisms) > 0 {
		fresh, err := play.Run(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, r := range fresh {
			if known[r.Mechanism] == nil {
				known[r.Mechanism] = map[uint64]outcome.Result{}
			}
			known[r.Mechanism][r.Seed] = r
		}
	}
	for _, x := range all {
		for _, seed := range o.Seeds {
			if r, ran := known[x.Name][seed]; ran {
				runs = append(runs, r)
			}
		}
	}
	return runs, nil
}

// of are the runs of a scenario so far, by mechanism and seed.
func (m *memory) of(s *scenario.Scenario) map[string]map[uint64]outcome.Result {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.past {
		if reflect.DeepEqual(m.past[i].scenario, s) {
			return m.past[i].runs
		}
	}
	runs := map[string]map[uint64]outcome.Result{}
	m.past = append(m.past, remembered{s, runs})
	return runs
}
