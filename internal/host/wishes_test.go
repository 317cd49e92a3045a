package host

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// wished is a node at which somebody waits, as was put into it.
type wished struct {
	toyNode
	reclaims status.Reclaims
	waits    []status.HostWait
}

func (n *wished) Reclaims(quantity.Instant) status.Reclaims { return n.reclaims }

func (n *wished) HostWaits(after uint64) []status.HostWait {
	return n.waits[min(int(after), len(n.waits)):]
} //nolint:gosec // a few

// TestWishesOfAllNodes: a job is told of what was decided about its present life, in the order of time, and the list has all who wait.
func TestWishesOfAllNodes(t *testing.T) {
	step := func(at quantity.Instant, what string, name job.ID, g job.Generation) status.ReclaimStep {
		return status.ReclaimStep{At: at, Step: what, Job: name, Generation: g}
	}
	one, two := &wished{}, &wished{}
	one.reclaims = status.Reclaims{Wishes: []status.Wish{{ID: "p"}}, Steps: []status.ReclaimStep{step(5, "spared", "j", 1),
		step(10, "spared", "j", 2), step(12, "truncated", "other", 2), step(30, "truncated", "j", 2)}}
	two.reclaims = status.Reclaims{Wishes: []status.Wish{{ID: "q"}}, Steps: []status.ReclaimStep{step(20, "chosen", "j", 2)}}
	r := newRig(t)
	r.options = func(o *Options) { o.Inventory = gpus{ids: []job.SliceID{"gpu0", "gpu1"}} }
	r.actors = func() actor.Set {
		return actor.Set{
			Gates: actor.OneGate(&secondLife{}), Zones: []actor.ZoneAt{{ID: "z", Zone: &explaining{}}},
			Nodes: []actor.NodeAt{{ID: "n-1", Zone: "z", Node: one}, {ID: "n-2", Zone: "z", Node: two}},
		}
	}
	h, _ := r.start(t)
	if list, err := h.Wishes(t.Context()); err != nil || len(list) != 2 || list[0].ID != "p" || list[1].ID != "q" {
		t.Errorf("%+v, %v", list, err)
	}
	e, err := h.Explain(t.Context(), "j")
	if err != nil || len(e.Reclaims) != 3 || e.Reclaims[0].Step != "spared" || e.Reclaims[1].Step != "chosen" ||
		e.Reclaims[2].Step != "truncated" {
		t.Errorf("the job is told %+v, %v", e.Reclaims, err)
	}
}

// TestWaitsOfAllNodesAreCountedOnce, however often the loop turns and whoever asks for them.
func TestWaitsOfAllNodesAreCountedOnce(t *testing.T) {
	wait := func(n uint64, of job.NodeID, pool string) status.HostWait {
		return status.HostWait{Number: n, Node: of, Pool: pool, From: 0, Until: quantity.Instant(2 * time.Second)}
	}
	one := &wished{waits: []status.HostWait{wait(1, "n-1", "mig"), wait(2, "n-1", "mig")}}
	two := &wished{waits: []status.HostWait{wait(1, "n-2", "whole")}}
	r := newRig(t)
	r.options = func(o *Options) { o.Inventory = gpus{ids: []job.SliceID{"gpu0", "gpu1"}} }
	r.actors = func() actor.Set {
		return actor.Set{
			Gates: actor.OneGate(&secondLife{}), Zones: []actor.ZoneAt{{ID: "z", Zone: &explaining{}}},
			Nodes: []actor.NodeAt{{ID: "n-1", Zone: "z", Node: one}, {ID: "n-2", Zone: "z", Node: two}},
		}
	}
	h, _ := r.start(t)
	for after, want := range map[uint64]int{0: 3, 1: 2, 2: 1} {
		list, err := h.Monitor().HostWaits(t.Context(), map[job.NodeID]uint64{"n-1": after})
		if err != nil || len(list) != want {
			t.Errorf("after %d of one node there are %+v, %v", after, list, err)
		}
	}
	w := httptest.NewRecorder()
	h.Monitor().Metrics.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for _, line := range []string{`sluice_host_wait_seconds_sum{pool="mig"} 4`, `sluice_host_wait_seconds_count{pool="whole"} 1`} {
		if !strings.Contains(w.Body.String(), line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
}
