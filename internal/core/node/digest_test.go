package node

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestEveryDurableFieldMovesTheDigest: facts that lose one would fold to what looks like the same state. Leases, reservations and
// conditions are held to that beside them.
func TestEveryDurableFieldMovesTheDigest(t *testing.T) {
	seen := map[uint64]bool{}
	for _, id := range []job.NodeID{"n", "m"} {
		n := New(Config{ID: id, Zone: "z"})
		seen[n.Digest()] = true
		n.Apply(protocol.Fact{Kind: protocol.Booted, Epoch: 1})
		seen[n.Digest()] = true
		n.Apply(protocol.Fact{Kind: protocol.Booted, Epoch: 1, Body: &protocol.Reservation{ID: 7}})
		seen[n.Digest()] = true
	}
	if len(seen) != 6 {
		t.Errorf("the node, the epoch or the last reservation does not count: %d digests of 6", len(seen))
	}
}

func BenchmarkSubjob(b *testing.B) {
	n := New(Config{ID: "n", Zone: "z"})
	var out protocol.Out
	n.Recover(t0, &out)
	stock := &protocol.Stock{}
	inventory := protocol.Message{Kind: protocol.Inventory, From: executor, Body: stock}
	for i := range 8 {
		stock.Slices = append(stock.Slices, device(job.SliceID(rune('a'+i))))
	}
	n.Step(t0, inventory, &out)
	now, id := t0, uint64(0)
	step := func(m protocol.Message) {
		out.Reset()
		n.Step(now, m, &out)
	}
	result := &job.Result{Outcome: job.Done, Progress: 100}
	b.ReportAllocs()
	for b.Loop() { // seven steps: from ask to gone
		now = now.Add(time.Minute)
		id++
		a := ask(id, "c", 0, 0)
		a.Body.(*protocol.Asking).Start, a.Body.(*protocol.Asking).End = now, now.Add(time.Minute)
		step(a)
		g := out.Effects[0]
		step(redeem(g))
		step(protocol.Message{Kind: protocol.Started, From: executor, Token: g.Token, Body: &protocol.Beginning{At: now}})
		step(protocol.Message{Kind: protocol.Exited, From: executor, Token: g.Token, Body: &protocol.Conclusion{Result: result}})
		step(protocol.Message{Kind: protocol.ResultAck, From: zone, Token: g.Token, Job: "j",
			Body: &protocol.Acknowledgement{Range: job.Range{From: 0, To: 100}}})
		step(protocol.Message{Kind: protocol.Settled, From: executor, Token: g.Token})
		step(protocol.Message{Kind: protocol.Tick})
	}
	if len(n.Leases()) != 0 {
		b.Fatalf("leases are left: %v", n.Leases())
	}
}
