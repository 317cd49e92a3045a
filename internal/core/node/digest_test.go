package node

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/trp"
)

func TestEveryDurableFieldCountsInTheDigest(t *testing.T) {
	seen := map[uint64]string{}
	differs := func(name string, h uint64) {
		t.Helper()
		if other, ok := seen[h]; ok {
			t.Errorf("%s has the same hash as %s", name, other)
		}
		seen[h] = name
	}
	differs("no lease", (&lease{}).hash())
	for name, f := range map[string]func(*lease){
		"token epoch": func(l *lease) { l.token.Epoch = 1 }, "token sequence": func(l *lease) { l.token.Seq = 1 },
		"job": func(l *lease) { l.job = "j" }, "epoch": func(l *lease) { l.epoch = 1 }, "zone": func(l *lease) { l.zone = "z" },
		"slice": func(l *lease) { l.slice = "a" }, "also": func(l *lease) { l.also = []job.SliceID{"b"} },
		"from": func(l *lease) { l.rng.From = 1 }, "to": func(l *lease) { l.rng.To = 1 },
		"start": func(l *lease) { l.start = 1 }, "end": func(l *lease) { l.end = 1 }, "demand": func(l *lease) { l.demand = trp.Vector{1} },
		"run": func(l *lease) { l.plan.Run = 1 }, "wall": func(l *lease) { l.plan.Wall = 1 }, "resume": func(l *lease) { l.plan.Resume.Seq = 1 },
		"window": func(l *lease) { l.plan.Window = 1 }, "round": func(l *lease) { l.plan.Round = 1 },
		"started": func(l *lease) { l.started = true }, "at": func(l *lease) { l.at = 1 }, "cut": func(l *lease) { l.cut = "why" },
		"stuck": func(l *lease) { l.stuck = true }, "bare": func(l *lease) { l.bare = true }, "settled": func(l *lease) { l.settled = true },
		"settling": func(l *lease) { l.settling.To = 1 }, "ended": func(l *lease) { l.result = &job.Result{} },
		"outcome":        func(l *lease) { l.result = &job.Result{Outcome: job.Done} },
		"exit code":      func(l *lease) { l.result = &job.Result{ExitCode: 1} },
		"signal":         func(l *lease) { l.result = &job.Result{Signal: 1} },
		"progress":       func(l *lease) { l.result = &job.Result{Progress: 1} },
		"checkpoint":     func(l *lease) { l.result = &job.Result{Checkpoint: true} },
		"result start":   func(l *lease) { l.result = &job.Result{Start: 1} },
		"result end":     func(l *lease) { l.result = &job.Result{End: 1} },
		"first progress": func(l *lease) { l.result = &job.Result{FirstProgress: 1} },
		"peak":           func(l *lease) { l.result = &job.Result{Peak: trp.Vector{1}} },
		"detail":         func(l *lease) { l.result = &job.Result{Detail: "why"} },
	} {
		l := &lease{}
		f(l)
		differs(name, l.hash())
	}
	differs("no reservation", reservationHash(&protocol.Reservation{}))
	for name, r := range map[string]protocol.Reservation{
		"id": {ID: 1}, "kind": {Kind: 1}, "reserved slice": {Slice: "a"}, "reserved start": {Start: 1}, "reserved end": {End: 1},
		"every": {Every: time.Second}, "reserved job": {Job: "j"}, "reserved token": {Token: job.Token{Seq: 1}}, "source": {Source: "s"},
		"truncate": {Truncate: true},
	} {
		differs(name, reservationHash(&r))
	}
	differs("quarantine", (&slice{id: "a"}).quarantineHash())
	differs("quarantine elsewhere", (&slice{id: "b"}).quarantineHash())
	differs("quarantine for a reason", (&slice{id: "a", quarantine: "b"}).quarantineHash())
	differs("node n", New(Config{ID: "n", Zone: "z"}).Digest())
	differs("node m", New(Config{ID: "m", Zone: "z"}).Digest())
	differs("booted", (&Node{epoch: 1}).metaHash())
	differs("last id", (&Node{lastID: 1}).metaHash())
}

func BenchmarkSubjob(b *testing.B) {
	n := New(Config{ID: "n", Zone: "z"})
	var out protocol.Out
	n.Recover(t0, &out)
	inventory := protocol.Message{Kind: protocol.Inventory, From: executor}
	for i := range 8 {
		inventory.Slices = append(inventory.Slices, device(job.SliceID(rune('a'+i))))
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
		a.Start, a.End = now, now.Add(time.Minute)
		step(a)
		g := out.Effects[0]
		step(redeem(g))
		step(protocol.Message{Kind: protocol.Started, From: executor, Token: g.Token, At: now})
		step(protocol.Message{Kind: protocol.Exited, From: executor, Token: g.Token, Result: result})
		step(protocol.Message{Kind: protocol.ResultAck, From: zone, Token: g.Token, Job: "j", Range: job.Range{From: 0, To: 100}})
		step(protocol.Message{Kind: protocol.Settled, From: executor, Token: g.Token})
		step(protocol.Message{Kind: protocol.Tick})
	}
	if len(n.Leases()) != 0 {
		b.Fatalf("leases are left: %v", n.Leases())
	}
}
