package zone_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// newSignals is a world whose zone collects signals, of agents too.
func newSignals(t fataler, p policy.Policy, capacities ...int64) *world {
	w := newWorld(t, capacities...)
	w.config.Policy = p
	w.bidders = map[job.ID]func(*protocol.Message) []protocol.Message{}
	w.z = w.make()
	return w
}

// hearing wraps an agent so that what it is told is kept.
func hearing(notices *[]protocol.Notice, hear func(*protocol.Message) []protocol.Message) func(*protocol.Message) []protocol.Message {
	return func(m *protocol.Message) []protocol.Message {
		*notices = append(*notices, noticesIn(m)...)
		return hear(m)
	}
}

// only answers as an agent does as long as it is asked for what is wanted, and otherwise with no variant.
func only(wanted protocol.Wanted, hear func(*protocol.Message) []protocol.Message) func(*protocol.Message) []protocol.Message {
	return func(m *protocol.Message) []protocol.Message {
		answers := hear(m)
		if callIn(m) != nil && callIn(m).Wanted != wanted {
			for i := range answers {
				answers[i].Body.(*protocol.Proposal).Variants = nil
			}
		}
		return answers
	}
}

// TestAgentsSignalUnderSja: an external job is done under every policy beside others, one piece after another, and its agent hears of it.
func TestAgentsSignalUnderSja(t *testing.T) {
	for _, p := range append(all.Policies(), filling{}) {
		w := newSignals(t, p, 512, 1024)
		chain, loose := steps(t, "chain", 200, 10, 300), items(t, "loose", 100, 100, 3)
		var told []protocol.Notice
		w.submit(items(t, "a", 60, 100, 1), steps(t, "b", 50, 10, 800))
		w.attend(chain, hearing(&told, honest(chain)))
		w.attend(loose, honest(loose))
		w.until(2 * time.Hour)
		finished(t, w, "a", "b", "chain", "loose")
		if !slices.ContainsFunc(told, func(n protocol.Notice) bool { return n.Kind == protocol.Awarded }) ||
			!slices.ContainsFunc(told, func(n protocol.Notice) bool { return n.Kind == protocol.Concluded }) {
			t.Errorf("%s: the agent was told %v", p.Name(), told)
		}
		if n := w.z.Negotiation(); n.Declined != 0 || n.Calls == 0 {
			t.Errorf("%s: %+v", p.Name(), n)
		}
	}
}

// TestASignalNamesItsWindowAlone: that is enough, and costs its agent nothing; only who is picked is asked for a piece.
func TestASignalNamesItsWindowAlone(t *testing.T) {
	w := newSignals(t, fifo.Policy{}, 512)
	pieces := map[job.ID]int{}
	for _, name := range []string{"first", "second"} {
		s := steps(t, name, 100, 10, 300)
		good := honest(s)
		w.attend(s, func(m *protocol.Message) []protocol.Message {
			answers := good(m)
			if callIn(m) == nil {
				return answers
			}
			if callIn(m).Wanted == protocol.Subjob {
				pieces[m.Job]++
				return answers
			}
			answers[0].Body.(*protocol.Proposal).Variants = nil
			for i := range callIn(m).Windows {
				answers[0].Body.(*protocol.Proposal).Variants = append(answers[0].Body.(*protocol.Proposal).Variants,
					protocol.Variant{ID: uint32(i), Window: callIn(m).Windows[i].Window})
			}
			return answers
		})
	}
	w.until(10 * time.Minute)
	finished(t, w, "first", "second")
	for name, n := range pieces {
		j, _ := w.z.Job(w.now, name)
		if n != len(j.History) {
			t.Errorf("%s cut %d pieces and ran %d", name, n, len(j.History))
		}
	}
}

// started is when the first subjob of a job began, since the start.
func (w *world) started(name job.ID) time.Duration {
	j, _ := w.z.Job(w.now, name)
	return j.Started.Sub(1e9)
}

// TestWhoDeclinesIsPassedOver: the next in order has the window in the time of the ask, whatever the agent of the first does then; why it
// declined is said to people, and to the agent what was wrong.
func TestWhoDeclinesIsPassedOver(t *testing.T) {
	whole := func(change func(v *protocol.Variant, m *protocol.Message)) func(*job.Spec) func(*protocol.Message) []protocol.Message {
		return func(s *job.Spec) func(*protocol.Message) []protocol.Message {
			good := honest(s)
			return func(m *protocol.Message) []protocol.Message {
				answers := good(m)
				if callIn(m) != nil && callIn(m).Wanted == protocol.Subjob {
					answers[0].Body.(*protocol.Proposal).Variants = answers[0].Body.(*protocol.Proposal).Variants[:1]
					change(&answers[0].Body.(*protocol.Proposal).Variants[0], m)
				}
				return answers
			}
		}
	}
	for _, c := range []struct {
		name, why string
		most      time.Duration
		agent     func(*job.Spec) func(*protocol.Message) []protocol.Message
	}{
		{"declines", "its agent cut no piece", 0, func(s *job.Spec) func(*protocol.Message) []protocol.Message {
			return only(protocol.Interest, honest(s))
		}},
		{"says nothing", "did not cut the piece in time", 200 * time.Millisecond,
			func(s *job.Spec) func(*protocol.Message) []protocol.Message {
				good := honest(s)
				return func(m *protocol.Message) []protocol.Message {
					if callIn(m) != nil && callIn(m).Wanted == protocol.Subjob {
						return nil
					}
					return good(m)
				}
			}},
		{"off the grid", "not on the grid", 0, whole(func(v *protocol.Variant, _ *protocol.Message) { v.Range.To -= 3 })},
		{"not safe", "to be safe", 0, whole(func(v *protocol.Variant, _ *protocol.Message) { v.Demand[trp.Memory] = 1 << 60 })},
		{"too long", "after the window", 0, whole(func(v *protocol.Variant, _ *protocol.Message) { v.Wall = time.Hour })},
		{"later", "begins later than the window", 0, whole(func(v *protocol.Variant, m *protocol.Message) {
			v.Start = callIn(m).Closes.Add(time.Second)
		})},
		{"another window", "cut no piece", 0, whole(func(v *protocol.Variant, _ *protocol.Message) { v.Window += 7 })},
		{"what is done", "is no work of the job", 0,
			whole(func(v *protocol.Variant, _ *protocol.Message) { v.Range = job.Range{From: -10, To: 10} })},
	} {
		w := newSignals(t, fifo.Policy{}, 512)
		first := steps(t, "first", 200, 10, 300)
		var told []protocol.Notice
		w.attend(first, hearing(&told, c.agent(first)))
		w.submit(items(t, "second", 30, 100, 1))
		for w.started("second") < 0 && w.now < quantity.Instant(10e9) {
			w.tick()
		}
		if at := w.started("second"); at < 0 || at > c.most+10*time.Millisecond {
			t.Errorf("%s: the next in order began after %v, want %v", c.name, at, c.most)
		}
		if e, _ := w.z.Explain(w.now, "first"); !strings.Contains(fmt.Sprint(e.Reasons), "it was picked for a window and declined (") ||
			!strings.Contains(fmt.Sprint(e.Reasons), c.why) {
			t.Errorf("%s: explained as %+v", c.name, e.Reasons)
		}
		if !slices.ContainsFunc(told, func(n protocol.Notice) bool {
			return n.Kind == protocol.Denied && strings.Contains(n.Text, c.why) && strings.Contains(n.Text, "again in 1s")
		}) {
			t.Errorf("%s: its agent was told %+v", c.name, told)
		}
		if n := w.z.Negotiation(); n.Declined != 1 {
			t.Errorf("%s: %+v", c.name, n)
		}
	}
}

// TestAllDecline: nobody is left, the window stands idle and everybody is asked again, less and less often, and never more than three in
// a row without the signals of all.
func TestAllDecline(t *testing.T) {
	w := newSignals(t, fifo.Policy{}, 512)
	asks, last := map[job.ID][]time.Duration{}, []protocol.Wanted{}
	for i := range 5 {
		s := steps(t, fmt.Sprint("j", i), 200, 10, 300)
		decline := only(protocol.Interest, honest(s))
		w.attend(s, func(m *protocol.Message) []protocol.Message {
			if callIn(m) != nil {
				last = append(last, callIn(m).Wanted)
				if callIn(m).Wanted == protocol.Subjob {
					asks[m.Job] = append(asks[m.Job], w.now.Sub(1e9))
				}
			}
			return decline(m)
		})
	}
	for w.now < quantity.Instant(600e9) {
		w.tick()
	}
	for name, at := range asks {
		if n := len(at); n < 8 || n > 20 {
			t.Errorf("%s was asked %d times in ten minutes: %v", name, n, at)
		}
		for i := 1; i < len(at); i++ {
			if pause := at[i] - at[i-1]; pause < min(time.Minute, time.Second<<(i-1)) {
				t.Errorf("%s was asked again after %v, for the %d. time", name, pause, i+1)
			}
		}
	}
	row := 0
	for _, wanted := range last {
		if row++; wanted == protocol.Interest {
			row = 0
		}
		if row > 3 {
			t.Fatalf("%d were asked in a row for one window", row)
		}
	}
	if len(asks) != 5 || w.seq != 0 {
		t.Errorf("%d jobs were asked, %d pieces sold", len(asks), w.seq)
	}
}

// TestAnAgentDiesWhenItIsPicked: the next in order is asked as soon as that is known.
func TestAnAgentDiesWhenItIsPicked(t *testing.T) {
	w := newSignals(t, fifo.Policy{}, 512)
	s := steps(t, "first", 200, 10, 300)
	good := honest(s)
	w.attend(s, func(m *protocol.Message) []protocol.Message {
		if callIn(m) != nil && callIn(m).Wanted == protocol.Subjob {
			w.answer(protocol.Message{Kind: protocol.Attend, Job: s.Name, Session: m.Session, Body: &protocol.Attendance{}})
			return nil
		}
		return good(m)
	})
	w.submit(items(t, "second", 30, 100, 1))
	for w.started("second") < 0 && w.now < quantity.Instant(10e9) {
		w.tick()
	}
	if at := w.started("second"); at < 0 || at > 10*time.Millisecond {
		t.Errorf("the next in order began after %v", at)
	}
	if e, _ := w.z.Explain(w.now, "first"); !strings.Contains(fmt.Sprint(e.Reasons), "went away when it was asked") {
		t.Errorf("explained as %+v", e.Reasons)
	}
}

// TestAHostileAgentHoldsNoWindow: its job is always first in order and never cuts a piece, as late as it can. What others lose by it is
// bounded: for each time it is asked two closings, and it is asked less and less.
func TestAHostileAgentHoldsNoWindow(t *testing.T) {
	const pieces = 40
	run := func(hostile bool) (took time.Duration, declined int64) {
		w := newSignals(t, fifo.Policy{}, 512)
		if hostile {
			s := steps(t, "hostile", 2000, 10, 300)
			good := honest(s)
			w.attend(s, func(m *protocol.Message) []protocol.Message {
				if callIn(m) == nil || callIn(m).Wanted == protocol.Subjob {
					return nil
				}
				for _, a := range good(m) {
					a.From, a.To = protocol.Address{Role: protocol.Bidder, ID: string(s.Name)},
						protocol.Address{Role: protocol.Zone, ID: "z"}
					w.late = append(w.late, letter{w.now.Add(190 * time.Millisecond), a})
				}
				return nil
			})
		}
		for i := range pieces {
			w.submit(items(t, fmt.Sprintf("j%02d", i), 10, 100, 1))
		}
		for len(w.closed) < pieces && w.now < quantity.Instant(3600e9) {
			w.tick()
		}
		return w.now.Sub(1e9), w.z.Negotiation().Declined
	}
	alone, _ := run(false)
	beside, declined := run(true)
	lost := beside - alone
	if declined < 5 {
		t.Fatalf("the hostile job declined %d times: the test tests nothing", declined)
	}
	if most := time.Duration(declined) * 2 * 200 * time.Millisecond; lost > most {
		t.Errorf("%d pieces took %v instead of %v: %v were lost by %d declines, want at most %v", pieces, beside, alone, lost, declined,
			most)
	}
	if rests := int64(beside/time.Minute) + 7; declined > rests { // 1, 2, 4 ... 32 s, and then a minute each
		t.Errorf("it was picked %d times in %v, want at most %d", declined, beside, rests)
	}
}

// filling asks first who uses most of the window.
type filling struct{}

func (filling) Name() string                   { return "filling" }
func (filling) Motion() policy.Motion          { return policy.Free }
func (filling) Key(*policy.Candidate) [2]int64 { return [2]int64{} }
func (filling) Compare(a, b *policy.Candidate) int {
	return cmp.Or(cmp.Compare(b.Used, a.Used), policy.ByAge(a, b))
}

// TestWhoSignalsMoreThanItCutsIsPassedOver: under a policy that orders by what pieces use, who signals for the whole window and then cuts
// little has declined.
func TestWhoSignalsMoreThanItCutsIsPassedOver(t *testing.T) {
	w := newSignals(t, filling{}, 512)
	s := steps(t, "boaster", 200, 10, 300)
	good := honest(s)
	w.attend(s, func(m *protocol.Message) []protocol.Message {
		answers := good(m)
		for i := range answers {
			for k := range answers[i].Body.(*protocol.Proposal).Variants {
				v := &answers[i].Body.(*protocol.Proposal).Variants[k]
				if callIn(m).Wanted == protocol.Interest {
					v.Wall, v.Demand = time.Hour, trp.Vector{1 << 60}
				} else {
					v.Range.To, v.Run, v.Wall = 10, 12*time.Second, 13*time.Second
				}
			}
		}
		return answers
	})
	w.submit(items(t, "large", 300, 400, 1))
	for w.started("large") < 0 && w.now < quantity.Instant(10e9) {
		w.tick()
	}
	if at := w.started("large"); at < 0 || at > 10*time.Millisecond {
		t.Errorf("the job that uses most of the window began after %v", at)
	}
	if e, _ := w.z.Explain(w.now, "boaster"); !strings.Contains(fmt.Sprint(e.Reasons), "less of the window than was signalled") {
		t.Errorf("explained as %+v", e.Reasons)
	}
}

// TestTheFirstWhoDoesNotDeclineIsServed: of drawn jobs, some of which decline, and drawn orders, the one that is sold to is the first in
// order among those that did not decline; after three agents that did it is the first that answers at once, if there is one.
func TestTheFirstWhoDoesNotDeclineIsServed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newSignals(rt, fifo.Policy{}, 512)
		w.submit(rigid(t, "before", 10*time.Second, 400, 1)) // all come while the slice is taken
		for w.started("before") < 0 {
			w.tick()
		}
		type one struct {
			name              job.ID
			external, decline bool
		}
		var order []one
		for i := range rapid.IntRange(1, 8).Draw(rt, "jobs") {
			x := one{job.ID(fmt.Sprint("j", i)), rapid.IntRange(0, 2).Draw(rt, "external") > 0, rapid.Bool().Draw(rt, "declines")}
			s := steps(t, string(x.name), 200, 10, 300)
			s.Priority = int32(100 - i)
			if x.external {
				hear := honest(s)
				if x.decline {
					hear = only(protocol.Interest, hear)
				}
				w.attend(s, hear)
			} else {
				x.decline = false
				w.submit(s)
			}
			order = append(order, x)
		}
		want, asked := job.ID(""), 0
		for _, x := range order {
			if x.external && asked == 3 {
				continue
			}
			if x.external {
				asked++
			}
			if !x.decline {
				want = x.name
				break
			}
		}
		if want == "" { // announced anew, to those that do not rest
			for _, x := range order {
				if !x.decline {
					want = x.name
					break
				}
			}
		}
		got := job.ID("")
		for got == "" && w.now < quantity.Instant(11500e6) {
			w.tick()
			for _, x := range order {
				if w.started(x.name) > 0 {
					got = x.name
				}
			}
		}
		if got != want {
			rt.Fatalf("%s was served, want %s of %+v", got, want, order)
		}
	})
}
