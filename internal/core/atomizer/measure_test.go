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

// untimed is a random job that declares no time, before a random window.
func untimed(t *rapid.T, kind job.Kind) situation {
	q := draw(t, kind)
	q.spec.PerUnit = 0
	q.view.Learned.Trials = rapid.Int64Range(0, 2).Draw(t, "trials")
	q.win.End = quantity.Instant(rapid.Int64Range(1, 4000).Draw(t, "long") * 1e9)
	if kind == job.Items {
		q.spec.Parallelism = rapid.IntRange(1, 5).Draw(t, "parallelism")
		q.view.Running = len(q.view.Claimed)
	}
	return q
}

// measurable is the first place from which the units up to the next cut point are free and safe, without regard to time.
func (q *situation) measurable() job.Range {
	for _, r := range q.starts() {
		for to := r.From + 1; to <= r.To; to++ {
			if to%q.spec.Grid != 0 && to != r.To {
				continue
			}
			if q.spec.Safe.LeastOver(r.From, to, trp.Unscaled) <= q.win.Capacity[trp.Memory] {
				return job.Range{From: r.From, To: to}
			}
			break // what is longer needs no less
		}
	}
	return job.Range{}
}

// trial is how long such a piece may run, by the text of adr 0079.
func (q *situation) trial() time.Duration {
	most := max(time.Minute, q.spec.TauMin)
	for range q.view.Learned.Trials {
		most *= 4
	}
	return time.Duration(quantity.MulDiv(int64(most), 1000, q.win.Speed))
}

// TestWhatMeasuresAgainstEveryCutPoint: a job without a time is interested exactly if nothing of it runs and the shortest piece there is
// fits with the trial's length, and that is the piece; if no window is as long, it has all of the longest.
func TestWhatMeasuresAgainstEveryCutPoint(t *testing.T) {
	for _, kind := range []job.Kind{job.Items, job.Steps} {
		rapid.Check(t, func(t *rapid.T) {
			q := untimed(t, kind)
			p, refusal := atomizer.Fit(&q.view, q.win)
			if q.view.Running > 0 {
				if refusal.Why != atomizer.AtParallelism {
					t.Fatalf("beside what runs: %+v, %+v", p, refusal)
				}
				return
			}
			s, want := q.spec, q.measurable()
			around := s.Startup + s.Launch.Grace
			if !q.view.Resume.Zero() {
				around += s.Restore
			}
			if q.view.Committed.Len()+want.Len() != s.Total {
				around += s.Checkpoint
			}
			room := q.win.End.Sub(q.win.Start)
			fits := !want.Empty() && around+q.trial() <= room
			if interested := refusal.Why == atomizer.Interested; interested != fits ||
				interested && (p.Range != want || p.Run != q.trial() || p.Length != around+q.trial()) {
				t.Fatalf("got %+v (%+v), want %v with %v and %v", p, refusal, want, q.trial(), around)
			}
			if refusal.Why == atomizer.TooShort && refusal.Need != around+q.trial() {
				t.Fatalf("it needs %v, want %v", refusal.Need, around+q.trial())
			}
			q.view.Hopeful = true
			p, refusal = atomizer.Fit(&q.view, q.win)
			if hopes := refusal.Why == atomizer.Interested; hopes != (!want.Empty() && around < room) || hopes && (p.Range != want ||
				p.Length != room || p.Run != room-around) {
				t.Fatalf("as a last resort %+v (%+v), want %v in %v of %v", p, refusal, want, room-around, room)
			}
		})
	}
}

// TestNothingIsSaidOfTheTimeOfAJobWithoutOne: such a job is judged by its memory alone, and what is accepted can be measured in the longest
// window.
func TestNothingIsSaidOfTheTimeOfAJobWithoutOne(t *testing.T) {
	for _, kind := range []job.Kind{job.Items, job.Steps} {
		rapid.Check(t, func(t *rapid.T) {
			q := untimed(t, kind)
			q.view = atomizer.View{Spec: q.spec, Learned: &protocol.Learned{}}
			s := protocol.Slice{Capacity: q.win.Capacity, Speed: q.win.Speed}
			longest := time.Duration(rapid.Int64Range(1, 200).Draw(t, "longest")) * time.Second
			why, _ := atomizer.Impossible(q.spec, kinds([]protocol.Slice{s}), longest)
			holds := q.spec.Startup+q.spec.Restore+q.spec.Checkpoint+q.spec.Launch.Grace < longest
			safe := true
			for from := int64(0); from < q.spec.Total; from++ {
				if to := min(q.spec.Total, (from/q.spec.Grid+1)*q.spec.Grid); from%q.spec.Grid == 0 {
					safe = safe && q.spec.Safe.LeastOver(from, to, trp.Unscaled) <= s.Capacity[trp.Memory]
				}
			}
			if why == "" && !safe || why != "" && holds && safe && phaseStartsOnGrid(q.spec) {
				t.Fatalf("%q where its pieces are safe: %v, and what is around one fits: %v", why, safe, holds)
			}
			if n := atomizer.Fitting(q.spec, kinds([]protocol.Slice{s}), longest); why == "" && n != 1 {
				t.Fatalf("it could run, and on %d slices", n)
			}
			q.view.Hopeful = true
			q.win.End = quantity.Instant(longest)
			if _, refusal := atomizer.Fit(&q.view, q.win); why == "" && refusal.Why != atomizer.Interested {
				t.Fatalf("accepted, and in the longest window %+v", refusal)
			}
		})
	}
}

// phaseStartsOnGrid says whether pieces can be cut where the memory changes.
func phaseStartsOnGrid(s *job.Spec) bool {
	for _, b := range s.Safe.Bounds {
		if b%s.Grid != 0 && b != s.Total {
			return false
		}
	}
	return true
}

// TestWhatMeasuresGoesOnNowhere: a piece that measures is not continued, and proposes itself alone.
func TestWhatMeasuresGoesOnNowhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := bargain(t, job.Items)
		q.spec.PerUnit, q.win.End = 0, q.win.Start+quantity.Instant(1e12)
		q.view.Running = min(q.view.Running, 1)
		if got := atomizer.Propose(&q.view, q.win, atomizer.MostVariants, q.win.Start, nil); len(got) > 1 {
			t.Fatalf("%d variants of a piece that measures: %+v", len(got), got)
		}
		q.view.Continues = job.Range{From: 0, To: 1}
		if p, refusal := atomizer.Fit(&q.view, q.win); refusal.Why != atomizer.AtParallelism {
			t.Fatalf("it goes on with %+v", p)
		}
	})
}
