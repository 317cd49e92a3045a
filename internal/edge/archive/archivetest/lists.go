package archivetest

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/archive"
)

// many makes n jobs, several of each instant, every third of them failed.
func many(n int) (parts []archive.Part) {
	for i := range n {
		p := Job(job.ID(fmt.Sprintf("job-%05d", i*7919%n)), 1, quantity.Instant(i/3), quantity.Instant(n-i))
		p[0].Entry.Owner = []string{"", "ada", "bob", "ada"}[i%4]
		if i%3 == 0 {
			p[0].Entry.State = job.Failed
		}
		parts = append(parts, p[0])
	}
	return parts
}

func pagesJoin(t *testing.T, k Kind) {
	d := begin(t, k)
	parts := many(500)
	d.file(parts)
	var want []archive.Entry
	for _, p := range parts {
		want = append(want, *p.Entry)
	}
	slices.SortFunc(want, func(a, b archive.Entry) int { return b.Cursor().Compare(a.Cursor()) })
	for _, n := range []int{1, 7, 499, 500, 501} {
		var got []archive.Entry
		for at, calls := archive.End(), 0; ; calls++ {
			p := d.list(at, n, 0, nil)
			got = append(got, p.Entries...)
			if p.Done {
				break
			}
			if at = p.Next; calls > 600 {
				t.Fatalf("pages of %d never end", n)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: %d entries, want %d", n, len(got), len(want))
		}
	}
	failed := func(e *archive.Entry) bool { return e.State == job.Failed }
	p := d.list(archive.End(), 10, 0, failed)
	wantFailed := slices.DeleteFunc(slices.Clone(want), func(e archive.Entry) bool { return !failed(&e) })
	if !slices.Equal(p.Entries, wantFailed[:10]) || p.Done {
		t.Errorf("filtered: %v", names(p.Entries))
	}
	if p := d.list(archive.Cursor{}, 10, 0, nil); len(p.Entries) != 0 || !p.Done {
		t.Errorf("before everything: %+v", p)
	}
}

func looksAtSoMany(t *testing.T, k Kind) {
	d := begin(t, k)
	n := archive.MaxLooked + archive.MaxParts
	parts := many(n)
	for piece := range slices.Chunk(parts, archive.MaxParts) {
		d.file(piece)
	}
	oldest := parts[0].Entry.Job
	only := func(e *archive.Entry) bool { return e.Job == oldest }
	p := d.list(archive.End(), 1, 0, only)
	if len(p.Entries) != 0 || p.Done {
		t.Fatalf("it looked at everything: %+v", p)
	}
	if p = d.list(p.Next, 1, 0, only); len(p.Entries) != 1 {
		t.Errorf("going on it did not find %s: %+v", oldest, p)
	}
}

// looksAtNoOtherState: the one job that was cancelled is found at once, behind more of other states than one call looks at.
func looksAtNoOtherState(t *testing.T, k Kind) {
	d := begin(t, k)
	parts := many(archive.MaxLooked + archive.MaxParts)
	oldest := parts[0].Entry
	oldest.State = job.Cancelled
	for piece := range slices.Chunk(parts, archive.MaxParts) {
		d.file(piece)
	}
	all := func(*archive.Entry) bool { return true }
	p := d.list(archive.End(), 1, status.JobStates(0).With(job.Cancelled), all)
	if len(p.Entries) != 1 || p.Entries[0] != *oldest || !p.Done {
		t.Errorf("one cancelled job: %+v, want %+v", p, *oldest)
	}
	if p = d.list(archive.End(), 1, status.JobStates(0).With(job.Expired), all); len(p.Entries) != 0 || !p.Done {
		t.Errorf("no expired job: %+v", p)
	}
	if p = d.list(archive.End(), 1, status.JobStates(0).With(job.Running), all); len(p.Entries) != 0 || !p.Done {
		t.Errorf("of a state that nobody is filed in: %+v", p)
	}
}

func retention(t *testing.T, k Kind) {
	d := begin(t, k)
	d.file(Job("a", 1, 1, 40), Job("b", 2, 2, 10), Job("c", 1, 3, 30), Job("d", 1, 4, 10), Job("e", 1, 5, 50))
	for _, c := range []struct {
		before quantity.Instant
		most   int64
		n      int
		want   string
	}{
		{10, 5, 9, ""},
		{11, 5, 9, "b d"},
		{11, 2, 9, "b d c"},
		{0, 4, 9, "b"},
		{0, 0, 9, "b d c a e"},
		{quantity.Never, 9, 9, "b d c a e"},
		{quantity.Never, 0, 2, "b d"},
		{0, 100, 9, ""},
	} {
		got := ""
		for _, e := range d.outdated(c.before, c.most, c.n) {
			got += " " + string(e.Job)
			if e.Job == "b" && (e.Generation != 2 || e.At != 10) {
				t.Errorf("b: %+v", e)
			}
		}
		if len(got) > 0 {
			got = got[1:]
		}
		if got != c.want {
			t.Errorf("before %d, at most %d, %d of them: %q, want %q", c.before, c.most, c.n, got, c.want)
		}
	}
}

// plain is an archive that searches everything.
type plain map[protocol.Role]map[job.ID]archive.Part

func (m plain) file(p archive.Part) {
	if was, ok := m[p.Role][p.Job]; !ok || was.Generation <= p.Generation {
		m[p.Role][p.Job] = p
	}
}

func (m plain) discard(x archive.Discarded) {
	for _, of := range m {
		if p, ok := of[x.Job]; ok && p.Generation <= x.UpTo {
			delete(of, x.Job)
		}
	}
}

func (m plain) page(before archive.Cursor, n int, keep func(*archive.Entry) bool) (list []archive.Entry) {
	for _, p := range m[protocol.Gate] {
		if e := *p.Entry; e.Cursor().Compare(before) < 0 && keep(&e) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b archive.Entry) int { return b.Cursor().Compare(a.Cursor()) })
	return list[:min(n, len(list))]
}

func (m plain) outdated(before quantity.Instant, most int64, n int) (list []archive.Ended) {
	for _, p := range m[protocol.Gate] {
		later := 0
		for _, o := range m[protocol.Gate] {
			if o.Entry.Ended > p.Entry.Ended || o.Entry.Ended == p.Entry.Ended && o.Job >= p.Job {
				later++
			}
		}
		if p.Entry.Ended < before || int64(later) > most {
			list = append(list, archive.Ended{At: p.Entry.Ended, Job: p.Job, Generation: p.Generation})
		}
	}
	slices.SortFunc(list, func(a, b archive.Ended) int {
		return archive.Cursor{Submitted: a.At, Job: a.Job}.Compare(archive.Cursor{Submitted: b.At, Job: b.Job})
	})
	return list[:min(n, len(list))]
}

// anyHistory draws filings, discards and stops, and compares everything that can be asked with the plain archive.
func anyHistory(t *testing.T, k Kind) {
	rapid.Check(t, func(rt *rapid.T) {
		d := begin(t, k)
		m := plain{protocol.Gate: {}, protocol.Zone: {}}
		name := rapid.SampledFrom([]job.ID{"a", "b", "b-1", "c", "d"})
		life := rapid.Uint32Range(1, 5)
		at := rapid.Int64Range(0, 20)
		for range rapid.IntRange(1, 15).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0:
				d.reopen()
			case 1, 2, 3:
				x := archive.Discarded{Job: name.Draw(rt, "job"), UpTo: job.Generation(life.Draw(rt, "up to"))}
				d.must(d.Discard([]archive.Discarded{x}))
				m.discard(x)
			default:
				var parts []archive.Part
				for range rapid.IntRange(1, 3).Draw(rt, "parts") {
					submitted := at.Draw(rt, "submitted")
					p := Job(name.Draw(rt, "job"), job.Generation(life.Draw(rt, "generation")), quantity.Instant(submitted),
						quantity.Instant(submitted+at.Draw(rt, "took")))
					p[0].Entry.State = rapid.SampledFrom([]job.State{job.Finished, job.Failed, job.Cancelled}).Draw(rt, "state")
					parts = append(parts, p[rapid.IntRange(0, 1).Draw(rt, "who")])
				}
				d.must(d.File(parts))
				for _, p := range parts {
					m.file(p)
				}
			}
			compare(d, m, rt)
		}
	})
}

func compare(d *desk, m plain, rt *rapid.T) {
	for role, of := range m {
		for _, name := range []job.ID{"a", "b", "b-1", "c", "d"} {
			want, known := of[name]
			if got, ok := d.recall(role, name); ok != known || got.Generation != want.Generation || string(got.Data) != string(want.Data) {
				rt.Fatalf("role %d of %s: %v %d %q, want %v %d %q", role, name, ok, got.Generation, got.Data, known, want.Generation,
					want.Data)
			}
		}
	}
	n := rapid.IntRange(1, 6).Draw(rt, "n")
	failed := func(e *archive.Entry) bool { return e.State == job.Failed }
	cursor := archive.Cursor{Submitted: quantity.Instant(rapid.Int64Range(0, 21).Draw(rt, "before")), Job: "b"}
	states := rapid.SampledFrom([]status.JobStates{0, status.JobStates(0).With(job.Failed), status.JobStates(0).With(job.Finished),
		status.JobStates(0).With(job.Failed).With(job.Cancelled)}).Draw(rt, "states")
	for _, keep := range []func(*archive.Entry) bool{failed, func(*archive.Entry) bool { return true }} {
		those := func(e *archive.Entry) bool { return states.Has(e.State) && keep(e) }
		if got, want := d.list(cursor, n, states, keep), m.page(cursor, n, those); !slices.Equal(got.Entries, want) || got.Done &&
			len(m.page(cursor, n+1, those)) > n {
			rt.Fatalf("page: %+v, want %v", got, want)
		}
	}
	before, most := quantity.Instant(rapid.Int64Range(0, 40).Draw(rt, "ended before")), rapid.Int64Range(0, 6).Draw(rt, "most")
	if got, want := d.outdated(before, most, n), m.outdated(before, most, n); !slices.Equal(got, want) {
		rt.Fatalf("outdated before %d, at most %d: %v, want %v", before, most, got, want)
	}
	if s := d.size(); int(s.Jobs) != len(m[protocol.Gate]) || int(s.Homes) != len(m[protocol.Zone]) {
		rt.Fatalf("size: %+v", s)
	}
}
