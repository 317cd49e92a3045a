package gate

import (
	"cmp"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// archiving is a gate with an archive that answers at once and keeps what it is given.
type archiving struct {
	// counted are the archive's changes, changes what the gate has heard of them with a job that left.
	counted, changes int64

	t     interface{ Fatalf(string, ...any) }
	g     *Gate
	facts []protocol.Fact
	parts map[job.ID]protocol.Message
	// left and back count the jobs that were archived and those that were taken back.
	left, back int
}

// step steps the gate and plays the archive until it has no more to say. Said is what others were told.
func (a *archiving) step(now quantity.Instant, in protocol.Message) (said []protocol.Message) {
	todo := []protocol.Message{in}
	for len(todo) > 0 {
		m := todo[0]
		todo = todo[1:]
		if name, ok := a.g.Recalls(&m); ok {
			m.Filed = a.parts[name].Filed
		}
		var out protocol.Out
		a.g.Step(now, m, &out)
		said = append(said, a.took(&out, &todo)...)
	}
	return said
}

func (a *archiving) took(out *protocol.Out, todo *[]protocol.Message) (said []protocol.Message) {
	for _, f := range out.Facts {
		a.facts = append(a.facts, f)
		switch {
		case f.Kind == protocol.JobArchived:
			a.left++
			a.changes = f.Body.(*protocol.Archiving).Changes
			if a.changes == 0 || a.changes > a.counted {
				a.t.Fatalf("it left with change %d of %d", a.changes, a.counted)
			}
		case f.Kind == protocol.JobAccepted && f.Body.(*protocol.Acceptance).Recalled:
			a.back++
		}
	}
	for _, m := range out.Effects {
		switch {
		case m.Kind == protocol.Wake:
		case m.To.Role != protocol.Archive:
			said = append(said, m)
		case m.Kind == protocol.File:
			a.parts[m.Job] = m
			a.counted++
			*todo = append(*todo, protocol.Message{Kind: protocol.Archived, From: m.To, Job: m.Job, Generation: m.Generation,
				Body: &protocol.Archival{Count: uint64(a.counted)}})
		case m.Kind == protocol.Purge:
			if a.parts[m.Job].Generation < m.Generation {
				delete(a.parts, m.Job)
			}
			*todo = append(*todo, protocol.Message{Kind: protocol.Purged, From: m.To, Job: m.Job, Generation: m.Generation})
		}
	}
	return said
}

// check insists that the facts fold to the gate's state, and that what it counts as archived is what only the archive has.
func (a *archiving) check(cfg Config) {
	again, err := New(cfg)
	if err != nil {
		a.t.Fatalf("%v", err)
	}
	for _, f := range a.facts {
		again.Apply(f)
	}
	var kept protocol.Out
	run := a.g.Capture()
	for done := false; !done; {
		kept.Facts, done = run.Take(3, kept.Facts)
	}
	third, _ := New(cfg)
	for _, f := range kept.Facts {
		third.Apply(f)
	}
	if again.Digest() != a.g.Digest() || third.Digest() != a.g.Digest() {
		a.t.Fatalf("digest %x, of its facts %x, of its snapshot %x", a.g.Digest(), again.Digest(), third.Digest())
	}
	only := int64(0)
	for name, part := range a.parts {
		if a.g.Life(name) == 0 && a.g.Forgotten(name) < part.Generation {
			only++
		}
	}
	jobs, changes := a.g.Archived()
	if jobs != only || changes != a.changes {
		a.t.Fatalf("the gate counts %d archived jobs and %d changes, the archive alone has %d and counted %d", jobs, changes, only,
			a.changes)
	}
}

// TestAnArchivedJobAnswersAsAHotOne: whatever is called and comes late, nobody but the archive can tell a gate that lets go of
// every job as soon as it is over from one that keeps them all.
func TestAnArchivedJobAnswersAsAHotOne(t *testing.T) {
	left, back := 0, 0
	world := func(rt *rapid.T) {
		cfg := Config{Zones: Alone("z"), Retain: 1000 * time.Hour}
		hot := testGate(rt, cfg)
		cfg.Archive = &filing.Config{Keep: 1, Most: 1}
		a := &archiving{t: rt, g: testGate(rt, cfg), parts: map[job.ID]protocol.Message{}}
		now := quantity.Instant(1e9)
		for i := range rapid.IntRange(1, 120).Draw(rt, "steps") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{2, 500, 2000}).Draw(rt, "passes")) * time.Millisecond)
			in := calls(rt, hot, i)
			if in.From.Role == protocol.Archive {
				in = protocol.Message{Kind: protocol.Tick}
			}
			if in.Kind == protocol.Closed {
				in.Body.(*protocol.Closing).At = now
			}
			got := a.step(now, in)
			var out protocol.Out
			hot.Step(now, in, &out)
			var want []protocol.Message
			for _, m := range out.Effects {
				if m.Kind != protocol.Wake {
					want = append(want, m)
				}
			}
			for _, list := range [][]protocol.Message{got, want} {
				slices.SortStableFunc(list, func(a, b protocol.Message) int {
					return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.To.Role, b.To.Role), cmp.Compare(a.Job, b.Job))
				})
			}
			if !reflect.DeepEqual(got, want) {
				rt.Fatalf("%+v:\n got %+v\nwant %+v", in, got, want)
			}
			a.check(cfg)
		}
		left, back = left+a.left, back+a.back
	}
	for round := 0; round == 0 || (left == 0 || back == 0) && round < 4; round++ { // a hundred worlds may not have all
		rapid.Check(t, world)
	}
	if left == 0 || back == 0 {
		t.Errorf("%d jobs were archived, %d taken back: the test shows nothing", left, back)
	}
}

// TestAnArchivedLifeGoesByItself: what is said of an earlier life, in its time and late, takes nothing of a later one along, and
// a name is free of its last life once its home, the executor and the archive have said so, each of that life.
func TestAnArchivedLifeGoesByItself(t *testing.T) {
	g := testGate(t, Config{Zones: Alone("z"), Retain: 1000 * time.Hour, Archive: &filing.Config{Keep: 1}})
	zone, executor, person := zone("z"), protocol.Address{Role: protocol.Executor}, protocol.Address{Role: protocol.Person}
	now, filed := quantity.Instant(1e9), []protocol.Fact(nil)
	step := func(m protocol.Message) (out protocol.Out) {
		t.Helper()
		now = now.Add(2 * time.Second)
		if name, ok := g.Recalls(&m); ok && name == "a" {
			m.Filed = filed
		}
		g.Step(now, m, &out)
		return out
	}
	said := func(out protocol.Out, k protocol.Kind, to protocol.Role) (list []job.Generation) {
		for _, m := range out.Effects {
			if m.Kind == k && m.To.Role == to {
				list = append(list, m.Generation)
			}
		}
		return list
	}
	fact := func(out protocol.Out, k protocol.FactKind) bool {
		return slices.ContainsFunc(out.Facts, func(f protocol.Fact) bool { return f.Kind == k })
	}
	adopted := func(of job.Generation) {
		step(protocol.Message{Kind: protocol.Adopted, From: zone, Job: "a", Epoch: 1, Generation: of})
	}
	leave := func(of job.Generation) {
		t.Helper()
		step(protocol.Message{Kind: protocol.Closed, From: zone, Job: "a", Epoch: 1, Generation: of,
			Body: &protocol.Closing{Verdict: job.Verdict{State: job.Cancelled}, At: now}})
		out := step(protocol.Message{Kind: protocol.Tick})
		for _, m := range out.Effects {
			if m.Kind == protocol.File {
				filed = m.Filed
			}
		}
		if got := said(out, protocol.File, protocol.Archive); !slices.Equal(got, []job.Generation{of}) {
			t.Fatalf("life %d leaves: %v is filed", of, got)
		}
		step(protocol.Message{Kind: protocol.Archived, From: theArchive, Job: "a", Generation: of,
			Body: &protocol.Archival{Count: uint64(of)}})
		if g.Life("a") != 0 {
			t.Fatalf("life %d is here still", of)
		}
	}
	outdated := func(of job.Generation) protocol.Out {
		return step(protocol.Message{Kind: protocol.Outdated, From: theArchive, Job: "a", Generation: of})
	}

	spec := &job.Spec{Name: "a", Queue: DefaultQueue, Kind: job.Items, Total: 8, Grid: 1, Parallelism: 1, PerUnit: time.Second}
	step(protocol.Message{Kind: protocol.Submit, From: person, Body: &protocol.Submission{Request: "r", Digest: "d", Spec: spec}})
	adopted(1)
	leave(1)
	step(protocol.Message{Kind: protocol.Requeue, From: person, Body: &protocol.Requeueing{Request: "again"}, Job: "a"})
	if life := g.Life("a"); life != 2 {
		t.Fatalf("requeued it has life %d", life)
	}
	if purged := said(outdated(1), protocol.Purge, protocol.Archive); purged != nil {
		t.Errorf("what its home has not taken back is purged: %v", purged)
	}
	adopted(2)
	if purged := said(outdated(1), protocol.Purge, protocol.Archive); !slices.Equal(purged, []job.Generation{2}) {
		t.Errorf("what its home has taken back is purged before life %v, want 2", purged)
	}
	leave(2)
	if out := outdated(1); fact(out, protocol.JobForgotten) {
		t.Error("the first life was kept long enough, and the second is forgotten")
	}
	out := outdated(2)
	if !fact(out, protocol.JobForgotten) {
		t.Fatal("the second life was kept long enough, and is not forgotten")
	}
	if purged := said(out, protocol.Purge, protocol.Archive); purged != nil {
		t.Errorf("its home may still look for it, and the archive is told to purge before %v", purged)
	}
	asked := false
	for _, x := range []struct {
		what string
		from protocol.Address
		kind protocol.Kind
		of   job.Generation
		// asks: from here on the archive may be asked; free: the name is free.
		asks, free bool
	}{
		{"the archive has purged the first life", theArchive, protocol.Purged, 2, false, false},
		{"the executor has purged the second", executor, protocol.Purged, 3, false, false},
		{"the home has forgotten the first", zone, protocol.Forgotten, 1, false, false},
		{"the home has forgotten the second", zone, protocol.Forgotten, 2, true, false},
		{"the archive has purged the first, said late", theArchive, protocol.Purged, 2, true, false},
		{"the archive has purged the second", theArchive, protocol.Purged, 3, true, true},
	} {
		out := step(protocol.Message{Kind: x.kind, From: x.from, Job: "a", Epoch: 1, Generation: x.of})
		if free := fact(out, protocol.JobPurged); free != x.free {
			t.Fatalf("%s: the name is free is %v", x.what, free)
		}
		purged := said(out, protocol.Purge, protocol.Archive)
		if len(purged) > 0 && (!x.asks || purged[0] != 3) {
			t.Errorf("%s: the archive is told to purge before %v", x.what, purged)
		}
		asked = asked || len(purged) > 0
	}
	if !asked {
		t.Error("the archive is never asked")
	}
}
