package zone_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// burden is a job that can not be served, whatever the zone does for it: "burden" in the worlds here.
const burden = job.ID("burden")

// burdens are the ways in which that may be.
func burdens() map[string]func(w *world) {
	lost := func(kinds ...protocol.Kind) func(w *world) {
		return func(w *world) {
			w.lose = func(m *protocol.Message) bool { return m.Job == burden && slices.Contains(kinds, m.Kind) }
		}
	}
	ends := func(r job.Result) func(w *world) {
		return func(w *world) {
			w.run = func(m *protocol.Message) (time.Duration, job.Result) {
				if m.Job != burden {
					return m.Body.(*protocol.Work).Plan.Wall, job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To,
						Checkpoint: true}
				}
				r := r
				r.Progress, r.Peak = m.Body.(*protocol.Work).Range.From, m.Body.(*protocol.Work).Demand
				return time.Millisecond, r
			}
		}
	}
	return map[string]func(w *world){
		"its asks are refused":      func(w *world) { w.refuse = func(m *protocol.Message) bool { return m.Job == burden } },
		"its asks are not answered": lost(protocol.Ask),
		"its grants are lost":       lost(protocol.Granted),
		"its redemptions are not answered": lost(protocol.Redeem, protocol.RedeemRefused, protocol.Leased, protocol.Running,
			protocol.Result),
		"its tokens have lapsed": func(w *world) {
			w.lose = func(m *protocol.Message) bool {
				if m.Kind == protocol.Redeem && m.Job == burden {
					for _, s := range w.slices {
						s.release(m.Token)
					}
				}
				return false
			}
		},
		"its reservations and asks are refused": func(w *world) {
			w.refuse = func(m *protocol.Message) bool { return m.Job == burden }
			w.lose = func(m *protocol.Message) bool {
				if m.Kind != protocol.Reserve || m.Job != burden {
					return false
				}
				w.reply(protocol.Message{Kind: protocol.Refused, From: m.To, Body: &protocol.Refusal{Ask: m.Body.(*protocol.Booking).Ask,
					Slice: m.Body.(*protocol.Booking).Slice, Text: "no"}, Job: m.Job})
				return true
			}
		},
		"it fails at once":            ends(job.Result{Outcome: job.ExitFailed, ExitCode: 1}),
		"it can not be started":       ends(job.Result{Outcome: job.StartFailed}),
		"it is killed at once":        ends(job.Result{Outcome: job.Lost}),
		"it yields at once":           ends(job.Result{Outcome: job.Yielded}),
		"it outgrows its memory":      ends(job.Result{Outcome: job.MemoryKilled}),
		"it never makes its deadline": ends(job.Result{Outcome: job.DeadlineKilled}),
	}
}

// agents are what the agent of an external job that is a burden may do.
func badAgents() map[string]func(w *world) func(m *protocol.Message) []protocol.Message {
	return map[string]func(w *world) func(m *protocol.Message) []protocol.Message{
		"mute": func(*world) func(m *protocol.Message) []protocol.Message { return mute },
		"comes and goes": func(w *world) func(m *protocol.Message) []protocol.Message {
			session, last := uint64(7), w.now
			return func(m *protocol.Message) []protocol.Message {
				if w.now.Sub(last) < 100*time.Millisecond {
					return nil
				}
				session, last = session+1, w.now
				return []protocol.Message{{Kind: protocol.Attend, Job: m.Job, Session: session, Body: &protocol.Attendance{Present: true}}}
			}
		},
		"keen": func(*world) func(m *protocol.Message) []protocol.Message { return keen(20) },
		"always later": func(w *world) func(m *protocol.Message) []protocol.Message {
			answer := keen(20)
			return func(m *protocol.Message) []protocol.Message {
				answers := answer(m)
				for i := range answers {
					for j := range answers[i].Body.(*protocol.Proposal).Variants {
						answers[i].Body.(*protocol.Proposal).Variants[j].Start = w.now.Add(30*time.Second + 1)
					}
				}
				return answers
			}
		},
	}
}

// TestNoJobTakesTheMarketFromOthers: whatever one job is, and however much the policy prefers it, the others get the slices' time
// for all that it leaves unused, within a bound: five minutes over what they need on one slice alone.
func TestNoJobTakesTheMarketFromOthers(t *testing.T) {
	ways, agents := burdens(), badAgents()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		for i := range rapid.IntRange(1, 3).Draw(rt, "slices") {
			w.slices = append(w.slices, newWorld(rt, 1024).slices...)
			w.slices[i].view.ID = job.SliceID(fmt.Sprint("s", i))
		}
		w.config.Policy = rapid.SampledFrom(all.Policies()).Draw(rt, "policy")
		w.bidders = map[job.ID]func(*protocol.Message) []protocol.Message{}
		jasda := rapid.Bool().Draw(rt, "jasda")
		if jasda {
			w.config.Market = &auction.Config{}
		}
		w.z = w.make()
		way := rapid.SampledFrom(slices.Sorted(maps.Keys(ways))).Draw(rt, "way")
		ways[way](w)

		bad := rapid.SampledFrom([]*job.Spec{
			items(t, string(burden), 20, 100, 1), items(t, string(burden), 200, 100, 4), steps(t, string(burden), 20, 10, 100),
			rigid(t, string(burden), 20*time.Second, 100, 1),
		}).Draw(rt, "burden")
		c := *bad
		c.Priority, c.MaxFailures = 100, rapid.SampledFrom([]int{3, 1000}).Draw(rt, "failures")
		if agent := rapid.SampledFrom(append(slices.Sorted(maps.Keys(agents)), "", "")).Draw(rt, "agent"); jasda && c.Divisible() &&
			agent != "" {
			w.attend(&c, agents[agent](w))
		} else {
			w.submit(&c)
		}
		others, work := []job.ID{}, time.Duration(0)
		for i := range rapid.IntRange(1, 4).Draw(rt, "others") {
			if rapid.Bool().Draw(rt, "at once") {
				w.settle()
				w.now = w.now.Add(time.Second)
			}
			n := rapid.Int64Range(5, 60).Draw(rt, "units")
			s := rapid.SampledFrom([]*job.Spec{
				items(t, fmt.Sprint("other", i), n, 200, 2), steps(t, fmt.Sprint("other", i), n, 5, 200),
				rigid(t, fmt.Sprint("other", i), time.Duration(n)*time.Second, 200, 1),
			}).Draw(rt, "other")
			w.submit(s)
			others, work = append(others, s.Name), work+time.Duration(n)*2*time.Second
		}
		limit := w.now.Add(work + 5*time.Minute)
		waits := func(id job.ID) bool { _, over := w.closed[id]; return !over }
		for w.now < limit && slices.ContainsFunc(others, waits) {
			w.tick()
		}
		for _, id := range others {
			if waits(id) || w.closed[id].State != job.Finished {
				j, _ := w.z.Job(w.now, id)
				b, _ := w.z.Job(w.now, burden)
				rt.Fatalf("%s: %s is %s %q after %v, the burden is %s %q", way, id, j.State, j.Reason, w.now.Sub(1e9), b.State, b.Reason)
			}
		}
	})
}

// TestAJobThatIsRefusedBacksOff: 1 s, doubling to 1 min, and says so; once a node takes it all is forgotten.
func TestAJobThatIsRefusedBacksOff(t *testing.T) {
	w := newWorld(t, 1024)
	var asked []quantity.Instant
	refuses := true
	w.refuse = func(*protocol.Message) bool {
		if refuses {
			asked = append(asked, w.now)
		}
		return refuses
	}
	w.submit(items(t, "a", 20, 100, 1))
	for end := w.now.Add(590 * time.Second); w.now < end; w.tick() {
	}
	if len(asked) < 10 || len(asked) > 20 {
		t.Errorf("asked %d times in ten minutes of refusals", len(asked))
	}
	for i := 1; i < len(asked); i++ {
		if d := asked[i].Sub(asked[i-1]); d < time.Second || d > mostPause+time.Second || i > 7 && d < mostPause {
			t.Errorf("pause %d is %v", i, d)
		}
	}
	j, _ := w.z.Job(w.now, "a")
	e, _ := w.z.Explain(w.now, "a")
	if want := fmt.Sprintf("(Backoff) %d places in a row", len(asked)); !strings.HasPrefix(j.Reason, want) ||
		!strings.Contains(j.Reason, "(no)") ||
		!slices.ContainsFunc(e.Reasons, func(r status.Reason) bool {
			return strings.Contains(r.Text, "was refused") && r.Count >= int64(len(asked))
		}) {
		t.Errorf("it says %q, and %+v", j.Reason, e.Reasons)
	}
	if slices.ContainsFunc(e.Reasons, func(r status.Reason) bool { return strings.Contains(r.Text, "without progress") }) {
		t.Errorf("nothing of it ran, and it says %+v", e.Reasons)
	}
	refuses = false
	w.until(2 * time.Minute)
	finished(t, w, "a")
}

// mostPause between two asks of a job that is refused.
const mostPause = time.Minute

// TestARefusalOfOneSliceLeavesTheOthers: a node that does not answer keeps nobody from the other slices.
func TestARefusalOfOneSliceLeavesTheOthers(t *testing.T) {
	for _, s := range []*job.Spec{items(t, "a", 20, 100, 1), steps(t, "a", 20, 10, 100), rigid(t, "a", 20*time.Second, 100, 1)} {
		w := newWorld(t, 512, 1024)
		w.lose = func(m *protocol.Message) bool {
			return m.Kind == protocol.Ask && m.Body.(*protocol.Asking).Slice == "s0"
		}
		w.submit(s)
		w.until(45 * time.Second)
		finished(t, w, "a")
	}
}

// TestAWaveOfRefusalsIsOne: all slices are taken while a job of many subjobs asks for each. It goes on as soon as views say that
// it can.
func TestAWaveOfRefusalsIsOne(t *testing.T) {
	w := newWorld(t, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024)
	w.refuse = func(*protocol.Message) bool { return w.now < quantity.Instant(1.5e9) }
	w.submit(items(t, "a", 800, 100, 8))
	w.until(3 * time.Second)
	if j, _ := w.z.Job(w.now, "a"); j.Running != 8 {
		t.Errorf("2 s after eight refusals at once it runs on %d slices: %s", j.Running, j.Reason)
	}
}
