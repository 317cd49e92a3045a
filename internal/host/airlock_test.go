package host

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// strained is a node that says what was put into it.
type strained struct {
	toyNode
	lock status.Airlock
}

func (n *strained) Strain(quantity.Instant) status.Strain   { return n.lock.Strain }
func (n *strained) Airlock(quantity.Instant) status.Airlock { return n.lock }
func (n *strained) AirlockSteps(id job.ID, g job.Generation) (out []status.AirlockStep) {
	for _, s := range n.lock.Steps {
		if s.Job == id && s.Generation == g {
			out = append(out, s)
		}
	}
	return out
}

// explaining is a zone that knows one job in its second life.
type explaining struct{ toyZone }

func (z *explaining) Explain(_ quantity.Instant, id job.ID) (e status.Explanation, ok bool) {
	e.Job = status.Job{Name: id, Generation: 2}
	return e, true
}

type secondLife struct{ toyGate }

func (*secondLife) Life(job.ID) job.Generation { return 2 }

// TestAirlocksOfAllNodes: each with what can be done on this machine, a job's steps in the order of time, and the sums as metrics.
func TestAirlocksOfAllNodes(t *testing.T) {
	step := func(at quantity.Instant, what string, g job.Generation) status.AirlockStep {
		return status.AirlockStep{At: at, Step: what, Job: "j", Generation: g}
	}
	one, two := &strained{}, &strained{}
	one.lock = status.Airlock{Node: "n-1", Strain: status.Strain{MemoryReading: status.MemoryReading{Level: "severe", Used: 93,
		Capacity: 100}, Standing: 1, Suspended: 2, Stood: 3 * time.Second, OverLine: time.Second},
		Steps: []status.AirlockStep{step(5, "suspended", 1), step(10, "suspended", 2), step(30, "ended", 2)}}
	two.lock = status.Airlock{Node: "n-2", Strain: status.Strain{MemoryReading: one.lock.Strain.MemoryReading, Standing: 1, Suspended: 1,
		Reclaimed: 4, Stood: time.Second, OverLine: 2 * time.Second},
		Steps: []status.AirlockStep{step(20, "recovered", 2)}}
	r := newRig(t)
	r.options = func(o *Options) {
		o.Inventory, o.Guard = gpus{ids: []job.SliceID{"gpu0", "gpu1"}}, status.Guard{Level: "freeze-only", Kind: "tree", Why: "signals"}
	}
	r.actors = func() actor.Set {
		return actor.Set{
			Gates: actor.OneGate(&secondLife{}), Zones: []actor.ZoneAt{{ID: "z", Zone: &explaining{}}},
			Nodes: []actor.NodeAt{{ID: "n-1", Zone: "z", Node: one}, {ID: "n-2", Zone: "z", Node: two}},
		}
	}
	h, _ := r.start(t)
	list, err := h.Airlocks(t.Context())
	if err != nil || len(list) != 2 || list[0].Guard.Kind != "tree" || list[1].Node != "n-2" || list[1].Guard.Level != "freeze-only" {
		t.Errorf("%+v, %v", list, err)
	}
	e, err := h.Explain(t.Context(), "j")
	var steps []string
	for _, s := range e.AirlockSteps {
		steps = append(steps, s.Step)
	}
	if got := strings.Join(steps, " "); err != nil || got != "suspended recovered ended" {
		t.Errorf("the job has endured %s, %v", got, err)
	}
	w := httptest.NewRecorder()
	h.Monitor().Metrics.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	body, _ := io.ReadAll(w.Body)
	for _, want := range []string{
		`sluice_airlock_suspended_subjobs 2`, `sluice_airlock_subjobs_total{outcome="suspended"} 3`,
		`sluice_airlock_subjobs_total{outcome="reclaimed"} 4`,
		`sluice_airlock_suspended_seconds_total 4`, `sluice_airlock_over_line_seconds_total 2`, `sluice_memory_used_bytes 93`,
		`sluice_airlock_state{state="severe"} 1`,
	} {
		if !strings.Contains(string(body), "\n"+want+"\n") {
			t.Errorf("no %s", want)
		}
	}
}
