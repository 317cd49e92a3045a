package node

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/digest/digesttest"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestEveryDurableFieldMovesTheDigest: facts that lose one would fold to what looks like the same state.
func TestEveryDurableFieldMovesTheDigest(t *testing.T) {
	l := &lease{}
	digesttest.EveryField(t, l, l.hash, "phase", "stand", "spec", "why", "lost", "restless", "hurried", "fresh", "retry", "slot", "stirred",
		"pending", "sum")
	r := &protocol.Reservation{}
	digesttest.EveryField(t, r, func() uint64 { return reservationHash(r) })
	s := &slice{}
	digesttest.EveryField(t, s, func() uint64 { return s.quarantineHash() + s.faultHash() }, "quarantined", "waived", "relapses", "time",
		"known", "desc", "stock", "others", "kept", "since", "departing", "dirty", "shown", "renew", "renewing", "passing", "place")
	n := New(Config{ID: "n", Zone: "z"})
	if n.Digest() == New(Config{ID: "m", Zone: "z"}).Digest() {
		t.Error("two nodes without facts look alike")
	}
	for _, change := range []func(){func() { n.epoch++ }, func() { n.lastID++ }} {
		before := n.metaHash()
		if change(); n.metaHash() == before {
			t.Error("the epoch or the last reservation does not count")
		}
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
