package atomizer_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// situation is a random job in a random state before a random window.
type situation struct {
	spec *job.Spec
	view atomizer.View
	win  atomizer.Window
}

func draw(t *rapid.T, kind job.Kind) situation {
	total := rapid.Int64Range(1, 60).Draw(t, "total")
	var ps []trp.Phase
	for at := int64(0); at < total; {
		at = min(total, at+rapid.Int64Range(1, 30).Draw(t, "phase"))
		ps = append(ps, trp.Phase{UpTo: at, Mean: quantity.Amount(rapid.Int64Range(50, 150).Draw(t, "need"))})
	}
	table, err := trp.Compile(trp.Profile{Form: trp.Phases, Phases: ps}, total, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	secs := func(name string, most int64) time.Duration {
		return time.Duration(rapid.Int64Range(0, most).Draw(t, name)) * time.Second
	}
	s := &job.Spec{
		Kind: kind, Total: total, PerUnit: 700 * time.Millisecond, Grid: rapid.Int64Range(1, 9).Draw(t, "grid"), Parallelism: 1,
		Safe:    table,
		Startup: secs("startup", 2), Restore: secs("restore", 9), Checkpoint: secs("checkpoint", 9), TauMin: secs("tau", 30),
	}
	s.Launch.Grace = secs("grace", 3)
	v := atomizer.View{Spec: s, Learned: &protocol.Learned{Margin: rapid.Int64Range(1000, 1500).Draw(t, "margin")}}
	done := rapid.Int64Range(0, total).Draw(t, "done")
	if kind == job.Steps {
		done = done / s.Grid * s.Grid
	}
	v.Committed = v.Committed.Add(job.Range{To: done})
	if done > 0 && kind == job.Steps {
		v.Resume = job.Token{Epoch: 1, Seq: 1}
	}
	if from := rapid.Int64Range(0, total-1).Draw(t, "claim"); kind == job.Items && from >= done {
		v.Claimed = v.Claimed.Add(job.Range{From: from, To: rapid.Int64Range(from+1, total).Draw(t, "claim end")})
	}
	return situation{s, v, atomizer.Window{
		Capacity: trp.Vector{quantity.Amount(rapid.Int64Range(40, 160).Draw(t, "capacity"))},
		Speed:    rapid.Int64Range(400, 2000).Draw(t, "speed"),
		End:      quantity.Instant(rapid.Int64Range(1, 90).Draw(t, "length") * 1e9),
	}}
}

// allowed says whether [from, to) may be cut, by the definition in docs/adr/0005-sja.md and by nothing else.
func (q *situation) allowed(from, to, end int64) bool {
	s := q.spec
	if to%s.Grid != 0 && to != end {
		return false
	}
	before, after := s.Startup, s.Checkpoint
	if !q.view.Resume.Zero() {
		before += s.Restore
	}
	if to == s.Total && q.view.Committed.Len()+q.view.Claimed.Len()+to-from == s.Total {
		after = 0
	}
	run := q.view.RunTime(to-from, q.win.Speed)
	return before+run+after+s.Launch.Grace <= q.win.End.Sub(q.win.Start) &&
		s.Safe.LeastOver(from, to, trp.Unscaled) <= q.win.Capacity[trp.Memory] && (run >= s.TauMin || to == end)
}

// longest tries every cut point from one start. A cut that leaves less than tau_min gives way to the longest one that
// does not, and is taken only if there is none.
func (q *situation) longest(from, end int64) int64 {
	best, tidy := from, from
	for to := from + 1; to <= end; to++ {
		if q.allowed(from, to, end) {
			best = to
			if to == end || q.view.RunTime(end-to, q.win.Speed) >= q.spec.TauMin {
				tidy = to
			}
		}
	}
	if tidy > from {
		return tidy
	}
	return best
}

// starts are where a piece may begin: the next unit of a chain; of items, wherever what is free and safe begins.
func (q *situation) starts() (out []job.Range) {
	free := func(x int64) bool {
		r := job.Range{From: x, To: x + 1}
		return x < q.spec.Total && !q.view.Committed.Overlaps(r) && !q.view.Claimed.Overlaps(r)
	}
	safe := func(x int64) bool {
		return q.spec.Safe.LeastOver(x, x+1, trp.Unscaled) <= q.win.Capacity[trp.Memory]
	}
	for x := range q.spec.Total {
		if !free(x) {
			continue
		}
		end := x
		for free(end) {
			end++
		}
		if q.spec.Kind == job.Steps {
			return []job.Range{{From: x, To: end}}
		}
		if safe(x) && (x == 0 || !free(x-1) || !safe(x-1)) {
			out = append(out, job.Range{From: x, To: end})
		}
	}
	return out
}

// TestFitAgainstEveryCutPoint: a job is interested exactly if some piece is allowed, and the piece it cuts is the longest
// one at the first place where there is any.
func TestFitAgainstEveryCutPoint(t *testing.T) {
	for _, kind := range []job.Kind{job.Items, job.Steps} {
		rapid.Check(t, func(t *rapid.T) {
			q := draw(t, kind)
			var want job.Range
			for _, r := range q.starts() {
				if to := q.longest(r.From, r.To); to > r.From {
					want = job.Range{From: r.From, To: to}
					break
				}
			}
			p, refusal := atomizer.Fit(&q.view, q.win)
			if interested := refusal.Why == atomizer.Interested; interested == want.Empty() || interested && p.Range != want {
				t.Fatalf("got %v (%+v), every cut point tried: %v", p.Range, refusal, want)
			}
		})
	}
}

// TestTheReasonIsTheRightOne: a job that says unsafe could do nothing there in any window, and one that says too short
// could in a long one.
func TestTheReasonIsTheRightOne(t *testing.T) {
	for _, kind := range []job.Kind{job.Items, job.Steps} {
		rapid.Check(t, func(t *rapid.T) {
			q := draw(t, kind)
			_, refusal := atomizer.Fit(&q.view, q.win)
			longer := q.win
			longer.End = quantity.Instant(1e15)
			_, then := atomizer.Fit(&q.view, longer)
			switch {
			case refusal.Why == atomizer.Unsafe && then.Why == atomizer.Interested:
				t.Fatalf("unsafe, it said (%+v), and fits a longer window", refusal)
			case refusal.Why == atomizer.TooShort && then.Why != atomizer.Interested:
				t.Fatalf("too short, it said (%+v), and in the longest window: %+v", refusal, then)
			case refusal.Why == atomizer.TooShort && refusal.Need <= q.win.End.Sub(q.win.Start):
				t.Fatalf("it needs %v of a window of %v that is too short", refusal.Need, q.win.End.Sub(q.win.Start))
			}
		})
	}
}

// TestSharesReachTheEnd: whatever the parallelism, an items job that is cut piece by piece in a window that holds tau_min
// is cut to its end.
func TestSharesReachTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := draw(t, job.Items)
		q.spec.Parallelism = rapid.IntRange(2, 40).Draw(t, "parallelism")
		q.view.Claimed, q.win.Capacity, q.win.End = nil, trp.Vector{1000}, quantity.Instant(300e9)
		for n := 0; q.view.Committed.Len() < q.spec.Total; n++ {
			p, refusal := atomizer.Fit(&q.view, q.win)
			if refusal.Why != atomizer.Interested || n > int(q.spec.Total) {
				t.Fatalf("after %v: %+v", q.view.Committed, refusal)
			}
			q.view.Committed = q.view.Committed.Add(p.Range)
		}
	})
}

func TestRigidPieces(t *testing.T) {
	table, err := trp.Compile(trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: 1, Mean: 100}}}, 1, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		walltime time.Duration
		end      quantity.Instant
		capacity quantity.Amount
		claimed  bool
		want     atomizer.Why
	}{
		{"fits", time.Minute, quantity.Instant(61e9), 100, false, atomizer.Interested},
		{"its grace does not", time.Minute, quantity.Instant(60e9), 100, false, atomizer.TooShort},
		{"too large", time.Minute, quantity.Never, 99, false, atomizer.Unsafe},
		{"no walltime, no end", 0, quantity.Never, 100, false, atomizer.Interested},
		{"no walltime, an end", 0, quantity.Instant(1e15), 100, false, atomizer.NotForever},
		{"runs already", time.Minute, quantity.Never, 100, true, atomizer.NoFreeWork},
	} {
		s := &job.Spec{Kind: job.Rigid, Total: 1, Grid: 1, Parallelism: 1, Walltime: c.walltime, Safe: table,
			Launch: job.Launch{Grace: time.Second}}
		v := atomizer.View{Spec: s, Learned: &protocol.Learned{}}
		if c.claimed {
			v.Claimed = v.Claimed.Add(job.Range{To: 1})
		}
		p, r := atomizer.Fit(&v, atomizer.Window{Capacity: trp.Vector{c.capacity}, Speed: 1000, End: c.end})
		if r.Why != c.want || (r.Why == atomizer.Interested) != (p.Range == job.Range{To: 1}) {
			t.Errorf("%s: %+v, %+v", c.name, p, r)
		}
	}
}
