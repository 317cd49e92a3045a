package zone_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone"
)

// templated is a chain of one template that declares 800 MiB, at a theta of .05: 19 runs are just enough.
func templated(t testing.TB, name string) *job.Spec {
	s := steps(t, name, 20, 1, 800)
	s.Template, s.Theta = "t", 50_000
	return s
}

// uses makes subjobs take d a unit and end as their true peak has it: killed where that passes the slice.
func (w *world) uses(d time.Duration, peak func(m *protocol.Message) int64) {
	w.run = func(m *protocol.Message) (time.Duration, job.Result) {
		r := job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To, Checkpoint: true,
			Peak: trp.Vector{trp.Memory: quantity.Amount(peak(m) << 20)}}
		if capacity := w.slice(m.Body.(*protocol.Work).Slice).view.Capacity; r.Peak[trp.Memory] > capacity[trp.Memory] {
			r.Outcome, r.Progress, r.Checkpoint, r.Peak = job.MemoryKilled, m.Body.(*protocol.Work).Range.From, false, capacity
		}
		return d * time.Duration(m.Body.(*protocol.Work).Range.Len()), r
	}
}

// TestATemplateTeaches: jobs that declare 800 MiB use some 400. Once enough of them have finished, those that wait and those
// that come are sold what was seen, and so the small slice too; they pass it no more often than theta says.
func TestATemplateTeaches(t *testing.T) {
	const jobs, theta = 300, .05
	w := newWorld(t, 512, 1024)
	rng := prng.New(5)
	sold, passed, small, kills := 0, 0, 0, 0
	w.uses(2*time.Second, func(m *protocol.Message) int64 {
		peak := 380 + int64(25*rng.Exp())
		if m.Body.(*protocol.Work).Demand[trp.Memory] < 800<<20 {
			sold++
			if peak<<20 > int64(m.Body.(*protocol.Work).Demand[trp.Memory]) {
				passed++
			}
			if m.Body.(*protocol.Work).Slice == "s0" {
				small++
			}
			if peak > 512 && m.Body.(*protocol.Work).Slice == "s0" {
				kills++
			}
		}
		return peak
	})
	for i := range jobs {
		w.submit(templated(t, fmt.Sprintf("j%03d", i)))
		for range 12 {
			w.tick()
		}
		if i == 150 {
			w.restart()
		}
	}
	w.until(10 * time.Hour)
	for i := range jobs {
		if v := w.closed[job.ID(fmt.Sprintf("j%03d", i))]; v.State != job.Finished {
			t.Fatalf("job %d: %+v", i, v)
		}
	}
	most := int(math.Ceil(theta*float64(sold) + 3*math.Sqrt(theta*(1-theta)*float64(sold))))
	t.Logf("%d subjobs sold less than was declared, %d on the small slice; %d passed it, at most %d; %d killed", sold, small, passed, most,
		kills)
	if sold < jobs/2 || small < sold/4 || passed > most || passed == 0 || kills > most {
		t.Error("it was not learned, or theta was not kept")
	}
	first, _ := w.z.Job(w.now, "j000")
	last, _ := w.z.Job(w.now, "j299")
	if got := first.Profile.String(); got != "declared" {
		t.Errorf("the first job's profile was %s", got)
	}
	if last.Profile.Source != forecast.Taught || last.Profile.Runs < 200 || last.Spec.Safe.Peak(trp.Unscaled) != 800<<20 {
		t.Errorf("the last job's profile was %s", last.Profile)
	}
	// A unit takes two seconds and not one: known before a job's first piece runs.
	if piece := last.History[0]; piece.PlannedEnd.Sub(piece.PlannedStart) < 40*time.Second {
		t.Errorf("the last job's first piece was given %v for 20 units of 2s", piece.PlannedEnd.Sub(piece.PlannedStart))
	}
	folded(t, w)
}

// folded checks that the facts, and a snapshot, fold to the state there is.
func folded(t *testing.T, w *world) {
	t.Helper()
	for name, facts := range map[string][]protocol.Fact{"the facts": w.facts, "a snapshot": capture.All(w.z)} {
		z := w.make()
		for _, f := range facts {
			z.Apply(f)
		}
		if z.Digest() != w.z.Digest() {
			t.Errorf("%s fold to another state", name)
		}
	}
}

// TestWaitingJobsAreTaught: of jobs that came together, those that still wait when enough have finished are sold less.
func TestWaitingJobsAreTaught(t *testing.T) {
	w := newWorld(t, 512, 1024)
	w.uses(time.Second, func(*protocol.Message) int64 { return 300 })
	var last job.ID
	for i := range 40 {
		s := templated(t, fmt.Sprintf("j%02d", i))
		w.submit(s)
		last = s.Name
	}
	w.until(time.Hour)
	j, _ := w.z.Job(w.now, last)
	if len(w.closed) != 40 || j.Profile.Source != forecast.Taught || j.History[0].Predicted != 300<<20 {
		t.Errorf("%d finished; the last was sold %d MiB, %s", len(w.closed), j.History[0].Predicted>>20, j.Profile)
	}
	folded(t, w)
}

// TestOneRunAboveWhatWasDeclaredRaisesTheNext: too few to promise anything, and what was seen counts all the same.
func TestOneRunAboveWhatWasDeclaredRaisesTheNext(t *testing.T) {
	w := newWorld(t, 2048)
	w.uses(time.Second, func(*protocol.Message) int64 { return 900 })
	w.submit(templated(t, "a"))
	w.until(time.Hour)
	w.submit(templated(t, "b"))
	w.until(time.Hour)
	j, _ := w.z.Job(w.now, "b")
	if got := j.Profile.String(); j.History[0].Predicted != 900<<20 || got != "declared, raised to what 1 run of its template used" {
		t.Errorf("the second was sold %d MiB: %s", j.History[0].Predicted>>20, got)
	}
}

// TestAJobUnlikeItsTemplateIsGivenAsMuchAsWasDeclared: the alarm of the market takes back what the template had saved.
func TestAJobUnlikeItsTemplateIsGivenAsMuchAsWasDeclared(t *testing.T) {
	w := newMarket(t, auction.Config{}, 4096)
	w.step(protocol.Message{Kind: protocol.QueueChanged, Body: &protocol.Queue{Name: "default", Weight: 1, MaxWindow: 12 * time.Second}})
	var runs []forecast.Run
	for i := range 30 {
		runs = append(runs, forecast.Run{Peaks: []quantity.Amount{400 << 20, quantity.Amount(400+i) << 20}})
	}
	lesson := protocol.Fact{Kind: protocol.Taught, Body: &protocol.Lesson{Queue: "default", Template: "t", Runs: runs}}
	w.z.Apply(lesson)
	w.facts = append(w.facts, lesson)
	w.uses(time.Second, func(*protocol.Message) int64 { return 700 })
	s := templated(t, "odd")
	s.Total = 400
	s.Profile.Phases[0].UpTo, s.Safe.Bounds[0] = 400, 400
	w.submit(s)
	w.until(2 * time.Hour)
	j, _ := w.z.Job(w.now, "odd")
	first, last := j.History[0], j.History[len(j.History)-1]
	if first.Predicted > 430<<20 || last.Predicted < 800<<20 || j.Profile.Spread == 0 {
		t.Errorf("its first piece was sold %d MiB and its last %d: %s", first.Predicted>>20, last.Predicted>>20, j.Profile)
	}
	folded(t, w)
}

// TestNobodyIsForgottenForAnotherQueue: a queue that makes up templates loses its own.
func TestNobodyIsForgottenForAnotherQueue(t *testing.T) {
	w := newWorld(t)
	teach := func(queue, name string, peak quantity.Amount) {
		l := protocol.Lesson{Queue: queue, Template: name, Runs: []forecast.Run{{Peaks: []quantity.Amount{peak}}}}
		f := protocol.Fact{Kind: protocol.Taught, Body: &l}
		w.z.Apply(f)
		w.facts = append(w.facts, f)
	}
	teach("default", "t", 2<<30)
	for i := range 1000 {
		teach("greedy", fmt.Sprint("t", i), 1)
	}
	for range 300 {
		teach("greedy", "t999", 7)
	}
	w.submit(templated(t, "a"))
	if l, ok := w.facts[len(w.facts)-1].Body.(*protocol.Learned); !ok || l.Runs != 1 || l.Safe.Peak(trp.Unscaled) != 2<<30 {
		t.Errorf("what the template had taught is gone: %+v", l)
	}
	templates, runs := 0, 0
	for _, f := range capture.All(w.z) {
		if l, ok := f.Body.(*protocol.Lesson); ok && l.Queue == "greedy" {
			templates++
			runs = max(runs, len(l.Runs))
		}
	}
	if templates != 64 || runs != forecast.MaxRuns {
		t.Errorf("%d templates of the greedy queue are remembered, at most %d runs", templates, runs)
	}
	folded(t, w)
}

// TestWhatIsLearnedIsNeverBelowWhatWasSeen: over every piece, the table of a job is at least the order statistic that its theta
// asks for of what the remembered runs used there; with too few of them, at least what any used and what was declared.
func TestWhatIsLearnedIsNeverBelowWhatWasSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		z, err := zone.New(newWorld(t).config)
		if err != nil {
			t.Fatal(err)
		}
		lesson := protocol.Lesson{Queue: "default", Template: "t"}
		for range rapid.IntRange(1, 30).Draw(t, "runs") {
			run := forecast.Run{Unit: time.Duration(rapid.Int64Range(0, 5).Draw(t, "unit"))}
			for range rapid.IntRange(1, 6).Draw(t, "stretches") {
				run.Peaks = append(run.Peaks, quantity.Amount(rapid.Int64Range(1, 1600).Draw(t, "peak")))
			}
			lesson.Runs = append(lesson.Runs, run)
		}
		z.Apply(protocol.Fact{Kind: protocol.Taught, Body: &lesson})
		s := &job.Spec{Name: "a", Queue: "default", Template: "t", Kind: job.Steps, Total: rapid.Int64Range(1, 20).Draw(t, "total"),
			Grid: 1, Parallelism: 1, PerUnit: time.Second}
		s.Theta = rapid.Int64Range(30_000, 400_000).Draw(t, "theta")
		s.Safe = trp.Table{Bounds: []int64{s.Total}, Least: [][]quantity.Amount{{800}}}
		var out protocol.Out
		z.Step(1, protocol.Message{Kind: protocol.Adopt, Job: s.Name, Epoch: 1, Body: &protocol.Adoption{Spec: s, At: 1}}, &out)
		i := slices.IndexFunc(out.Facts, func(f protocol.Fact) bool { return f.Kind == protocol.Calibrated })
		if i < 0 {
			t.Fatal("the job was not told what its template has taught")
		}
		l := out.Facts[i].Body.(*protocol.Learned)
		n := len(lesson.Runs)
		k := int(math.Ceil(float64(n+1)*float64(1_000_000-s.Theta)/1e6 - 1e-9))
		for from := range s.Total {
			for to := from + 1; to <= s.Total; to++ {
				var used []quantity.Amount
				for _, r := range lesson.Runs {
					used = append(used, usedOver(r.Peaks, from, to, s.Total))
				}
				slices.Sort(used)
				want := max(800, used[n-1])
				if k <= n {
					want = used[k-1]
				}
				if got := l.Safe.LeastOver(from, to, trp.Unscaled); got < want {
					t.Fatalf("[%d,%d) is safe on %d by the table, and %d of %d runs used up to %d", from, to, got, k, n, want)
				}
			}
		}
	})
}

// usedOver is a run's peak over units [from, to), unit by unit.
func usedOver(peaks []quantity.Amount, from, to, total int64) (most quantity.Amount) {
	n := int64(len(peaks))
	for u := from; u < to; u++ {
		for i := range n {
			if u*n < (i+1)*total && (u+1)*n > i*total {
				most = max(most, peaks[i])
			}
		}
	}
	return most
}
