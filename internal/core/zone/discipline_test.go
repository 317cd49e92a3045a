package zone_test

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/policy/shortest"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestDisciplines: two slices, one of them taken for 100 s. In order of submission wait a pair that needs both, a long job
// and a short one that fits before the pair's place.
func TestDisciplines(t *testing.T) {
	for _, c := range []struct {
		name   string
		rigid  backfill.Discipline
		starts map[job.ID]time.Duration
	}{
		{"easy", backfill.Discipline{}, map[job.ID]time.Duration{"pair": 100 * time.Second, "long": 160 * time.Second, "short": 0}},
		{"strict first come", backfill.Discipline{Reserve: 1}, map[job.ID]time.Duration{"pair": 100 * time.Second,
			"long": 160 * time.Second, "short": 160 * time.Second}},
		{"first fit", backfill.Discipline{Overtake: true}, map[job.ID]time.Duration{"pair": 300 * time.Second, "long": 0,
			"short": 100 * time.Second}},
		{"gangs alone", backfill.Discipline{Reserve: 1, Overtake: true, Gangs: true}, map[job.ID]time.Duration{"pair": 100 * time.Second,
			"long": 160 * time.Second, "short": 0}},
		{"conservative", backfill.Discipline{Reserve: 99, Overtake: true}, map[job.ID]time.Duration{"pair": 100 * time.Second,
			"long": 160 * time.Second, "short": 0}},
	} {
		w := newWorld(t, 1024, 1024)
		w.config.Rigid, w.config.Policy = c.rigid, fifo.Policy{}
		w.z = w.make()
		begin := w.now
		w.slices[1].busy = []protocol.Reservation{{ID: 99, Kind: protocol.ForServing, Start: begin, End: begin.Add(100 * time.Second)}}
		w.settle()
		for _, s := range []*job.Spec{rigid(t, "pair", 60*time.Second, 800, 2), rigid(t, "long", 300*time.Second, 800, 1),
			rigid(t, "short", 90*time.Second, 800, 1)} {
			w.submit(s)
			w.settle()
			w.now = w.now.Add(time.Millisecond) // in this order
		}
		if e, _ := w.z.Explain(w.now, "long"); c.name == "strict first come" && !strings.Contains(e.Job.Reason, "in order") {
			t.Errorf("%s: long waits and says %q", c.name, e.Job.Reason)
		}
		w.until(30 * time.Minute)
		finished(t, w, "pair", "long", "short")
		for name, want := range c.starts {
			if j, _ := w.z.Job(w.now, name); j.Started.Sub(begin).Round(2*time.Second) != want {
				t.Errorf("%s: %s started after %v, want %v", c.name, name, j.Started.Sub(begin), want)
			}
		}
	}
}

// TestPolicyOrdersJobsOfOneSlice: where gangs alone stand in line no place is kept for the others, and the policy puts the short one
// first, though it came last.
func TestPolicyOrdersJobsOfOneSlice(t *testing.T) {
	w := newWorld(t, 1024)
	w.config.Rigid, w.config.Policy = backfill.Discipline{Reserve: 1, Overtake: true, Gangs: true}, shortest.Policy{}
	w.z = w.make()
	for _, s := range []*job.Spec{rigid(t, "first", 50*time.Second, 800, 1), rigid(t, "long", 300*time.Second, 800, 1),
		rigid(t, "short", 90*time.Second, 800, 1)} {
		w.submit(s)
		w.settle()
		w.now = w.now.Add(time.Millisecond)
		for _, r := range w.slices[0].busy {
			if r.Kind == protocol.ForRigid {
				t.Errorf("a place is kept for %s", r.Job)
			}
		}
	}
	if e, _ := w.z.Explain(w.now, "long"); e.Job.StartLate == 0 || !strings.Contains(e.Prospect, "1 job is ahead") {
		t.Errorf("long can start until %v: %s", e.Job.StartLate, e.Prospect)
	}
	w.until(30 * time.Minute)
	finished(t, w, "first", "long", "short")
	long, _ := w.z.Job(w.now, "long")
	if short, _ := w.z.Job(w.now, "short"); short.Started >= long.Started {
		t.Errorf("short started at %v, long at %v", short.Started, long.Started)
	}
}

// TestEveryHeadKeepsItsPlace: with a reservation for each of them, who comes later delays nobody.
func TestEveryHeadKeepsItsPlace(t *testing.T) {
	w := newWorld(t, 1024)
	w.config.Rigid = backfill.Discipline{Reserve: 99, Overtake: true}
	w.z = w.make()
	promised := map[job.ID]quantity.Instant{}
	for i, s := range []*job.Spec{rigid(t, "a", 50*time.Second, 800, 1), rigid(t, "b", 60*time.Second, 800, 1),
		rigid(t, "c", 20*time.Second, 800, 1), rigid(t, "d", 70*time.Second, 800, 1)} {
		w.submit(s)
		w.settle()
		for _, r := range w.slices[0].busy {
			if r.Kind == protocol.ForRigid && promised[r.Job] == 0 {
				promised[r.Job] = r.Start
			}
		}
		if len(promised) != i { // the first one runs
			t.Errorf("after %s places are promised to %v", s.Name, promised)
		}
	}
	w.until(30 * time.Minute)
	finished(t, w, "a", "b", "c", "d")
	for name, at := range promised {
		if j, _ := w.z.Job(w.now, name); j.Started > at.Add(time.Second) {
			t.Errorf("%s started %v after the place it was promised", name, j.Started.Sub(at))
		}
	}
}
