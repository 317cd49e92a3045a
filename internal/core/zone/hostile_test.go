package zone_test

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// keen answers every round with the same piece of its job, from the start of each window.
func keen(length int64) func(*protocol.Message) []protocol.Message {
	return func(m *protocol.Message) []protocol.Message {
		if m.Kind != protocol.Announce || len(callIn(m).Free) == 0 {
			return nil
		}
		var out []protocol.Variant
		for i, a := range callIn(m).Windows {
			from := callIn(m).Free[0].From
			r := job.Range{From: from, To: min(callIn(m).Free[0].To, from+length)}
			run := time.Duration(r.Len()) * time.Second
			out = append(out, protocol.Variant{ID: uint32(i), Window: a.Window, Range: r, Start: a.Start, Run: run, Wall: run,
				Score: 900_000})
		}
		return []protocol.Message{{Kind: protocol.Answer, Job: m.Job, Session: m.Session, Body: &protocol.Proposal{Round: callIn(m).Round,
			Variants: out}}}
	}
}

// mute hears everything and says nothing.
func mute(*protocol.Message) []protocol.Message { return nil }

// TestWhatHappensWhileAgentsAreWaitedForCounts: a job that is paused or cancelled after its agent answered, and before the
// round closes, is sold nothing.
func TestWhatHappensWhileAgentsAreWaitedForCounts(t *testing.T) {
	for name, m := range map[string]protocol.Message{
		"paused":    {Kind: protocol.PauseJob, Job: "a", Epoch: 1, Body: &protocol.Pause{Paused: true}},
		"cancelled": {Kind: protocol.Cancel, Job: "a", Epoch: 1, Body: &protocol.Cancellation{Text: "by its owner"}},
	} {
		w := newMarket(t, auction.Config{}, 512)
		w.attend(items(t, "a", 100, 300, 1), keen(50))
		w.attend(items(t, "slow", 100, 300, 1), mute)
		asked := 0
		w.refuse = func(*protocol.Message) bool { asked++; return false }
		for w.deliver() { // both are asked, one answers
		}
		w.step(m)
		w.until(2 * time.Second)
		if n := w.z.Negotiation(); n.Answers == 0 {
			t.Fatalf("%s: nobody answered: the test tests nothing", name)
		}
		if asked > 0 {
			t.Errorf("%s: %d places were asked for all the same", name, asked)
		}
	}
}

// TestACapHoldsWithinARound: of several that win in one round no more are asked for than the queue may hold, whether agents or
// atomizers propose them, in one window or in several.
func TestACapHoldsWithinARound(t *testing.T) {
	for _, c := range []auction.Config{{}, {Joint: true}, {Repack: auction.Never}, {Joint: true, Repack: auction.Never}} {
		for _, external := range []bool{false, true} {
			w := newMarket(t, c, 512, 512, 512)
			w.step(protocol.Message{Kind: protocol.QueueChanged, Body: &protocol.Queue{Name: "capped", Weight: 1, Cap: 2}})
			for i := range 4 {
				s := items(t, fmt.Sprint("j", i), 60, 300, 2)
				s.Queue = "capped"
				if external {
					w.attend(s, keen(15))
				} else {
					w.submit(s)
				}
			}
			most := 0
			for i := 0; i < 2000 && len(w.closed) < len(w.adopted); i++ {
				w.tick()
				held := 0
				for _, s := range w.slices {
					for _, b := range s.busy {
						if b.Kind == protocol.ForHold || b.Kind == protocol.ForLease {
							held++
						}
					}
				}
				most = max(most, held)
			}
			finished(t, w, "j0", "j1", "j2", "j3")
			if most != 2 {
				t.Errorf("%+v, external %v: the queue held %d slices at once, its cap is 2", c, external, most)
			}
		}
	}
}

// TestAnAgentThatMissedAClosingIsAskedAgain: its answer, or the question, was lost, or it came too late; nothing else happens.
func TestAnAgentThatMissedAClosingIsAskedAgain(t *testing.T) {
	for _, misses := range []int{1, 2, 5} {
		w := newMarket(t, auction.Config{}, 512)
		left, answer := misses, keen(100)
		w.attend(items(t, "a", 100, 300, 1), func(m *protocol.Message) []protocol.Message {
			if m.Kind == protocol.Announce && left > 0 {
				left--
				return nil
			}
			return answer(m)
		})
		w.until(10 * time.Minute)
		finished(t, w, "a")
	}
}

// TestAnAgentThatWasSlowForAWhileIsWaitedForAgain: its answers came after the rounds had closed.
func TestAnAgentThatWasSlowForAWhileIsWaitedForAgain(t *testing.T) {
	w := newMarket(t, auction.Config{}, 512)
	var late []protocol.Message
	rounds, answer := 0, keen(100)
	w.attend(items(t, "a", 100, 300, 1), func(m *protocol.Message) []protocol.Message {
		if m.Kind != protocol.Announce {
			return nil
		}
		if rounds++; rounds <= 4 {
			late = append(late, answer(m)...)
			return nil
		}
		return answer(m)
	})
	for w.now < 300e9 && len(w.closed) == 0 {
		w.tick()
		if w.now > 2e9 {
			for _, m := range late {
				w.answer(m)
			}
			late = nil
		}
	}
	finished(t, w, "a")
}

// TestAnAgentThatChangesItsMindIsHeard: what it wants may change, or it has seen its mistake, though nothing else happens; but who
// never wants anything is not called all the time.
func TestAnAgentThatChangesItsMindIsHeard(t *testing.T) {
	for _, mistake := range []bool{false, true} {
		for _, most := range []int{3, 1 << 30} {
			w := newMarket(t, auction.Config{}, 512)
			calls, good := 0, keen(100)
			w.attend(items(t, "a", 100, 300, 1), func(m *protocol.Message) []protocol.Message {
				answers := good(m)
				for i := range answers {
					if calls++; calls > most {
						break
					}
					if answers[i].Body.(*protocol.Proposal).Variants[0].Start--; !mistake {
						answers[i].Body.(*protocol.Proposal).Variants = nil
					}
				}
				return answers
			})
			w.until(10 * time.Minute)
			if _, ended := w.closed["a"]; ended != (most == 3) {
				t.Errorf("mistake %v, up to call %d: ended %v after %d calls", mistake, most, ended, calls)
			}
			if calls > 30 {
				t.Errorf("mistake %v: called %d times in ten minutes", mistake, calls)
			}
		}
	}
}

// TestAPlanIsKeptWhenOthersAreAskedInBetween: an agent can use a window only later. Before that another job comes, which is asked for
// the same window and has no use for it.
func TestAPlanIsKeptWhenOthersAreAskedInBetween(t *testing.T) {
	w := newMarket(t, auction.Config{}, 512)
	answer := keen(100)
	w.attend(items(t, "later", 100, 300, 1), func(m *protocol.Message) []protocol.Message {
		answers := answer(m)
		for i := range answers {
			for j := range answers[i].Body.(*protocol.Proposal).Variants {
				v := &answers[i].Body.(*protocol.Proposal).Variants[j]
				v.Start = max(v.Start, 101e9)
			}
		}
		return answers
	})
	w.until(10 * time.Second)
	w.submit(items(t, "large", 10, 4000, 1))
	w.until(10 * time.Minute)
	if _, ok := w.closed["later"]; !ok {
		e, _ := w.z.Explain(w.now, "later")
		t.Errorf("what was planned was never sold: %+v", e.Reasons)
	}
}

// TestAPlanIsNotAskedForEveryMillisecond: an agent plans ever anew just beyond what is sold.
func TestAPlanIsNotAskedForEveryMillisecond(t *testing.T) {
	w := newMarket(t, auction.Config{}, 512)
	answer := keen(100)
	w.attend(items(t, "tease", 100, 300, 1), func(m *protocol.Message) []protocol.Message {
		answers := answer(m)
		for i := range answers {
			for j := range answers[i].Body.(*protocol.Proposal).Variants {
				answers[i].Body.(*protocol.Proposal).Variants[j].Start = w.now.Add(30*time.Second + 1)
			}
		}
		return answers
	})
	start := w.now
	for i := 0; i < 10_000 && w.now < start.Add(10*time.Second); i++ {
		w.tick()
	}
	if n := w.z.Negotiation().Calls; n > 60 {
		t.Errorf("it was called %d times in %v", n, w.now.Sub(start))
	}
}

// TestTimeThatWasJustSoldIsNotOffered: a round sells a part of its window, in the same step in which the window is offered to who
// has come while it was open. No node is asked for the same time twice.
func TestTimeThatWasJustSoldIsNotOffered(t *testing.T) {
	w := newMarket(t, auction.Config{}, 512)
	var sold []protocol.Message
	w.lose = func(m *protocol.Message) bool {
		if m.Kind == protocol.Ask {
			for _, o := range sold {
				if m.Body.(*protocol.Asking).Start < o.Body.(*protocol.Asking).End &&
					o.Body.(*protocol.Asking).Start < m.Body.(*protocol.Asking).End {
					t.Errorf("%v to %v is asked for job %s, and %v to %v was for job %s", m.Body.(*protocol.Asking).Start,
						m.Body.(*protocol.Asking).End, m.Job, o.Body.(*protocol.Asking).Start, o.Body.(*protocol.Asking).End, o.Job)
				}
			}
			sold = append(sold, *m)
		}
		return false
	}
	w.attend(items(t, "a", 100, 300, 1), keen(50))
	w.attend(items(t, "slow", 100, 300, 1), mute)
	for w.deliver() {
	}
	w.submit(items(t, "b", 30, 100, 1)) // the round is open
	w.step(protocol.Message{Kind: protocol.Attend, Job: "slow", Session: 7, Body: &protocol.Attendance{}})
	w.until(10 * time.Second)
	if len(sold) == 0 {
		t.Error("nothing was sold: the test tests nothing")
	}
}

// TestWhoHasWaitedTooLongIsServedAtOnce: not with the piece that is worth most but later, which may be withdrawn again and again
// before it begins.
func TestWhoHasWaitedTooLongIsServedAtOnce(t *testing.T) {
	w := newMarket(t, auction.Config{Repack: auction.Withdraw}, 512)
	w.config.Starvation = starvation.Limit{After: time.Minute, Slowdown: 1, Share: 1000}
	w.z = w.make()
	w.submit(items(t, "first", 100, 300, 1))
	w.tick()
	asked, answer := []protocol.Message(nil), keen(20)
	w.lose = func(m *protocol.Message) bool {
		if m.Kind == protocol.Ask && m.Job == "poor" {
			asked = append(asked, *m)
		}
		return false
	}
	w.attend(items(t, "poor", 20, 300, 1), func(m *protocol.Message) []protocol.Message {
		answers := answer(m)
		for i := range answers {
			v := answers[i].Body.(*protocol.Proposal).Variants[0]
			v.ID, v.Score = 77, 1_000_000
			answers[i].Body.(*protocol.Proposal).Variants[0].Score = 0
			v.Start = v.Start.Add(v.Wall - time.Second)
			if v.Start < w.now.Add(5*time.Minute) {
				answers[i].Body.(*protocol.Proposal).Variants = append(answers[i].Body.(*protocol.Proposal).Variants, v)
			}
		}
		return answers
	})
	w.until(10 * time.Minute)
	finished(t, w, "first", "poor")
	j, _ := w.z.Job(w.now, "first")
	if len(asked) != 1 || asked[0].Body.(*protocol.Asking).Start > j.Ended.Add(time.Second) {
		t.Errorf("the slice was free at %v, and asked for was %+v", j.Ended, asked)
	}
}

// TestWhoRestsIsNotServedBecauseAnotherGoesOn: a subjob fails in the instant in which another asks to go on, for which everybody is
// asked what they would do when it ends. Whoever waits gets the place.
func TestWhoRestsIsNotServedBecauseAnotherGoesOn(t *testing.T) {
	play := func(fails quantity.Instant) (goesOn quantity.Instant, asked []quantity.Instant) {
		w := newMarket(t, auction.Config{}, 512, 1024)
		w.lose = func(m *protocol.Message) bool {
			switch {
			case m.Kind == protocol.Extend && goesOn == 0:
				goesOn = w.now
			case m.Kind == protocol.Ask && (m.Job == "bad" || m.Job == "next"):
				asked = append(asked, w.now)
			}
			return false
		}
		w.run = func(m *protocol.Message) (time.Duration, job.Result) {
			if m.Job == "bad" {
				return fails.Sub(w.now), job.Result{Outcome: job.ExitFailed, Progress: m.Body.(*protocol.Work).Range.From}
			}
			return m.Body.(*protocol.Work).Plan.Wall, job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To,
				Checkpoint: true}
		}
		long := steps(t, "long", 2000, 10, 300)
		long.Continue = true
		w.submit(long)
		w.tick()
		if fails > 0 {
			w.submit(steps(t, "bad", 5000, 10, 800))
			w.tick()
			next := steps(t, "next", 500, 10, 800)
			next.Priority = -100
			w.submit(next)
		}
		for w.now < fails.Add(2*time.Second) || goesOn == 0 && w.now < 1000e9 {
			if w.now < fails && w.wake == fails {
				w.wake = quantity.Never // the news of the failure is what wakes the zone
			}
			w.tick()
		}
		return goesOn, asked
	}
	fails, _ := play(0)
	again, asked := play(fails)
	if fails == 0 || again == 0 || len(asked) == 0 {
		t.Fatalf("it went on at %v, then at %v, and asked was at %v: the test tests nothing", fails, again, asked)
	}
	if len(asked) != 2 || asked[1] != fails {
		t.Errorf("one failed at %v, and the next is to take its place at once: asked was at %v", fails, asked)
	}
}
