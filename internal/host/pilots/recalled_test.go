package pilots

import (
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/pilot"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/edge/provider/fake"
)

// What the host's jobs waited for a pilot is told: from the look that showed it to the pilot's end, and of no other pilot.
func TestHostsJobsHaveWaited(t *testing.T) {
	w := testWorld(t)
	var waits []string
	w.driver.o.Waited = func(pool string, from, until quantity.Instant) {
		waits = append(waits, pool+" "+until.Sub(from).String())
	}
	name := w.runs()
	w.host.Preempt(name)
	w.looks(3, seconds(5)) // the first after 5 s
	if len(waits) != 0 {
		t.Errorf("it runs yet: %v", waits)
	}
	w.unlink(name)
	w.host.End(name, false)
	w.looks(2, seconds(5))
	other := w.runs()
	w.host.End(other, false)
	w.unlink(other)
	w.looks(4, time.Minute)
	if len(w.recorded()) > 0 || !slices.Equal(waits, []string{"pool 10s"}) {
		t.Errorf("waits are %v, want one of 10s; in the ledger %v", waits, w.recorded())
	}
}

// Nothing is left to run on a machine for which somebody waits; one that only ends earlier is used up to its hand-over.
func TestWhoIsWaitedForEndsAtOnce(t *testing.T) {
	w := testWorld(t)
	preempted, shorter := w.runs(), w.runs()
	w.host.Preempt(preempted)
	ends := w.now.Add(fake.Grace)
	m := w.cluster.all[job.NodeID(shorter)]
	m.Until = w.now.Add(10 * time.Hour) // it does not know its host's end
	w.cluster.all[job.NodeID(shorter)] = m
	later := w.pilot(shorter).Started.Add(w.pilot(shorter).Length)
	w.looks(1, seconds(5))
	now := quantity.At(w.now)
	if x := w.cluster.closings[job.NodeID(preempted)]; x.From != 0 || x.Until != quantity.At(ends) {
		t.Errorf("preempted: it is closed from %v on, until %v, want at once", x.From, x.Until.Sub(now))
	}
	if x := w.cluster.closings[job.NodeID(shorter)]; x.From != later.Add(-w.pool.HandOver) || x.Until != later {
		t.Errorf("shorter: it is closed from %v on, until %v", x.From.Sub(now), x.Until.Sub(now))
	}
	if w.pilot(preempted).State != supply.Leaving {
		t.Errorf("%+v", w.pilot(preempted))
	}
}

// A machine that joined after its host had moved its end has known that end from the start: it is told once all the same that it ends at
// once, also where it was closed by that end before.
func TestWhoIsWaitedForKnowsItsEnd(t *testing.T) {
	w := testWorld(t)
	name := job.NodeID(w.runs())
	w.host.Preempt(string(name))
	ends := w.now.Add(fake.Grace)
	m := w.cluster.all[name]
	m.Until = ends
	w.cluster.all[name] = m
	w.looks(1, seconds(5))
	if x, is := w.cluster.closings[name]; !is || x.From != 0 || x.Until != quantity.At(ends) {
		t.Errorf("%+v, %v: want it closed at once", x, is)
	}
	delete(w.cluster.closings, name)
	w.looks(3, seconds(1))
	if x, is := w.cluster.closings[name]; is {
		t.Errorf("closed again: %+v", x)
	}
}

// What is closed before its end and then waited for ends at once.
func TestWhoEndsEarlierIsWaitedFor(t *testing.T) {
	r := pilot.Record{Name: "p", Length: time.Hour, Started: 1, Joined: 1}
	now, end := quantity.Instant(time.Minute), quantity.Instant(10*time.Minute)
	c, m := pilot.Copy{State: pilot.Running, Alive: 1, Began: 1, End: end}, pilot.Machine{Joined: 1, Until: end.Add(time.Hour), Up: true}
	x, is := r.Shorter(now, &c, &m, time.Minute, pilot.Closing{})
	if want := (pilot.Closing{From: end.Add(-time.Minute), Until: end, Why: x.Why}); !is || x != want {
		t.Fatalf("%+v, %v; want %+v", x, is, want)
	}
	if again, more := r.Shorter(now, &c, &m, time.Minute, x); more {
		t.Errorf("closed again: %+v", again)
	}
	c.Preempted = true
	if x, is = r.Shorter(now, &c, &m, time.Minute, x); !is || x.From != 0 || x.Until != end {
		t.Errorf("%+v, %v: want it closed at once", x, is)
	}
	if again, more := r.Shorter(now, &c, &m, time.Minute, x); more {
		t.Errorf("closed again: %+v", again)
	}
}

// A machine that dies as it is told to close never answers. The driver goes on, and asks again.
func TestAMachineThatNeverAnswers(t *testing.T) {
	w := testWorld(t)
	deaf, other := w.runs(), w.runs()
	w.cluster.deaf = map[job.NodeID]bool{job.NodeID(deaf): true}
	w.host.Preempt(deaf)
	w.host.Preempt(other)
	w.looks(1, seconds(1))
	if _, is := w.cluster.closings[job.NodeID(other)]; !is {
		t.Error("the other is not closed")
	}
	delete(w.cluster.deaf, job.NodeID(deaf))
	w.looks(1, seconds(1))
	if _, is := w.cluster.closings[job.NodeID(deaf)]; !is {
		t.Error("it is not asked again")
	}
}
