package quarantine

import (
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/node/leases"
	"sluice.dev/sluice/internal/core/node/record"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestTheLastFactsDecideOfASlice: whatever came before, its condition, the count of holders and the digest are those of what is so now, and
// fold from what Facts says of it.
func TestTheLastFactsDecideOfASlice(t *testing.T) {
	fresh := func() (*Quarantine, *inventory.Inventory) {
		i := inventory.New()
		sold := leases.New(record.New("n", func(*protocol.Fact) {}), i)
		return New(record.New("n", func(*protocol.Fact) {}), i, sold, leases.NewRunner(leases.Config{}, sold)), i
	}
	rapid.Check(t, func(t *rapid.T) {
		q, i := fresh()
		want := map[job.SliceID]inventory.Condition{}
		for range rapid.IntRange(0, 30).Draw(t, "facts") {
			id := job.SliceID(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "slice"))
			c := want[id]
			f := protocol.Fact{Slice: id}
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				f.Kind, f.Body, f.Token = protocol.Quarantined, &protocol.Reason{Text: "why"},
					job.Token{Seq: uint64(rapid.IntRange(0, 2).Draw(t, "holder"))}
				c.Quarantined, c.Why, c.Holder = true, "why", f.Token
			case 1:
				f.Kind = protocol.QuarantineLifted
				c = inventory.Condition{Fault: c.Fault}
			case 2:
				c.Fault = &health.Fault{Text: "Xid 79"}
				f.Kind, f.Body = protocol.SliceFailed, c.Fault
			default:
				f.Kind = protocol.SliceMended
				c.Fault = nil
			}
			q.Apply(&f)
			want[id] = c
		}
		again, _ := fresh()
		sum, holders := uint64(0), 0
		for id, c := range want {
			if got := *i.Of(id).Condition(); got != c {
				t.Fatalf("%s is %+v, want %+v", id, got, c)
			}
			if sum += c.Hash(id); !c.Holder.Zero() {
				holders++
			}
			for _, f := range Facts(i.Of(id), nil) {
				again.Apply(&f)
			}
		}
		if q.Sum() != sum || again.Sum() != sum || q.holders != holders {
			t.Fatalf("the digest is %d, folded %d, want %d; %d holders, want %d", q.Sum(), again.Sum(), sum, q.holders, holders)
		}
	})
}
