package zone_test

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestAWaveOfFailuresIsOne: subjobs that ran at once and failed alike have taught one thing. A job ends after three such waves,
// not within the first.
func TestAWaveOfFailuresIsOne(t *testing.T) {
	for name, c := range map[string]struct {
		r    job.Result
		at   time.Duration // how long a subjob runs
		word string
	}{
		"can not be started": {job.Result{Outcome: job.StartFailed, Detail: "no such file"}, time.Second, "no such file"},
		"limit":              {job.Result{Outcome: job.DeadlineKilled}, time.Hour, "deadline"},
		"yields":             {job.Result{Outcome: job.Yielded}, time.Second, "yielded"},
	} {
		w := newWorld(t, 1024, 1024, 1024)
		runs, waves, last := 0, 0, w.now
		w.run = func(m *protocol.Message) (time.Duration, job.Result) {
			if runs++; runs == 1 || w.now.Sub(last) > 100*time.Millisecond {
				waves++
			}
			last = w.now
			r := c.r
			r.Progress = m.Body.(*protocol.Work).Range.From
			return c.at + time.Duration(runs%3)*10*time.Millisecond, r
		}
		w.submit(items(t, "a", 300, 100, 3))
		w.until(time.Hour)
		if v := w.closed["a"]; v.State != job.Failed || !strings.Contains(v.Reason, c.word) {
			t.Errorf("%s: %v", name, v)
		}
		if waves < 3 || runs < 7 {
			t.Errorf("%s: it ended after %d subjobs in %d waves", name, runs, waves)
		}
	}
}

// TestASecondWaveThatSucceedsSavesTheJob: all three siblings of the first fail, as on a machine that is busy starting them.
func TestASecondWaveThatSucceedsSavesTheJob(t *testing.T) {
	for _, outcome := range []job.Outcome{job.StartFailed, job.DeadlineKilled, job.Yielded, job.Lost} {
		w := newWorld(t, 1024, 1024, 1024)
		w.config.MaxKills = 3
		w.z = w.make()
		begin := w.now
		w.run = func(m *protocol.Message) (time.Duration, job.Result) {
			if w.now.Sub(begin) < 400*time.Millisecond {
				return time.Duration(m.Body.(*protocol.Work).Range.From+1) * time.Millisecond,
					job.Result{Outcome: outcome, Progress: m.Body.(*protocol.Work).Range.From}
			}
			return m.Body.(*protocol.Work).Plan.Wall, job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To}
		}
		w.submit(items(t, "a", 300, 100, 3))
		w.until(time.Hour)
		finished(t, w, "a")
		w.restart()
	}
}

// TestAJobEndsHoweverItsSubjobsEnd: whatever ends its subjobs, in whatever order, results that never come included, a bounded number
// without progress ends the job. Subjobs that never began, or that we stopped, are not counted: neither keeps a slice busy for ever.
func TestAJobEndsHoweverItsSubjobsEnd(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := drawer(rt)
		ends := rapid.SliceOfNDistinct(rapid.IntRange(1, job.Outcomes), 1, job.Outcomes, rapid.ID).Draw(rt, "ends")
		progress := rapid.SampledFrom([]int{0, 0, 2, 10}).Draw(rt, "progress of a hundred")
		w := newWorld(rt, 512, 1024, 1024)
		silent := map[job.Token]bool{}
		w.lose = func(m *protocol.Message) bool { return m.Kind == protocol.Result && silent[m.Token] }
		row, longest := 0, 0
		w.run = func(m *protocol.Message) (time.Duration, job.Result) {
			work := m.Body.(*protocol.Work)
			r := job.Result{Outcome: job.Outcome(ends[draw(len(ends))]), Progress: work.Range.From, Start: w.now}
			switch {
			case int(r.Outcome) == job.Outcomes:
				r.Outcome, silent[m.Token] = job.Done, true
			case draw(100) < progress && work.Spec.Kind == job.Items:
				r.Progress, row = work.Range.From+1, 0
			case r.Outcome == job.ExitFailed && draw(2) == 0:
				r.Signal = 9
			case r.Outcome == job.NodeFailed && draw(2) == 0:
				r.Start = 0
			case r.Outcome == job.DeadlineKilled && draw(2) == 0:
				r.Waited = time.Hour
			}
			if r.Outcome != job.Stopped && r.Start != 0 {
				row++
			}
			longest = max(longest, row)
			return time.Duration(1+draw(3000)) * time.Millisecond, r
		}
		total, parallel := rapid.Int64Range(1, 300).Draw(rt, "total"), rapid.IntRange(1, 3).Draw(rt, "parallelism")
		s := items(t, "a", total, 100, parallel)
		if rapid.Bool().Draw(rt, "steps") {
			parallel, s = 1, steps(t, "a", total, 1, 100)
		}
		s.MaxFailures = rapid.IntRange(1, 40).Draw(rt, "maxFailures")
		w.submit(s)
		counts, limit := slices.ContainsFunc(ends, func(o int) bool { return o != int(job.Stopped) }), 10*24*time.Hour
		if !counts {
			limit = 10 * time.Minute
		}
		w.until(limit)
		halvings, raises := 2+bits.Len64(uint64(total)), 40
		if most := parallel * (s.MaxFailures + max(30, s.MaxFailures) + 2*halvings + raises); longest > most {
			rt.Fatalf("%d subjobs in a row without progress, want at most %d: %v", longest, most, w.closed["a"])
		}
		if v := w.closed["a"]; counts && !v.State.Final() {
			j, _ := w.z.Job(w.now, "a")
			rt.Fatalf("after %v it is %v: %s", w.now.Sub(1e9), j.State, j.Reason)
		}
	})
}

// TestBadItemsCostLittle: 2,000 items with two bad ones, on four slices, whose subjobs end out of order and take fifteen items' time
// to start: at most 1.5 times the time without bad ones in the mean over many orders, and nothing but those is skipped. A program
// may say how far it came before it failed, or not.
func TestBadItemsCostLittle(t *testing.T) {
	for _, says := range []bool{true, false} {
		for _, grid := range []int64{1, 10} {
			var good, with time.Duration
			for seed := range uint64(30) {
				rng := rand.New(rand.NewPCG(seed, 1))
				bad := map[int64]bool{rng.Int64N(2000): true}
				for len(bad) < 2 {
					bad[rng.Int64N(2000)] = true
				}
				clean, dirty := timeOfItems(t, rng, grid, says, nil), timeOfItems(t, rng, grid, says, bad)
				good, with = good+clean, with+dirty
			}
			t.Logf("says how far it came %v, grid %d: %.2f times as long", says, grid, float64(with)/float64(good))
			if with > good*3/2 {
				t.Errorf("says how far it came %v, grid %d: %.2f times as long", says, grid, float64(with)/float64(good))
			}
		}
	}
}

// timeOfItems is how long 2,000 items take, the bad ones skipped, on four slices of which each subjob gets a pace of its own.
func timeOfItems(t *testing.T, rng *rand.Rand, grid int64, says bool, bad map[int64]bool) time.Duration {
	w := newWorld(t, 1024, 1024, 1024, 1024)
	s := items(t, "a", 2000, 100, 4)
	s.OnBadItem, s.Grid, s.PerUnit, s.Startup = job.BadItemSkips, grid, 20*time.Millisecond, 300*time.Millisecond
	w.run = func(m *protocol.Message) (time.Duration, job.Result) {
		pace := s.PerUnit * time.Duration(50+rng.Int64N(51)) / 100
		for u := m.Body.(*protocol.Work).Range.From; u < m.Body.(*protocol.Work).Range.To; u++ {
			if !bad[u] {
				continue
			}
			r := job.Result{Outcome: job.ExitFailed, ExitCode: 1, Progress: m.Body.(*protocol.Work).Range.From}
			if says {
				r.Progress = u
			}
			return s.Startup + time.Duration(u-m.Body.(*protocol.Work).Range.From+1)*pace, r
		}
		return s.Startup + time.Duration(m.Body.(*protocol.Work).Range.Len())*pace,
			job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To}
	}
	w.submit(s)
	begin := w.now
	w.until(time.Hour)
	j, _ := w.z.Job(w.now, "a")
	if j.State != job.Finished || j.Skipped != int64(len(bad)) {
		t.Fatalf("%s %q: %d units skipped of %v", j.State, j.Reason, j.Skipped, bad)
	}
	return w.now.Sub(begin)
}

// TestTheBadItemsAndNoOthersAreSkipped, whichever they are, in whatever order subjobs end, whatever they say of their progress.
func TestTheBadItemsAndNoOthersAreSkipped(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		draw := func(n int64) int64 {
			seed = seed*6364136223846793005 + 1442695040888963407
			return int64(seed>>33) % n
		}
		total := rapid.Int64Range(1, 400).Draw(rt, "total")
		bad := map[int64]bool{}
		for range rapid.IntRange(0, 8).Draw(rt, "bad") {
			bad[draw(total)] = true
		}
		w := newWorld(rt, 1024, 1024, 1024)
		runs := 0
		w.run = func(m *protocol.Message) (time.Duration, job.Result) {
			runs++
			for u := m.Body.(*protocol.Work).Range.From; u < m.Body.(*protocol.Work).Range.To; u++ {
				if bad[u] {
					said := m.Body.(*protocol.Work).Range.From + draw(u-m.Body.(*protocol.Work).Range.From+1)
					return time.Duration(1+draw(5000)) * time.Millisecond, job.Result{Outcome: job.ExitFailed, ExitCode: 1, Progress: said}
				}
			}
			return time.Duration(1+draw(5000)) * time.Millisecond, job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To}
		}
		s := items(t, "a", total, 100, rapid.IntRange(1, 5).Draw(rt, "parallelism"))
		s.OnBadItem, s.Grid = job.BadItemSkips, rapid.SampledFrom([]int64{1, 7, 50}).Draw(rt, "grid")
		w.submit(s)
		w.until(3 * time.Hour)
		j, _ := w.z.Job(w.now, "a")
		if j.State != job.Finished || j.Skipped != int64(len(bad)) {
			rt.Fatalf("%s %q: %d units skipped of %v", j.State, j.Reason, j.Skipped, bad)
		}
		for i := range j.History {
			if h := &j.History[i]; h.Outcome == "skipped" && !bad[h.Committed.From] {
				rt.Fatalf("%v is skipped, bad are %v", h.Committed, bad)
			}
		}
		if most := 60 + 40*len(bad) + int(total); runs > most {
			rt.Fatalf("%d subjobs for %d units with %d bad ones, want at most %d", runs, total, len(bad), most)
		}
		w.restart()
	})
}
