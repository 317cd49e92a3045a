package zone

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestAPlaceThatHoldsNoPieceIsNotAskedFor: should a rigid job's place be too short for what it would run there, nothing is asked
// for, rather than an empty range, which nobody can be sold; and it is looked at again.
func TestAPlaceThatHoldsNoPieceIsNotAskedFor(t *testing.T) {
	const now = quantity.Instant(time.Second)
	z, err := New(Config{ID: "z", Policy: fifo.Policy{}})
	if err != nil {
		t.Fatal(err)
	}
	spec := &job.Spec{
		Name: "a", Queue: "default", Kind: job.Rigid, Total: 1, Grid: 1, Parallelism: 1, Walltime: time.Minute, MaxFailures: 3, Deadline: quantity.Never,
		Safe: trp.Table{Bounds: []int64{1}, Least: [][]quantity.Amount{{1 << 20}}},
	}
	var out protocol.Out
	z.Step(now, protocol.Message{Kind: protocol.Offer, Epoch: 1, View: &protocol.SliceView{
		Slice: protocol.Slice{ID: "s", Capacity: trp.Vector{1 << 30}, Speed: 1000}, Node: "n", Version: 1,
	}}, &out)
	z.Step(now, protocol.Message{Kind: protocol.Adopt, Job: "a", Epoch: 1, Spec: spec, At: now}, &out)
	for _, c := range []struct {
		length time.Duration
		asked  bool
	}{{atomizer.RigidLength(spec, 1000) - 1, false}, {atomizer.RigidLength(spec, 1000), true}} {
		out.Reset()
		s := z.jobs["a"]
		s.rigid.refusedAt, z.replan = 0, false
		h := head{job: s, place: place{slices: []*slice{z.slice("s")}, start: now, end: now.Add(c.length), speed: 1000}}
		again := z.start(now, &h, &out)
		if c.asked != (len(z.asks) == 1) || c.asked != (len(out.Effects) == 1) {
			t.Errorf("a place of %v: asked for %d pieces", c.length, len(z.asks))
		}
		for _, a := range z.asks {
			if a.piece.Range.Empty() {
				t.Errorf("a place of %v: asked for %v", c.length, a.piece.Range)
			}
		}
		if !c.asked && (again == quantity.Never || !z.replan) {
			t.Errorf("a place of %v: it is looked at again at %d, planned anew: %v", c.length, again, z.replan)
		}
	}
}
