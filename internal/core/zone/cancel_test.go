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
)

// withinAMinute is what people are told of a cancellation.
const withinAMinute = time.Minute

// cancel is the gate's word that a job's owner cancelled it then; the gate repeats it until the job is over.
func (w *world) cancel(id job.ID, at quantity.Instant) {
	said := &protocol.Cancellation{Text: "by its owner", At: at}
	w.step(protocol.Message{Kind: protocol.Cancel, Job: id, Epoch: 1, Body: said, From: protocol.Address{Role: protocol.Gate}})
}

// cancelled cancels a job now, and returns how long it took to end; it is to be within a minute. Meanwhile is called with every tick.
func (w *world) cancelled(id job.ID, meanwhile func(since time.Duration)) time.Duration {
	at := w.now
	if was, again := w.dropped[id]; again {
		at = was
	}
	for said := quantity.Instant(0); ; {
		if w.now.Sub(said) >= time.Second {
			said = w.now
			w.cancel(id, at)
		}
		if end := w.ended(id); end != 0 {
			if end.Sub(at) > withinAMinute {
				w.t.Fatalf("job %s was cancelled, and is over %v later", id, end.Sub(at))
			}
			return end.Sub(at)
		}
		if w.now.Sub(at) > withinAMinute {
			j, _ := w.z.Job(w.now, id)
			w.t.Fatalf("job %s was cancelled %v ago, and is %v: %s", id, w.now.Sub(at), j.State, j.Reason)
		}
		w.tick()
		if meanwhile != nil {
			meanwhile(w.now.Sub(at))
		}
	}
}

// ended is when a job got its verdict, 0 if it has none.
func (w *world) ended(id job.ID) quantity.Instant {
	for i := range w.facts {
		if f := &w.facts[i]; f.Kind == protocol.Ended && f.Job == id {
			return f.At
		}
	}
	return 0
}

// again begins the second life of a job.
func (w *world) again(s *job.Spec) {
	delete(w.closed, s.Name)
	w.step(protocol.Message{
		Kind: protocol.Adopt, Job: s.Name, Epoch: 1, Generation: 2, Body: &protocol.Adoption{Since: 1, Spec: s, At: w.now},
		From: protocol.Address{Role: protocol.Gate},
	})
}

// once calls it when so much time has passed, one time.
func once(after time.Duration, do func()) func(time.Duration) {
	return func(since time.Duration) {
		if since >= after && do != nil {
			do()
			do = nil
		}
	}
}

// saysOf has the first slice's node say something of a subjob.
func (w *world) saysOf(token job.Token, id job.ID, kind protocol.Kind, body protocol.Body) {
	to := protocol.Address{Role: protocol.Zone, ID: "z"}
	w.step(protocol.Message{Kind: kind, From: w.slices[0].at(), To: to, Token: token, Job: id, Body: body})
}

// stopped counts what the zone tells nodes to stop without grace, in what it said last.
func (w *world) stopped(token job.Token) (n int) {
	for _, m := range w.out.Effects {
		if m.Kind == protocol.Stop && m.Token == token && m.Body.(*protocol.Halt).Now {
			n++
		}
	}
	return n
}

// refuses says whether the late result of a subjob is answered with nothing that counts.
func (w *world) refuses(token job.Token, id job.ID) bool {
	r := &job.Result{Outcome: job.Done, Progress: 20, Start: w.now - 1, End: w.now}
	w.saysOf(token, id, protocol.Result, &protocol.Conclusion{Slice: "s0", Range: job.Range{To: 20}, Result: r})
	for _, m := range w.out.Effects {
		if m.Kind == protocol.ResultAck && m.Token == token {
			return m.Body.(*protocol.Acknowledgement).Range.Empty()
		}
	}
	return false
}

// TestACancelledSubjobKeepsHalfAMinuteOfItsGrace: a program that does not end when it is told to is ended then, and one with a grace of
// less has all of it.
func TestACancelledSubjobKeepsHalfAMinuteOfItsGrace(t *testing.T) {
	for _, c := range []struct {
		grace    time.Duration
		restart  bool
		cut      time.Duration // when it is told to end without grace; 0: never
		from, to time.Duration // when the job is over
	}{
		{time.Hour, false, 30 * time.Second, 30 * time.Second, 35 * time.Second},
		{time.Hour, true, 30 * time.Second, 30 * time.Second, 35 * time.Second},
		{31 * time.Second, false, 30 * time.Second, 30 * time.Second, 35 * time.Second},
		{20 * time.Second, false, 0, 20 * time.Second, 25 * time.Second},
		{30 * time.Second, true, 0, 30 * time.Second, 35 * time.Second},
	} {
		w := newWorld(t, 1024)
		w.config.Horizon = 4 * time.Hour
		w.z = w.make()
		s := items(t, "a", 2000, 100, 1)
		s.Launch.Grace = c.grace
		w.submit(s)
		var asked, cut quantity.Instant
		w.lose = func(m *protocol.Message) bool { // its program does not care for SIGTERM
			if m.Kind != protocol.Stop {
				return false
			}
			if asked == 0 {
				asked = w.now
			}
			if m.Body.(*protocol.Halt).Now && cut == 0 {
				cut = w.now
			}
			return !m.Body.(*protocol.Halt).Now && w.now < asked.Add(c.grace)
		}
		for len(w.slices[0].runs) == 0 || w.slices[0].runs[0].result.Start > w.now-5 {
			w.tick()
		}
		at := w.now
		var restart func()
		if c.restart {
			restart = w.restart
		}
		if took := w.cancelled("a", once(15*time.Second, restart)); took < c.from || took > c.to {
			t.Errorf("%+v: it is over after %v", c, took)
		}
		if c.cut == 0 && cut != 0 || c.cut != 0 && (cut.Sub(at) < c.cut || cut.Sub(at) > c.cut+2*time.Second) {
			t.Errorf("%+v: its grace is cut after %v", c, cut.Sub(at))
		}
	}
}

// TestACancelDoesNotWaitForAStore: the output of a cancelled job's subjob is not waited for when storing it takes long, and its late result
// counts for nothing.
func TestACancelDoesNotWaitForAStore(t *testing.T) {
	for _, restart := range []bool{false, true} {
		w := newWorld(t, 1024)
		w.config.Horizon = 4 * time.Hour
		w.z = w.make()
		s, hurried := items(t, "a", 20, 100, 1), quantity.Never
		s.Launch.Grace = time.Hour // it has ended: no more of it is cut
		w.submit(s)
		w.lose = func(m *protocol.Message) bool {
			if m.Kind == protocol.Stop && m.Body.(*protocol.Halt).Now {
				hurried = min(hurried, w.now)
			}
			return m.Kind == protocol.Result
		}
		for len(w.slices[0].runs) == 0 || !w.slices[0].runs[0].ended {
			w.tick()
		}
		token, said := w.slices[0].runs[0].m.Token, quantity.Instant(0)
		again := once(40*time.Second, w.restart)
		took := w.cancelled("a", func(since time.Duration) {
			if w.now.Sub(said) >= time.Second {
				said = w.now
				w.saysOf(token, "a", protocol.Report, &protocol.Observation{Slice: "s0", Progress: 20, At: w.now, Storing: true})
				said := "what 1 subjobs have left is being stored; it is over in"
				if j, _ := w.z.Job(w.now, "a"); !j.State.Final() && !strings.Contains(j.Reason, said) {
					t.Errorf("it waits for a store and says %q", j.Reason)
				}
			}
			if restart {
				again(since)
			}
		})
		if took < 50*time.Second {
			t.Errorf("what it left is given up after %v", took)
		}
		f := w.released(token)
		if f == nil || !strings.Contains(f.Body.(*protocol.ClaimEnd).Text, "not stored 50s later") {
			t.Errorf("given up: %+v", f)
		} else if !restart && hurried < f.At { // a home that has just started does not know yet that it stores
			t.Errorf("what is being stored is told to end at once %v before it is given up", f.At.Sub(hurried))
		}
		w.saysOf(token, "a", protocol.Report, &protocol.Observation{Slice: "s0", Progress: 20, At: w.now, Storing: true})
		if w.stopped(token) != 1 {
			t.Error("a node that stores on is not told to stop")
		}
		if !w.refuses(token, "a") {
			t.Error("its late result counts")
		}
		if w.saysOf(token, "a", protocol.Report, &protocol.Observation{Slice: "s0", At: w.now, Remains: true}); w.stopped(token) != 0 {
			t.Error("a node that can't end something is told to, again and again")
		}
	}
}

// TestACancelDoesNotWaitForAPublication: all of it is done, and its node does not say that the output is in its place. Within the minute
// that still counts; then the job is over as cancelled. What is committed stays, its output comes when the node is heard, and another
// life of the job has nothing left to do.
func TestACancelDoesNotWaitForAPublication(t *testing.T) {
	for _, c := range []struct {
		heard   time.Duration
		restart bool
		state   job.State
	}{
		{20 * time.Second, false, job.Finished}, {20 * time.Second, true, job.Finished},
		{time.Hour, false, job.Cancelled}, {time.Hour, true, job.Cancelled},
	} {
		w := newWorld(t, 1024)
		w.submit(items(t, "a", 20, 100, 1))
		at := quantity.Never
		w.lose = func(m *protocol.Message) bool { return m.Kind == protocol.Published && w.now < at.Add(c.heard) }
		for w.count(protocol.Committed) == 0 {
			w.tick()
		}
		w.tick()
		at = w.now
		var restart func()
		if c.restart {
			restart = w.restart
		}
		again := once(10*time.Second, restart)
		w.cancelled("a", func(since time.Duration) {
			j, _ := w.z.Job(w.now, "a")
			said := "its last output is being put in its place on n; it is over in"
			if again(since); !j.State.Final() && since < 10*time.Second && !strings.Contains(j.Reason, said) {
				t.Errorf("it waits for its output and says %q", j.Reason)
			}
		})
		w.until(time.Minute)
		v := w.closed["a"]
		if v.State != c.state || c.state == job.Cancelled && !strings.Contains(v.Reason, "the output of 20 units") {
			t.Fatalf("%+v: it is %v", c, v)
		}
		if c.state == job.Finished {
			continue
		}
		w.lose = nil
		for w.count(protocol.OutputPublished) == 0 && w.now < at.Add(10*time.Minute) {
			w.tick()
		}
		if j, _ := w.z.Job(w.now, "a"); j.Progress != 20 || j.State != job.Cancelled {
			t.Errorf("its node was heard: %d of 20 units, %v", j.Progress, j.State)
		}
		w.again(items(t, "a", 20, 100, 1))
		w.until(time.Minute)
		finished(t, w, "a")
	}
}

// TestAPauseIsNoSilenceOfAPublication: the daemon was paused for the rest of the minute, and its node is heard first.
func TestAPauseIsNoSilenceOfAPublication(t *testing.T) {
	w := newWorld(t, 1024)
	w.submit(items(t, "a", 20, 100, 1))
	held := true
	w.lose = func(m *protocol.Message) bool { return m.Kind == protocol.Published && held }
	for w.count(protocol.Committed) == 0 {
		w.tick()
	}
	w.tick()
	w.cancel("a", w.now)
	w.now = w.now.Add(2 * time.Minute)
	held = false
	w.step(protocol.Message{Kind: protocol.Tick})
	w.until(time.Minute)
	finished(t, w, "a")
}

// TestAnotherLifeWaitsForWhatIsNotPublished: the job was cancelled before its node was heard, and is run again before it is: there is
// nothing to sell of it.
func TestAnotherLifeWaitsForWhatIsNotPublished(t *testing.T) {
	w := newWorld(t, 1024)
	w.submit(items(t, "a", 20, 100, 1))
	w.lose = func(m *protocol.Message) bool { return m.Kind == protocol.Published }
	for w.count(protocol.Committed) == 0 {
		w.tick()
	}
	w.cancelled("a", nil)
	w.until(time.Minute)
	w.again(items(t, "a", 20, 100, 1))
	for range 20 {
		w.tick()
	}
	w.restart()
	if j, _ := w.z.Job(w.now, "a"); j.State != job.Running || w.count(protocol.Claimed) != 1 {
		t.Errorf("it is %v (%s), %d subjobs were sold", j.State, j.Reason, w.count(protocol.Claimed))
	}
	w.lose = nil
	w.until(5 * time.Minute)
	finished(t, w, "a")
}

// TestACancelDoesNotWaitForANodeThatIsOff: the machine is gone, or comes back later and reports its subjobs: they are stopped, and count
// for nothing.
func TestACancelDoesNotWaitForANodeThatIsOff(t *testing.T) {
	for _, of := range []string{"one slice", "a gang", "a restart"} {
		w := newWorld(t, 512, 512, 512)
		s := items(t, "a", 500, 100, 1)
		if of == "a gang" {
			w.oneNodeEach()
			s = rigid(t, "a", 8*time.Minute, 400, 3)
			s.Topology = job.SameZone
		}
		w.submit(s)
		for len(w.slices[0].runs) == 0 {
			w.tick()
		}
		for range 3 {
			w.tick()
		}
		r := w.slices[0].runs[0]
		token := r.m.Token
		w.cut = w.now.Add(5 * time.Minute)
		w.lose = func(m *protocol.Message) bool { return m.To.Role == protocol.Node && w.now < w.cut }
		var restart func()
		if of == "a restart" {
			restart = w.restart
		}
		if took := w.cancelled("a", once(20*time.Second, restart)); took < 50*time.Second {
			t.Errorf("%s: its node is given up after %v", of, took)
		}
		w.now = w.cut
		for _, said := range []struct {
			kind protocol.Kind
			body protocol.Body
		}{
			{protocol.Leased, &protocol.Holding{Slice: "s0"}}, {protocol.Running, &protocol.Beginning{At: w.now}},
			{protocol.Report, &protocol.Observation{Slice: "s0", At: w.now}},
		} {
			if w.saysOf(token, "a", said.kind, said.body); w.stopped(token) != 1 {
				t.Errorf("%s: its node comes back with it (%d), and is told %d times to end it", of, said.kind, w.stopped(token))
			}
		}
		for range 20 {
			w.tick()
		}
		if !r.acked {
			t.Errorf("%s: it runs on", of)
		}
		if w.count(protocol.Committed) != 0 || w.count(protocol.Ended) != 1 {
			t.Errorf("%s: %d commits, %d ends", of, w.count(protocol.Committed), w.count(protocol.Ended))
		}
	}
}

// TestEveryNodeIsToldWhatIsGivenUp: to end it at once, each node of a gang too.
func TestEveryNodeIsToldWhatIsGivenUp(t *testing.T) {
	for _, members := range []int{1, 3} {
		w := newWorld(t, 512, 512, 512)
		w.oneNodeEach()
		s := rigid(t, "a", 8*time.Minute, 400, members)
		s.Topology = job.SameZone
		w.submit(s)
		told, nodes := map[job.Token]bool{}, map[string]bool{}
		w.lose = func(m *protocol.Message) bool { // their programs do not care for SIGTERM, and have a grace of less than the minute
			if m.Kind == protocol.Stop && m.Body.(*protocol.Halt).Now {
				told[m.Token], nodes[m.To.ID] = true, true
			}
			return m.Kind == protocol.Stop
		}
		for w.count(protocol.Claimed) == 0 || len(w.slices[0].runs) == 0 {
			w.tick()
		}
		for range 3 {
			w.tick()
		}
		w.cancelled("a", nil)
		w.tick()
		if len(told) != members || len(nodes) != members {
			t.Errorf("of %d members %d are told to end, at nodes %v", members, len(told), nodes)
		}
	}
}

// TestAReportThatItsResultOvertookStopsNothing: its subjob, or member of a gang, has ended and is settled.
func TestAReportThatItsResultOvertookStopsNothing(t *testing.T) {
	for _, members := range []int{1, 3} {
		w := newWorld(t, 512, 512, 512)
		w.oneNodeEach()
		s := rigid(t, "a", 20*time.Second, 400, members)
		s.Topology = job.SameZone
		w.submit(s)
		var tokens []job.Token
		w.lose = func(m *protocol.Message) bool {
			if m.Kind == protocol.Running && !slices.Contains(tokens, m.Token) {
				tokens = append(tokens, m.Token)
			}
			return false
		}
		w.until(time.Minute)
		finished(t, w, "a")
		if len(tokens) != members {
			t.Fatalf("%d members began as %v", members, tokens)
		}
		for _, token := range tokens {
			if w.saysOf(token, "a", protocol.Running, &protocol.Beginning{At: w.now}); w.stopped(token) != 0 {
				t.Errorf("of %d members %v is told to stop", members, token)
			}
		}
	}
}

// TestACancelThatIsRepeatedCountsFromTheFirst, and one without a time from when it was heard; one of the future from then too.
func TestACancelThatIsRepeatedCountsFromTheFirst(t *testing.T) {
	for _, c := range []struct{ at, want time.Duration }{
		{-40 * time.Second, 10 * time.Second}, {0, 50 * time.Second}, {time.Hour, 50 * time.Second}, {-time.Hour, 0},
	} {
		w := newWorld(t, 512)
		w.submit(items(t, "a", 500, 100, 1))
		for len(w.slices[0].runs) == 0 {
			w.tick()
		}
		w.lose = func(m *protocol.Message) bool { return m.Kind == protocol.Stop || m.Kind == protocol.Result }
		w.now = w.now.Add(2 * time.Second)
		heard, at := w.now, w.now.Add(c.at)
		if c.at == 0 {
			at = 0
		}
		for w.ended("a") == 0 && w.now < heard.Add(2*time.Minute) {
			w.cancel("a", at)
			w.tick()
		}
		if took := w.ended("a").Sub(heard); took < c.want || took > c.want+4*time.Second {
			t.Errorf("asked for at %v: over after %v, want %v", c.at, took, c.want)
		}
	}
}

// TestACancelIsFinalWithinAMinute from any state, whatever programs, nodes and stores do, with restarts; the index decides as the plain
// pass does.
func TestACancelIsFinalWithinAMinute(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := drawer(rt)
		w := roughWorld(rt, draw)
		// What each subjob, its node or its store does for ever: nothing that is wrong, not hear SIGTERM, hear nothing, store, keep its
		// result to itself, not say that its output is in its place.
		const ways = 6
		way := func(t job.Token) uint64 { return (t.Seq*2654435761 + uint64(t.Epoch)) >> 3 % ways }
		w.lose = func(m *protocol.Message) bool {
			switch way(m.Token) {
			case 1:
				return m.Kind == protocol.Stop && !m.Body.(*protocol.Halt).Now
			case 2:
				return m.Kind == protocol.Stop
			case 3, 4:
				return m.Kind == protocol.Result
			case 5:
				return m.Kind == protocol.Published
			}
			return false
		}
		said := quantity.Instant(0)
		stores := func() { // each second until it is acknowledged, which it never is
			if w.now.Sub(said) < time.Second || w.now < w.cut {
				return
			}
			said = w.now
			for _, s := range w.slices {
				for _, r := range s.runs {
					if r.ended && way(r.m.Token) == 3 {
						w.saysOf(r.m.Token, r.m.Job, protocol.Report, &protocol.Observation{Slice: s.view.ID, At: w.now, Storing: true})
					}
				}
			}
		}
		jobs, ticks := rapid.IntRange(1, 12).Draw(rt, "jobs"), rapid.IntRange(1, 150).Draw(rt, "ticks before")
		for range ticks {
			if n := len(w.adopted); n < jobs && draw(2) == 0 {
				s := w.drawJob(rt, draw, n)
				s.Launch.Grace = []time.Duration{0, 5 * time.Second, time.Minute, time.Hour}[draw(4)]
				w.submit(s)
			}
			if w.disturb(draw); draw(30) == 0 {
				w.restart()
			}
			w.tick()
			stores()
		}
		names := slices.Sorted(maps.Keys(w.adopted))
		if len(names) == 0 {
			return
		}
		if name := names[draw(len(names))]; w.ended(name) == 0 {
			delete(w.dropped, name) // a restart forgets a cancellation whose time the gate does not give: the minute begins anew
			if draw(3) == 0 {
				w.cut = w.now.Add(10 * time.Minute)
			}
			w.restart()
			again := []func(time.Duration){once(time.Hour, nil), once(time.Duration(draw(60))*time.Second, w.restart)}[draw(2)]
			w.cancelled(name, func(since time.Duration) { again(since); stores() })
		}
	})
}
