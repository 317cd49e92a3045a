package record

import (
	"testing"

	"sluice.dev/sluice/internal/core/protocol"
)

// TestAFactIsAppliedBeforeTheNextIsDecided, in the node's name, and messages are sent in it too.
func TestAFactIsAppliedBeforeTheNextIsDecided(t *testing.T) {
	var out protocol.Out
	var applied []protocol.FactKind
	var r *Recorder
	r = New("n", func(f *protocol.Fact) { r.Count(); applied = append(applied, f.Kind) })
	for i, k := range []protocol.FactKind{protocol.Booted, protocol.LeaseMade, protocol.LeaseGone} {
		r.Fact(&out, protocol.Fact{Kind: k})
		if len(applied) != i+1 || applied[i] != k || r.Applied() != i+1 || out.Facts[i].Actor != r.Self() {
			t.Fatalf("after fact %d: %v are applied, recorded is %+v", i, applied, out.Facts[i])
		}
	}
	r.Send(&out, protocol.Message{Kind: protocol.Stop, To: r.Executor()})
	if m := out.Effects[0]; m.From != r.Self() || m.To.Role != protocol.Executor || r.Node() != "n" {
		t.Errorf("it sends %+v", m)
	}
}
