package zone_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestStartsThatTakeTimeArePlannedWith: a node that unpacks the work directory for two seconds before the first processes of
// a job of short items, and takes 200 ms before every later one, costs it no deadline; and neither is taken for run time.
func TestStartsThatTakeTimeArePlannedWith(t *testing.T) {
	const perItem, unpack, took = 8 * time.Millisecond, 2 * time.Second, 200 * time.Millisecond
	w := newWorld(t, 1024, 1024, 1024, 1024)
	missed, unpacked := 0, quantity.Instant(0)
	w.run = func(m *protocol.Message) (time.Duration, job.Result) {
		r := job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To, Prepare: took}
		if unpacked == 0 {
			unpacked = m.Body.(*protocol.Work).Start.Add(unpack)
		}
		r.Unpack = max(0, unpacked.Sub(m.Body.(*protocol.Work).Start))
		r.Prepare += r.Unpack
		most := m.Body.(*protocol.Work).End.Sub(m.Body.(*protocol.Work).Start)
		r.Start = m.Body.(*protocol.Work).Start.Add(min(r.Prepare, most))
		if need := r.Prepare + perItem*time.Duration(m.Body.(*protocol.Work).Range.Len()); need <= most {
			return need, r
		}
		missed++
		r.Outcome, r.Progress = job.DeadlineKilled, m.Body.(*protocol.Work).Range.From+max(0, int64((most-r.Prepare)/perItem))
		return most, r
	}
	spec := items(t, "a", 2000, 100, 4)
	spec.PerUnit, spec.MaxFailures = perItem, 3
	spec.Launch.Files, spec.Launch.Bytes = 2000, 16<<20
	w.submit(spec)
	w.until(time.Hour)
	finished(t, w, "a")
	j, _ := w.z.Job(w.now, "a")
	if missed > 0 {
		t.Errorf("%d deadlines were missed, want none: %+v", missed, j.History)
	}
	if j.Prepare != took || !j.PrepareSeen || j.History[0].Prepare != unpack+took {
		t.Errorf("a start is shown to be planned with %v (seen: %v), and the first took %v; want %v and %v", j.Prepare, j.PrepareSeen,
			j.History[0].Prepare, took, unpack+took)
	}
	if j.RateP95 > 2*perItem {
		t.Errorf("a unit of %v is planned with %v: the start is part of it", perItem, j.RateP95)
	}
}

// TestARigidJobIsServedAgainAfterASlowStart: its place is planned by its spec alone, whatever its last start took, so what is
// asked of the node is all of it.
func TestARigidJobIsServedAgainAfterASlowStart(t *testing.T) {
	w := newWorld(t, 1024, 1024)
	runs := 0
	w.run = func(m *protocol.Message) (time.Duration, job.Result) {
		if runs++; runs == 1 {
			return 3 * time.Second, job.Result{Outcome: job.Lost, Prepare: time.Second, Detail: "its supervisor died"}
		}
		return m.Body.(*protocol.Work).Plan.Run, job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To,
			Prepare: time.Second}
	}
	for _, n := range []int{1, 2} {
		spec := rigid(t, map[int]string{1: "alone", 2: "gang"}[n], 20*time.Second, 100, n)
		spec.Launch.Files, spec.Launch.Bytes = 10, 1<<20
		runs = 0
		w.submit(spec)
		w.until(time.Duration(n) * 10 * time.Minute)
		finished(t, w, spec.Name)
		if j, _ := w.z.Job(w.now, spec.Name); runs != 2 || j.Prepare != 30*time.Millisecond || j.PrepareSeen {
			t.Errorf("%s: %d runs, a start is planned with %v (seen: %v)", spec.Name, runs, j.Prepare, j.PrepareSeen)
		}
	}
}
