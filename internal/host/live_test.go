package host

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/inventory"
)

// tidal is an inventory whose slices come and go, and some of whose slices are held by others.
type tidal struct {
	fixed
	mu   sync.Mutex
	ids  []job.SliceID
	tell chan tide
}

// tide is what a tidal inventory sees next; ids: which slices there are from then on.
type tide struct {
	inventory.Sighting
	ids []job.SliceID
}

func (v *tidal) Slices(context.Context) (list []protocol.Slice, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, id := range v.ids {
		list = append(list, protocol.Slice{ID: id})
	}
	return list, nil
}

func (v *tidal) Held() []inventory.Sighting {
	return []inventory.Sighting{{Slice: "gpu1", Closures: []protocol.Reservation{{Kind: protocol.ForForeign, End: 77}}}}
}

func (v *tidal) Watch(ctx context.Context, _ func(job.SliceID, int) bool, report func(inventory.Sighting)) error {
	for {
		select {
		case next := <-v.tell:
			if next.Restocked {
				v.become(next.ids)
			}
			report(next.Sighting)
		case <-ctx.Done():
			return nil
		}
	}
}

func (v *tidal) become(ids []job.SliceID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ids = ids
}

// lines is what a node was told of slices and of what others hold, one message each.
func (n *heardBy) lines() (list []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.told {
		switch b := m.Body.(type) {
		case *protocol.Stock:
			var ids []job.SliceID
			for _, s := range b.Slices {
				ids = append(ids, s.ID)
			}
			list = append(list, fmt.Sprint("there are ", ids))
		case *protocol.Intrusion:
			list = append(list, fmt.Sprintf("of %s are held %d", b.Slice, len(b.Closures)))
		case *protocol.Condition:
			list = append(list, fmt.Sprint("unhealthy: ", b.Unhealthy))
		}
	}
	return list
}

// Cuts of a slice that it was told of last is itself; of any other it knows nothing.
func (n *heardBy) Cuts(_ quantity.Instant, r protocol.Reservation) ([]status.Cut, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := len(n.told) - 1; i >= 0; i-- {
		if b, ok := n.told[i].Body.(*protocol.Stock); ok {
			if slices.ContainsFunc(b.Slices, func(s protocol.Slice) bool { return s.ID == r.Slice }) {
				return []status.Cut{{Slice: r.Slice}}, nil
			}
			break
		}
	}
	return nil, errkind.Errorf(errkind.NotFound, "no slice %s", r.Slice)
}

// TestSlicesComeAndGoWhileItRuns: each node hears what others hold before it offers anything, and which of its slices there are whenever
// that changes. A GPU stays with its node.
func TestSlicesComeAndGoWhileItRuns(t *testing.T) {
	r, _, nodes := severalRig(t)
	inv := &tidal{ids: []job.SliceID{"gpu0", "gpu1"}, tell: make(chan tide)}
	r.options = func(o *Options) { o.Inventory = inv } // Ours is not set: there are no processes to look for
	h, stop := r.start(t)
	for _, next := range []tide{
		{Sighting: inventory.Sighting{Slice: "gpu2", Closures: []protocol.Reservation{{Kind: protocol.ForDrain},
			{Kind: protocol.ForForeign}}}},
		{Sighting: inventory.Sighting{Restocked: true}, ids: []job.SliceID{"gpu1", "gpu3"}},
		{Sighting: inventory.Sighting{Restocked: true}, ids: []job.SliceID{"gpu0", "gpu1", "gpu2"}},
		{Sighting: inventory.Sighting{Condition: &protocol.Condition{Unhealthy: true, Text: "nobody answers"}}},
	} {
		inv.tell <- next
	}
	want := [2][]string{
		{"there are [n-1/gpu0]", "of n-1/gpu2 are held 2", "there are []", "there are [n-1/gpu0 n-1/gpu2]", "unhealthy: true"},
		{"of n-2/gpu1 are held 1", "there are [n-2/gpu1]", "there are [n-2/gpu1 n-2/gpu3]", "there are [n-2/gpu1]", "unhealthy: true"},
	}
	for range 20000 {
		if len(nodes[0].lines()) >= len(want[0]) && len(nodes[1].lines()) >= len(want[1]) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if s, ok := h.daemon.machine.Slice("n-1/gpu2"); !ok || s.ID != "n-1/gpu2" || h.daemon.machine.Full("gpu2") != "n-1/gpu2" {
		t.Errorf("the new one is %+v, %v", s, ok)
	}
	if _, ok := h.daemon.machine.Slice("n-2/gpu3"); ok {
		t.Error("what is gone is still there")
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	for i, n := range nodes {
		if got := n.lines(); !slices.Equal(got, want[i]) {
			t.Errorf("node %d heard\n%q, want\n%q", i+1, got, want[i])
		}
	}
}
