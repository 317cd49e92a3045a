package leases

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/node/record"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

const t0 = quantity.Instant(1_000_000 * time.Second)

// world is the leases of a node with slices a and b, whose boot is confirmed.
type world struct {
	*Leases
	*Runner
	now  quantity.Instant
	out  protocol.Out
	made uint64
}

func newWorld() *world {
	w := &world{now: t0}
	i := inventory.New()
	r := record.New("n", func(f *protocol.Fact) { w.Apply(f) })
	w.Leases = New(r, i)
	w.Runner = NewRunner(Config{ResultRetry: time.Second, Overdue: 5 * time.Second, TruncateGrace: 2 * time.Second}, w.Leases)
	i.List([]protocol.Slice{{ID: "a"}, {ID: "b"}})
	i.Confirm()
	return w
}

// lease makes one on a slice.
func (w *world) lease(id job.ID, s job.SliceID, start, end quantity.Instant) *Lease {
	w.made++
	t := job.Token{Epoch: 1, Seq: w.made}
	w.Leases.record.Fact(&w.out, protocol.Fact{Kind: protocol.LeaseMade, Token: t, Job: id,
		Body: &protocol.Terms{Placement: protocol.Placement{Slice: s, Range: job.Range{To: 100}, Start: start, End: end}, Zone: "z"}})
	w.Made(t, &job.Spec{Name: id, Total: 100}, &w.out)
	return w.Of(t)
}

// sent are the messages of a kind since the last call.
func (w *world) sent(k protocol.Kind) (list []protocol.Message) {
	for _, m := range w.out.Effects {
		if m.Kind == k {
			list = append(list, m)
		}
	}
	w.out.Reset()
	return list
}
