package zone

import (
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestOneZoneHasNothingOfAFederation, nor have its jobs, a gang that may lie in several zones among them.
func TestOneZoneHasNothingOfAFederation(t *testing.T) {
	z, err := New(Config{ID: "z", Policy: fifo.Policy{}, Alone: true})
	if err != nil {
		t.Fatal(err)
	}
	var out protocol.Out
	z.Recover(1e9, &out)
	spec := &job.Spec{
		Name: "j", Queue: "q", Kind: job.Rigid, Total: 1, Grid: 1, Parallelism: 1, Slices: 2, Topology: job.SameCluster, MaxFailures: 3,
		Safe: trp.Table{Bounds: []int64{1}, Least: [][]quantity.Amount{{1 << 20}}},
	}
	z.Step(1e9, protocol.Message{Kind: protocol.Adopt, From: protocol.Address{Role: protocol.Gate}, Job: "j", Epoch: 1, Generation: 1,
		Body: &protocol.Adoption{Since: 1, At: 1e9, Spec: spec, Queue: &protocol.Queue{Name: "q", Weight: 1}}}, &out)
	z.Step(2e9, protocol.Message{Kind: protocol.Tick}, &out)
	if e := entryOf(z.home.Book().Job("j")); z.federation != (federation{}) || e.seek != nil || e.borrows != nil {
		t.Errorf("the zone has %+v, its job %+v", z.federation, e)
	}
	for _, m := range out.Effects {
		if m.Kind == protocol.Lenders || m.Kind == protocol.Borrow {
			t.Errorf("it asks for slices of other zones: %+v", m)
		}
	}
}
