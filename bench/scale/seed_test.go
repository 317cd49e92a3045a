package main

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone"
	"sluice.dev/sluice/internal/edge/archive/bolt"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/local"
	"sluice.dev/sluice/internal/edge/wire"
)

// pair is a gate and a zone.
type pair struct {
	gate *gate.Gate
	zone *zone.Zone
}

func newPair(t *testing.T) pair {
	t.Helper()
	g, err := gate.New(gate.Config{Zones: gate.Alone(zoneID)})
	if err != nil {
		t.Fatal(err)
	}
	z, err := zone.New(zone.Config{ID: zoneID, Policy: policies.Default()})
	if err != nil {
		t.Fatal(err)
	}
	return pair{g, z}
}

func (p pair) apply(f protocol.Fact) error {
	switch f.Actor.Role {
	case protocol.Gate:
		p.gate.Apply(f)
	case protocol.Zone:
		p.zone.Apply(f)
	default:
		return fmt.Errorf("a fact of %v", f.Actor)
	}
	return nil
}

// begin makes the journal of a data directory as a daemon leaves it: its zone has queues.
func begin(t *testing.T, data string) {
	t.Helper()
	j, err := local.Open(filepath.Join(data, "journal"), local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Replay(nil, nil); err != nil {
		t.Fatal(err)
	}
	var facts []protocol.Fact
	for i := range queues {
		q := &protocol.Queue{Name: queueName(i), Weight: 1}
		facts = append(facts, protocol.Fact{Kind: protocol.QueueSet, Actor: protocol.Address{Role: protocol.Gate}, Body: q},
			protocol.Fact{Kind: protocol.QueueKnown, Actor: protocol.Address{Role: protocol.Zone, ID: zoneID}, Body: q})
	}
	if _, err := j.Append([][]byte{wire.AppendFacts(nil, facts)}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// recovered folds a journal as a daemon does.
func recovered(t *testing.T, data string) pair {
	t.Helper()
	p := newPair(t)
	j, err := local.Open(filepath.Join(data, "journal"), local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = j.Replay(func(state io.Reader) error { return wire.ReadFacts(state, p.apply) },
		func(_ journal.Position, data []byte) error { return wire.DecodeFacts(data, p.apply) })
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestSeedsAreWhatTheActorsWrite: a gate and a zone that take the same jobs in, step by step, come to the same durable state as
// those that recover from a seeded journal.
func TestSeedsAreWhatTheActorsWrite(t *testing.T) {
	dir := t.TempDir()
	begin(t, dir)
	s := seeds{set: "t", waiting: 300, now: quantity.At(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
	if err := s.write(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if s.zone != zoneID {
		t.Errorf("the zone is said to be %q", s.zone)
	}
	got := recovered(t, dir)

	empty := t.TempDir()
	begin(t, empty)
	want := recovered(t, empty)
	gateAt, zoneAt := protocol.Address{Role: protocol.Gate}, protocol.Address{Role: protocol.Zone, ID: zoneID}
	var out protocol.Out
	want.gate.Recover(1, &out)
	want.zone.Recover(1, &out)
	// What is impossible is only known once the gate knows of slices.
	want.gate.Step(1, protocol.Message{Kind: protocol.Inventory, From: protocol.Address{Role: protocol.Node, ID: "n"}, To: gateAt,
		Body: &protocol.Stock{Slices: []protocol.Slice{{ID: "s", Capacity: vector(24), Speed: 1000}}}}, &out)
	var list []protocol.Fact
	if err := s.each(func(facts []protocol.Fact) error { list = append(list, facts[0]); return nil }); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list, func(a, b protocol.Fact) int { return cmp.Compare(a.At, b.At) }) // time never goes back
	for _, f := range list {
		out.Reset()
		a := f.Body.(*protocol.Acceptance)
		spec := *a.Spec
		spec.Name = f.Job
		want.gate.Step(f.At, protocol.Message{
			Kind: protocol.Submit, From: protocol.Address{Role: protocol.Person, ID: "p"}, To: gateAt,
			Body: &protocol.Submission{Request: a.Request, Spec: &spec, Digest: a.Digest}, Job: f.Job,
		}, &out)
		for pending := out.Effects; len(pending) > 0; {
			m := pending[0]
			pending = pending[1:]
			if reply, ok := m.Body.(*protocol.Receipt); ok && reply.Err != nil {
				t.Fatalf("job %s is refused: %v", f.Job, reply.Err)
			}
			var next protocol.Out
			switch m.To {
			case gateAt:
				want.gate.Step(f.At, m, &next)
			case zoneAt:
				want.zone.Step(f.At, m, &next)
			}
			pending = append(pending, next.Effects...)
		}
	}
	if got.gate.Digest() != want.gate.Digest() {
		t.Errorf("the seeded gate has digest %016x, the gate that took the jobs in %016x", got.gate.Digest(), want.gate.Digest())
	}
	if got.zone.Digest() != want.zone.Digest() {
		t.Errorf("the seeded zone has digest %016x, the zone that took the jobs home %016x", got.zone.Digest(), want.zone.Digest())
	}
}

// TestSeededJobsThatAreOver have left to the archive, which has both parts of each, and the gate counts them; what is archived
// shows a job that is over with its one piece.
func TestSeededJobsThatAreOver(t *testing.T) {
	const over = filedAtOnce + 100 // in two batches
	dir := t.TempDir()
	begin(t, dir)
	now := quantity.At(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	s := seeds{set: "t", waiting: 10, finished: over, now: now}
	if err := s.write(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	p := recovered(t, dir)
	if got, _ := p.gate.Archived(); got != over {
		t.Errorf("the gate counts %d archived jobs, want %d", got, over)
	}
	if got := len(p.zone.Page(now, status.JobQuery{}).Jobs); got != 10 {
		t.Errorf("the zone has %d jobs, want the 10 that wait", got)
	}
	a, err := bolt.Open(filepath.Join(dir, "archive"), true)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if size, err := a.Size(); err != nil || size.Jobs != over || size.Homes != over {
		t.Errorf("the archive has %+v, %v; want %d of each", size, err, over)
	}
	for _, i := range []int{0, 77, filedAtOnce, over - 1} {
		again := newPair(t)
		name := job.ID(jobName("t-over", i))
		for _, role := range []protocol.Role{protocol.Gate, protocol.Zone} {
			part, ok, err := a.Recall(role, name)
			if err != nil || !ok {
				t.Fatalf("job %s, role %d: %v, %v", name, role, ok, err)
			}
			facts, err := part.Facts()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range facts {
				f.Actor = protocol.Address{Role: role, ID: zoneID}
				if err := again.apply(f); err != nil {
					t.Fatal(err)
				}
			}
		}
		j, ok := again.zone.Job(now, name)
		if !ok || j.State != job.Finished || j.Progress != j.Total || again.gate.Life(name) != 1 {
			t.Errorf("job %s comes back as %+v, %v", name, j, ok)
		}
	}
}

// TestASetOfNames is in order and has none twice, and others have none of them.
func TestASetOfNames(t *testing.T) {
	seen := map[string]bool{}
	for _, set := range []string{"a", "b"} {
		list := names(set, 2000)
		if len(list) != 2000 {
			t.Fatalf("%d names of 2000", len(list))
		}
		for i, n := range list {
			if seen[n] || i > 0 && list[i-1] >= n || !job.ValidName(n) {
				t.Fatalf("name %q after %q", n, list[max(0, i-1)])
			}
			seen[n] = true
		}
	}
}

// TestTheShapesDiffer: a market that looked at one of each queue would not have looked at them all.
func TestTheShapesDiffer(t *testing.T) {
	all, err := specs()
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if least := all[i].Safe.LeastOver(0, 1, trp.Unscaled); least <= 1<<30 {
			t.Errorf("shape %d fits on the small slices of the daemons (%d): it would run instead of waiting", i, least)
		}
	}
	kinds, inQueue, memory := map[job.Kind]int{}, map[string]int{}, map[string]int{}
	for i := range all {
		kinds[all[i].Kind]++
		inQueue[all[i].Queue]++
		memory[fmt.Sprint(all[i].Safe)]++
	}
	if len(kinds) != 3 || len(inQueue) != queues || len(memory) < shapes/2 {
		t.Errorf("%d kinds, %d queues, %d memories of %d shapes", len(kinds), len(inQueue), len(memory), shapes)
	}
}
