// Package archivetest is the conformance suite that every kind of archive must pass: what was filed comes back as it was until it
// is discarded, a later life is never lost to an earlier one, and the lists agree with a plain search. It must not know how a kind
// stores anything.
package archivetest

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/archive"
)

// Run runs the whole suite.
func Run(t *testing.T, k Kind) {
	for name, test := range map[string]func(*testing.T, Kind){
		"EmptyIsEmpty":                 emptyIsEmpty,
		"FiledComesBack":               filedComesBack,
		"FactsComeBack":                factsComeBack,
		"ALaterLifeStays":              aLaterLifeStays,
		"PartsAreApart":                partsAreApart,
		"FilingAgainIsNoChange":        filingAgainIsNoChange,
		"ADiscardKnowsItsLife":         aDiscardKnowsItsLife,
		"ARequeuedJobMovesInTheList":   aRequeuedJobMoves,
		"WorkDirectoriesAreCounted":    workDirectories,
		"PagesJoin":                    pagesJoin,
		"ACallLooksAtSoManyAndGoesOn":  looksAtSoMany,
		"ACallLooksAtNoOtherState":     looksAtNoOtherState,
		"RetentionByAgeAndNumber":      retention,
		"BadPartsAreRefusedWhole":      badParts,
		"ReadersBesideAWriter":         readersBesideAWriter,
		"AnyHistoryAgreesWithAPlain":   anyHistory,
		"NamesThatBeginAlikeAreOthers": namesThatBeginAlike,
	} {
		t.Run(name, func(t *testing.T) { test(t, k) })
	}
}

func emptyIsEmpty(t *testing.T, k Kind) {
	d := begin(t, k)
	for range 2 {
		if _, ok := d.recall(protocol.Gate, "a"); ok {
			t.Error("something was recalled")
		}
		if p := d.list(archive.End(), 10, 0, nil); len(p.Entries) != 0 || !p.Done {
			t.Errorf("page: %+v", p)
		}
		if list := d.outdated(quantity.Never, 0, 10); len(list) != 0 {
			t.Errorf("outdated: %v", list)
		}
		if s := d.size(); s.Jobs != 0 || s.Homes != 0 || s.Changes != 0 {
			t.Errorf("size: %+v", s)
		}
		d.must(d.Discard([]archive.Discarded{{Job: "a", UpTo: 9}}))
		d.must(d.File(nil))
		d.reopen()
	}
}

func filedComesBack(t *testing.T, k Kind) {
	d := begin(t, k)
	want := Job("a", 3, 10, 20)
	want[0].Data = bytes.Repeat([]byte{1, 2, 3}, 100_000) // many pages
	d.file(want, Job("b", 1, 5, 30))
	for range 2 {
		for _, w := range want {
			p, ok := d.recall(w.Role, "a")
			if !ok || p.Generation != 3 || !bytes.Equal(p.Data, w.Data) || p.Job != "a" || p.Role != w.Role {
				t.Fatalf("role %d: found %v, generation %d, %d bytes", w.Role, ok, p.Generation, len(p.Data))
			}
			if (p.Entry == nil) != (w.Entry == nil) || p.Entry != nil && *p.Entry != *w.Entry {
				t.Errorf("entry: %+v", p.Entry)
			}
		}
		if s := d.size(); s.Jobs != 2 || s.Homes != 2 || s.Changes != 1 || s.Bytes == 0 {
			t.Errorf("size: %+v", s)
		}
		d.reopen()
	}
}

func factsComeBack(t *testing.T, k Kind) {
	d := begin(t, k)
	spec := &job.Spec{Name: "a", Queue: "research"}
	facts := []protocol.Fact{
		{Kind: protocol.JobAccepted, Job: "a", Generation: 2, At: 7, Body: &protocol.Acceptance{Spec: spec}},
		{Kind: protocol.JobRequeued, Job: "a", Generation: 4, At: 70, Body: &protocol.Sequel{}},
		{Kind: protocol.JobClosed, Job: "a", At: 99, Body: &protocol.Final{Verdict: job.Verdict{State: job.Failed, Reason: "exit 3"}}},
	}
	gate, err := archive.NewPart(protocol.Gate, "a", 4, facts)
	d.must(err)
	zone, err := archive.NewPart(protocol.Zone, "a", 4,
		[]protocol.Fact{{Kind: protocol.HomeKept, Job: "a", Body: &protocol.Keeping{Record: &protocol.Record{Job: "a", Spec: spec}}}})
	d.must(err)
	d.must(d.File([]archive.Part{gate, zone}))
	p, _ := d.recall(protocol.Gate, "a")
	if got, err := p.Facts(); err != nil || len(got) != 3 || got[2].Body.(*protocol.Final).Verdict.Reason != "exit 3" ||
		got[0].Body.(*protocol.Acceptance).Spec.Queue != "research" {
		t.Errorf("%v: %+v", err, got)
	}
	want := archive.Entry{Job: "a", Generation: 4, Queue: "research", State: job.Failed, Submitted: 70, Ended: 99}
	if page := d.list(archive.End(), 1, 0, nil); len(page.Entries) != 1 || page.Entries[0] != want {
		t.Errorf("entry: %+v", page.Entries)
	}
	if p, ok := d.recall(protocol.Zone, "a"); !ok || p.Entry != nil {
		t.Errorf("the zone's part: %v, %+v", ok, p.Entry)
	}
	for what, err := range map[string]error{
		"another job's fact": second(archive.NewPart(protocol.Zone, "a", 4,
			[]protocol.Fact{{Kind: protocol.HomeKept, Job: "b", Body: &protocol.Keeping{}}})),
		"a job that is not over":     second(archive.NewPart(protocol.Gate, "a", 4, facts[:2])),
		"no generation":              second(archive.NewPart(protocol.Gate, "a", 0, facts)),
		"a party that files nothing": second(archive.NewPart(protocol.Node, "a", 4, facts)),
		"nothing":                    second(archive.NewPart(protocol.Zone, "a", 4, nil)),
	} {
		if errkind.Of(err) != errkind.Invalid {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func second(_ archive.Part, err error) error { return err }

func aLaterLifeStays(t *testing.T, k Kind) {
	d := begin(t, k)
	d.file(Job("a", 5, 50, 60))
	d.file(Job("a", 4, 40, 45)) // said again, late
	if p, _ := d.recall(protocol.Gate, "a"); p.Generation != 5 || string(p.Data) != "gate a 5" {
		t.Errorf("generation %d, %q", p.Generation, p.Data)
	}
	if p, _ := d.recall(protocol.Zone, "a"); p.Generation != 5 {
		t.Errorf("zone's generation %d", p.Generation)
	}
	if s := d.size(); s.Jobs != 1 || s.Homes != 1 || s.Changes != 1 {
		t.Errorf("size: %+v", s)
	}
}

func partsAreApart(t *testing.T, k Kind) {
	d := begin(t, k)
	parts := Job("a", 1, 1, 2)
	d.file(parts[1:])
	if _, ok := d.recall(protocol.Gate, "a"); ok {
		t.Error("the gate has filed nothing")
	}
	if p := d.list(archive.End(), 1, 0, nil); len(p.Entries) != 0 {
		t.Error("a job is in the list that the gate has not filed")
	}
	d.file(parts[:1])
	if s := d.size(); s.Jobs != 1 || s.Homes != 1 || s.Changes != 2 {
		t.Errorf("size: %+v", s)
	}
}

func filingAgainIsNoChange(t *testing.T, k Kind) {
	d := begin(t, k)
	d.file(Job("a", 1, 1, 2))
	d.file(Job("a", 1, 1, 2))
	if s := d.size(); s.Jobs != 1 || s.Homes != 1 || s.Changes != 1 {
		t.Errorf("size: %+v", s)
	}
	again := Job("a", 1, 1, 2)
	again[0].Data = []byte("the same life, said otherwise")
	d.file(again)
	if p, _ := d.recall(protocol.Gate, "a"); !bytes.Equal(p.Data, again[0].Data) {
		t.Errorf("%q", p.Data)
	}
	if s := d.size(); s.Jobs != 1 || s.Changes != 2 {
		t.Errorf("size: %+v", s)
	}
}

func aDiscardKnowsItsLife(t *testing.T, k Kind) {
	d := begin(t, k)
	d.file(Job("a", 3, 1, 2), Job("b", 3, 3, 4), Job("c", 1, 5, 6)[1:])
	d.must(d.Discard([]archive.Discarded{{Job: "a", UpTo: 2}, {Job: "b", UpTo: 3}, {Job: "c", UpTo: 7}, {Job: "d", UpTo: 1}}))
	for range 2 {
		if p := d.list(archive.End(), 9, 0, nil); names(p.Entries) != "a" {
			t.Errorf("list: %v", p.Entries)
		}
		if list := d.outdated(quantity.Never, 0, 9); len(list) != 1 || list[0] != (archive.Ended{At: 2, Job: "a", Generation: 3}) {
			t.Errorf("outdated: %v", list)
		}
		for name, want := range map[job.ID]bool{"a": true, "b": false, "c": false} {
			for _, role := range []protocol.Role{protocol.Gate, protocol.Zone} {
				if _, ok := d.recall(role, name); ok != want {
					t.Errorf("role %d of %s is there: %v", role, name, ok)
				}
			}
		}
		if s := d.size(); s.Jobs != 1 || s.Homes != 1 || s.Changes != 2 {
			t.Errorf("size: %+v", s)
		}
		d.reopen()
	}
}

func aRequeuedJobMoves(t *testing.T, k Kind) {
	d := begin(t, k)
	d.file(Job("a", 1, 10, 11), Job("b", 1, 20, 21), Job("c", 1, 30, 31))
	d.file(Job("a", 4, 40, 41))
	if p := d.list(archive.End(), 9, 0, nil); names(p.Entries) != "a c b" {
		t.Errorf("list: %s", names(p.Entries))
	}
	if list := d.outdated(40, 9, 9); len(list) != 2 {
		t.Errorf("outdated: %v", list)
	}
}

func namesThatBeginAlike(t *testing.T, k Kind) {
	d := begin(t, k)
	d.file(Job("a-1", 1, 10, 20), Job("a", 1, 10, 20), Job("a-10", 1, 10, 20))
	if p := d.list(archive.End(), 9, 0, nil); names(p.Entries) != "a-10 a-1 a" {
		t.Errorf("list: %s", names(p.Entries))
	}
	if p := d.list(archive.Cursor{Submitted: 10, Job: "a-10"}, 9, 0, nil); names(p.Entries) != "a-1 a" {
		t.Errorf("before a-10: %s", names(p.Entries))
	}
	d.must(d.Discard([]archive.Discarded{{Job: "a-1", UpTo: 1}}))
	if p := d.list(archive.End(), 9, 0, nil); names(p.Entries) != "a-10 a" {
		t.Errorf("list: %s", names(p.Entries))
	}
}

func workDirectories(t *testing.T, k Kind) {
	d := begin(t, k)
	with := func(parts []archive.Part, id string) []archive.Part {
		parts[0].Entry.Workdir = id
		return parts
	}
	check := func(want string) {
		t.Helper()
		got := ""
		for _, id := range []string{"x", "y"} {
			needs, err := d.NeedsWorkdir(id)
			d.must(err)
			if needs {
				got += id
			}
		}
		if got != want {
			t.Errorf("needed: %q, want %q", got, want)
		}
	}
	d.file(with(Job("a", 1, 1, 2), "x"), with(Job("b", 1, 1, 2), "x"), Job("c", 1, 1, 2))
	d.file(with(Job("a", 1, 1, 2), "x")) // again
	check("x")
	d.must(d.Discard([]archive.Discarded{{Job: "a", UpTo: 1}}))
	d.reopen()
	check("x")
	d.file(with(Job("b", 2, 3, 4), "y"))
	check("y")
	d.must(d.Discard([]archive.Discarded{{Job: "b", UpTo: 1}}))
	check("y")
	d.must(d.Discard([]archive.Discarded{{Job: "b", UpTo: 2}, {Job: "c", UpTo: 2}}))
	d.reopen()
	check("")
}

func badParts(t *testing.T, k Kind) {
	d := begin(t, k)
	good := Job("a", 1, 1, 2)
	entry := *good[0].Entry
	for what, change := range map[string]func(p *archive.Part){
		"a bad name":              func(p *archive.Part) { p.Job = "No Name" },
		"no generation":           func(p *archive.Part) { p.Generation = 0 },
		"no entry":                func(p *archive.Part) { p.Entry = nil },
		"another's entry":         func(p *archive.Part) { e := entry; e.Job = "b"; p.Entry = &e },
		"an entry of a life":      func(p *archive.Part) { e := entry; e.Generation = 9; p.Entry = &e },
		"an entry of who waits":   func(p *archive.Part) { e := entry; e.State = job.Waiting; p.Entry = &e },
		"nothing":                 func(p *archive.Part) { p.Data = nil },
		"too much":                func(p *archive.Part) { p.Data = make([]byte, archive.MaxPart+1) },
		"a node's part":           func(p *archive.Part) { p.Role = protocol.Node },
		"a zone's part in a list": func(p *archive.Part) { p.Role = protocol.Zone },
	} {
		p := good[0]
		change(&p)
		if err := d.File([]archive.Part{good[1], p}); errkind.Of(err) != errkind.Invalid {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := d.File(make([]archive.Part, archive.MaxParts+1)); errkind.Of(err) != errkind.Invalid {
		t.Errorf("too many: %v", err)
	}
	if err := d.Discard(make([]archive.Discarded, archive.MaxParts+1)); errkind.Of(err) != errkind.Invalid {
		t.Errorf("too many to discard: %v", err)
	}
	if s := d.size(); s.Jobs != 0 || s.Homes != 0 || s.Changes != 0 {
		t.Errorf("something was filed: %+v", s)
	}
	d.file(good)
}

func readersBesideAWriter(t *testing.T, k Kind) {
	d := begin(t, k)
	const jobs = 60
	d.file(Job("first", 1, 1, 1))
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		wg.Go(func() {
			for {
				if p, ok, err := d.Recall(protocol.Gate, "first"); err != nil || !ok || string(p.Data) != "gate first 1" {
					t.Errorf("beside a writer: %q, %v, %v", p.Data, ok, err)
					return
				}
				page, err := d.Page(archive.End(), 50, 0, nil)
				if err != nil || !slices.IsSortedFunc(page.Entries,
					func(a, b archive.Entry) int { return b.Cursor().Compare(a.Cursor()) }) {
					t.Errorf("beside a writer: %v, %v", page.Entries, err)
					return
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for i := range jobs {
		name := job.ID(fmt.Sprintf("job-%d", i))
		if err := d.File(Job(name, 1, quantity.Instant(i), quantity.Instant(i))); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	wg.Wait()
	if s := d.size(); s.Jobs != jobs+1 {
		t.Errorf("%d jobs", s.Jobs)
	}
}
