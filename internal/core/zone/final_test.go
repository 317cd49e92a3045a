package zone_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

const (
	// unconfirmed is how long a job of which nothing else is left waits for its output to be published (docs/job.md).
	unconfirmed = 30 * time.Minute
	// stopping is how long a job that is to end waits for a subjob that was told to, beyond its grace, and as long again for what that
	// has left to be stored.
	stopping = 10 * time.Minute
)

// shown is job a as people see it.
func shown(w *world) status.Job {
	j, _ := w.z.Job(w.now, "a")
	return j
}

// halfway runs a job until half of it is committed and the rest fails, or, if whole, until all is; nothing of it is published.
func halfway(t *testing.T, whole bool) (*world, quantity.Instant) {
	w := newWorld(t, 1024)
	w.lose = func(m *protocol.Message) bool { return m.Kind == protocol.Published }
	if whole {
		w.submit(items(t, "a", 20, 100, 1))
	} else {
		w.run = func(m *protocol.Message) (time.Duration, job.Result) {
			if from := m.Body.(*protocol.Work).Range.From; from > 0 {
				return time.Second, job.Result{Outcome: job.ExitFailed, ExitCode: 1, Progress: from}
			}
			return m.Body.(*protocol.Work).Plan.Wall, job.Result{Outcome: job.Yielded, Progress: 10, Checkpoint: true}
		}
		w.submit(steps(t, "a", 20, 10, 100))
	}
	for over := func() bool { return whole && w.committed("a") == 20 || strings.HasPrefix(shown(w).Reason, "ending") }; !over(); {
		w.tick()
	}
	return w, w.now
}

// TestAJobIsOverThoughItsOutputIsNeverConfirmed: whether it is done or has failed. Until then it says what it waits for and for how long;
// what is committed stays, and is shown once its node is heard. Another life of one that is done has nothing left to do.
func TestAJobIsOverThoughItsOutputIsNeverConfirmed(t *testing.T) {
	for _, c := range []struct{ whole, restart bool }{{true, false}, {true, true}, {false, false}, {false, true}} {
		w, at := halfway(t, c.whole)
		claims, units := w.count(protocol.Claimed), map[bool]string{true: "20 units [0,20)", false: "10 units [0,10)"}[c.whole]
		if c.restart {
			for w.now.Sub(at) < unconfirmed/2 {
				w.tick()
			}
			w.restart()
			at = w.now // a home that came back counts from its start
		}
		for w.ended("a") == 0 && w.now.Sub(at) < 2*unconfirmed {
			if j := shown(w); !strings.Contains(j.Reason, "put in its place on n") || !strings.Contains(j.Reason, units) ||
				!strings.Contains(j.Reason, "it is FAILED in") {
				t.Fatalf("%+v: it waits and says %q", c, j.Reason)
			}
			w.tick()
		}
		if took := w.ended("a").Sub(at); w.ended("a") == 0 || took < unconfirmed-3*time.Second || took > unconfirmed+5*time.Second {
			t.Fatalf("%+v: it is over after %v", c, took)
		}
		j := shown(w)
		said := "node n did not say within 30m0s that the output of " + units + " is in its place"
		if j.State != job.Failed || !strings.Contains(j.Reason, said) ||
			c.whole != strings.Contains(j.Reason, "all of it was done") || j.Progress != 0 {
			t.Errorf("%+v: it is %v with %d units: %q", c, j.State, j.Progress, j.Reason)
		}
		if w.count(protocol.Claimed) != claims {
			t.Errorf("%+v: more of it was sold", c)
		}
		w.restart()
		w.lose = nil
		for w.count(protocol.OutputPublished) == 0 && w.now.Sub(at) < 3*unconfirmed {
			w.tick()
		}
		if j = shown(w); j.State != job.Failed || j.Progress == 0 {
			t.Errorf("%+v: its node was heard: %v with %d units", c, j.State, j.Progress)
		}
		if c.whole {
			w.again(items(t, "a", 20, 100, 1))
			w.until(time.Minute)
			finished(t, w, "a")
		}
	}
}

// TestAnotherLifeHasATimeOfItsOwnForItsOutput: it does not end by the time of the one before, and is over too.
func TestAnotherLifeHasATimeOfItsOwnForItsOutput(t *testing.T) {
	w, _ := halfway(t, true)
	w.until(2 * unconfirmed)
	if w.ended("a") == 0 {
		t.Fatal("its first life is not over")
	}
	w.again(items(t, "a", 20, 100, 1))
	at, ends := w.now, w.count(protocol.Ended)
	for w.count(protocol.Ended) == ends && w.now.Sub(at) < 2*unconfirmed {
		w.tick()
	}
	if took := w.now.Sub(at); took < unconfirmed-3*time.Second || took > unconfirmed+5*time.Second {
		t.Errorf("its second life is over after %v", took)
	}
}

// TestAPublicationDoesNotBeginTheWaitAnew: a node that publishes a little now and then does not keep a job for ever.
func TestAPublicationDoesNotBeginTheWaitAnew(t *testing.T) {
	w := newWorld(t, 1024)
	w.config.Horizon = 10 * time.Second
	w.z = w.make()
	w.submit(items(t, "a", 100, 100, 1))
	last, done := quantity.Instant(0), quantity.Instant(0)
	w.lose = func(m *protocol.Message) bool {
		if m.Kind != protocol.Published {
			return false
		}
		if done == 0 || w.now.Sub(max(last, done)) < 20*time.Minute {
			return true
		}
		last = w.now
		return false
	}
	for w.ended("a") == 0 && (done == 0 || w.now.Sub(done) < 3*time.Hour) {
		if w.tick(); done == 0 && w.committed("a") == 100 {
			done = w.now
		}
	}
	if took := w.ended("a").Sub(done); w.count(protocol.OutputPublished) == 0 || took < 0 || took > unconfirmed+5*time.Second {
		t.Errorf("it is over after %v, with %d of its subjobs published", took, w.count(protocol.OutputPublished))
	}
}

// TestAJobThatIsToFailSellsNothingAfterARestart: the home forgets the verdict that waits for its output, and finds it again.
func TestAJobThatIsToFailSellsNothingAfterARestart(t *testing.T) {
	w, _ := halfway(t, false)
	claims := w.count(protocol.Claimed)
	w.restart()
	for range 50 {
		w.tick()
	}
	if j := shown(w); w.count(protocol.Claimed) != claims || !strings.HasPrefix(j.Reason, "ending (3 times in a row") {
		t.Errorf("%d subjobs more were sold: %v, %q", w.count(protocol.Claimed)-claims, j.State, j.Reason)
	}
	w.lose = nil
	w.until(10 * time.Minute)
	if v := w.closed["a"]; v.State != job.Failed {
		t.Errorf("its output is there, and it is %v (%s)", v.State, v.Reason)
	}
}

// TestAJobThatIsToEndDoesNotWaitForANodeThatIsOff: its deadline is over, and its lease has no end, or one that is far. A program that has
// an hour of grace has it.
func TestAJobThatIsToEndDoesNotWaitForANodeThatIsOff(t *testing.T) {
	for _, c := range []struct {
		grace   time.Duration
		restart bool
	}{{5 * time.Second, false}, {5 * time.Second, true}, {time.Hour, false}} {
		w := newWorld(t, 1024)
		s := rigid(t, "a", 0, 100, 1)
		s.Deadline, s.Launch.Grace = w.now.Add(time.Hour), c.grace
		w.run = func(*protocol.Message) (time.Duration, job.Result) {
			return 1000 * time.Hour, job.Result{Outcome: job.Done}
		}
		w.submit(s)
		for len(w.slices[0].runs) == 0 {
			w.tick()
		}
		w.tick()
		w.cut = quantity.Never
		w.lose = func(m *protocol.Message) bool { return m.To.Role == protocol.Node }
		at := s.Deadline
		for w.ended("a") == 0 && w.now < at.Add(c.grace+3*stopping) {
			if c.restart && w.now > s.Deadline.Add(stopping/2) && at == s.Deadline {
				w.restart()
				at = w.now
			}
			w.tick()
		}
		took := w.ended("a").Sub(at)
		if w.ended("a") == 0 || took < c.grace+stopping || took > c.grace+stopping+10*time.Second || shown(w).State != job.Expired {
			t.Errorf("%+v: it is %v after %v: %s", c, shown(w).State, took, shown(w).Reason)
		}
		for _, f := range w.facts {
			if end, ok := f.Body.(*protocol.ClaimEnd); ok && f.Kind == protocol.Released && !strings.Contains(end.Text, "told to end") {
				t.Errorf("%+v: its claim is given up: %q", c, end.Text)
			}
		}
	}
}

// TestAJobThatIsGivenUpIsOverThoughItsOutputIsNeverConfirmed: no other zone may have it before, so it would wait here for ever.
func TestAJobThatIsGivenUpIsOverThoughItsOutputIsNeverConfirmed(t *testing.T) {
	w, s := parted(t)
	s.Deadline = quantity.Never
	w.lose = func(m *protocol.Message) bool { return m.Kind == protocol.Published }
	for shown(w).Running > 0 {
		w.tick()
	}
	at := w.now
	for w.ended("a") == 0 && w.now.Sub(at) < 2*unconfirmed {
		w.tick()
	}
	said := "did not say within 30m0s that the output of"
	if j := shown(w); j.State != job.Failed || !strings.HasPrefix(j.Reason, why) || !strings.Contains(j.Reason, said) ||
		w.ended("a").Sub(at) > unconfirmed+5*time.Second {
		t.Errorf("it is %v after %v: %q", j.State, w.ended("a").Sub(at), j.Reason)
	}
}

// committed is how many units of a job are.
func (w *world) committed(id job.ID) (n int64) {
	for _, f := range w.facts {
		if f.Kind == protocol.Committed && f.Job == id {
			n += f.Body.(*protocol.ClaimEnd).Range.Len()
		}
	}
	return n
}

// TestWhateverANodeDoesAJobIsFinalWithinABound from its deadline on, of every kind and with restarts. The index decides as the plain pass
// does.
func TestWhateverANodeDoesAJobIsFinalWithinABound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := drawer(rt)
		w := roughWorld(rt, draw)
		// What the node of each subjob does for ever: nothing that is wrong, not hear Stop, keep the result to itself, store, say that
		// processes remain, not say that output is in its place, say and hear nothing more.
		const ways = 8
		way := func(t job.Token) uint64 { return (t.Seq*2654435761 + uint64(t.Epoch)) >> 3 % ways }
		w.lose = func(m *protocol.Message) bool {
			switch way(m.Token) {
			case 1:
				return m.Kind == protocol.Stop
			case 2, 3, 4:
				return m.Kind == protocol.Result || m.Kind == protocol.Stop
			case 5, 6:
				return m.Kind == protocol.Published
			case 7:
				return m.Token != (job.Token{}) && m.Kind != protocol.Granted && m.Kind != protocol.Redeem
			}
			return false
		}
		said := quantity.Instant(0)
		says := func() { // each second until it is acknowledged, which it never is
			if w.now.Sub(said) < time.Second || w.now < w.cut {
				return
			}
			said = w.now
			for _, s := range w.slices {
				for _, r := range s.runs {
					if of := way(r.m.Token); of == 3 && r.ended || of == 4 && r.m.Body.(*protocol.Work).End < w.now {
						o := &protocol.Observation{Slice: s.view.ID, At: w.now, Storing: of == 3, Remains: of == 4}
						w.saysOf(r.m.Token, r.m.Job, protocol.Report, o)
					}
				}
			}
		}
		jobs, ticks := rapid.IntRange(1, 8).Draw(rt, "jobs"), rapid.IntRange(1, 150).Draw(rt, "ticks before")
		graces := []time.Duration{0, 5 * time.Second, time.Minute, time.Hour}
		for range ticks {
			if n := len(w.adopted); n < jobs && draw(2) == 0 {
				s := w.drawJob(rt, draw, n)
				s.Launch.Grace = graces[draw(4)]
				s.Deadline = w.now.Add(time.Duration(draw(3600)) * time.Second)
				if s.Kind == job.Rigid && s.Slices == 1 && draw(2) == 0 { // nothing bounds its lease
					s.Walltime, s.OnOverrun = 0, job.OverrunKills
				}
				w.submit(s)
			}
			if w.disturb(draw); draw(30) == 0 {
				w.restart()
			}
			w.tick()
			says()
		}
		from := w.now
		for _, s := range w.adopted {
			from = max(from, s.Deadline)
		}
		if draw(3) == 0 {
			w.cut = quantity.Never
		}
		if draw(2) == 0 {
			for at := w.now.Add(time.Duration(draw(7200)) * time.Second); w.now < at; says() {
				w.tick()
			}
			w.restart()
			from = max(from, w.now)
		}
		for _, name := range slices.Sorted(maps.Keys(w.adopted)) {
			by := from.Add(w.adopted[name].Launch.Grace + 2*stopping + unconfirmed + time.Minute)
			for ; w.ended(name) == 0; says() {
				if w.tick(); w.now > by {
					j, _ := w.z.Job(w.now, name)
					rt.Fatalf("job %s is %v %v after the last deadline or restart: %s", name, j.State, w.now.Sub(from), j.Reason)
				}
			}
		}
	})
}
