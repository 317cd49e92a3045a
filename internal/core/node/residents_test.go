package node

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/joint"
	"sluice.dev/sluice/internal/core/node/residents"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// askFor is an ask from now on, for what can go on in the program of a number. warm: it is cut for that.
func (w *world) askFor(id uint64, s job.SliceID, length time.Duration, number uint64, warm bool) protocol.Message {
	m := ask(id, s, 0, 0)
	a := m.Body.(*protocol.Asking)
	a.Start, a.End, a.Plan.Residence, a.Plan.Resident = w.now, w.now.Add(length), number, warm
	return m
}

// sell asks, redeems and starts.
func (w *world) sell(id uint64, s job.SliceID, length time.Duration, number uint64, warm bool) job.Token {
	w.Helper()
	w.step(w.askFor(id, s, length, number, warm))
	g := w.must(protocol.Granted)
	r := redeem(g)
	r.Body.(*protocol.Work).Plan.Residence, r.Body.(*protocol.Work).Plan.Resident = number, warm
	w.step(r)
	w.must(protocol.Start)
	w.step(protocol.Message{Kind: protocol.Started, From: executor, Token: g.Token, Body: &protocol.Beginning{At: w.now}})
	return g.Token
}

// stays has a subjob end whose program, of a number, stays.
func (w *world) stays(t job.Token, number uint64) {
	w.Helper()
	m := exited(t, job.Done, 100)
	m.Body.(*protocol.Conclusion).Resident = &protocol.Resident{Number: number, Memory: 50, Since: t0}
	w.step(m)
}

func gone(t job.Token) protocol.Message {
	return protocol.Message{Kind: protocol.Dismissed, From: executor, Token: t}
}

func TestASubjobGoesOnInTheProgramThatIsThere(t *testing.T) {
	w := booted(t)
	w.stays(w.sell(1, "a", time.Minute, 7, false), 7)
	w.never(protocol.Dismiss)
	same(t, "what the zone sees", w.views["a"].Resident.Number, 7)
	same(t, "whether it is for sale", len(w.views["a"].Gaps), 1)
	next := w.sell(2, "a", time.Minute, 7, true)
	if v := w.views["a"]; v.Resident != nil {
		t.Fatalf("the program is a subjob's, and the zone sees %+v", v.Resident)
	}
	w.stays(next, 7)
	w.sell(3, "a", time.Minute, 7, false) // it was decided before the program was seen: it goes on in it anyway
}

func TestAnotherIsSoldTheSliceWhenTheProgramIsGone(t *testing.T) {
	w := booted(t)
	first := w.sell(1, "a", time.Minute, 7, false)
	w.stays(first, 7)
	for _, number := range []uint64{8, 0} {
		w.step(w.askFor(2, "a", time.Minute, number, false))
		text := w.must(protocol.Refused).Body.(*protocol.Refusal).Text
		if number == 8 && !strings.Contains(text, "stays there, and ends first") {
			t.Fatalf("it is refused since %q", text)
		}
	}
	same(t, "whether it is for sale", w.views["a"].Usable, false)
	w.step(w.askFor(3, "a", time.Minute, 7, true))
	w.must(protocol.Refused) // too late for its own kind too
	w.wait(time.Second)
	same(t, "who is told again", w.must(protocol.Dismiss).Token, first)
	w.step(gone(first))
	same(t, "whether it is for sale", w.views["a"].Usable && len(w.views["a"].Gaps) == 1, true)
	w.step(gone(first))
	w.wait(time.Minute)
	w.never(protocol.Dismiss)
	w.step(w.askFor(4, "a", time.Minute, 7, true))
	if text := w.must(protocol.Refused).Body.(*protocol.Refusal).Text; !strings.Contains(text, "is gone") {
		t.Fatalf("it is refused since %q", text)
	}
	w.sell(5, "a", time.Minute, 8, false)
}

func TestWhatIsSoldBehindWaitsUntilTheProgramIsGone(t *testing.T) {
	w := booted(t)
	first := w.sell(1, "a", time.Minute, 7, false)
	m := w.askFor(2, "a", time.Minute, 8, false)
	m.Body.(*protocol.Asking).Start, m.Body.(*protocol.Asking).End = at(time.Minute), at(2*time.Minute)
	w.step(m)
	r := redeem(w.must(protocol.Granted))
	r.Body.(*protocol.Work).Plan.Residence = 8
	w.step(r)
	w.now = at(30 * time.Second)
	w.stays(first, 7) // it may stay for half a minute, less what its end takes
	w.never(protocol.Dismiss)
	w.now = at(58 * time.Second)
	w.step(protocol.Message{Kind: protocol.Tick})
	same(t, "who is told to end", w.must(protocol.Dismiss).Token, first)
	w.now = at(time.Minute)
	w.step(protocol.Message{Kind: protocol.Tick})
	w.never(protocol.Start)
	w.now = at(time.Minute + 500*time.Millisecond)
	w.step(gone(first))
	w.must(protocol.Start)
}

func TestAProgramEndsBeforeItsSliceIsAnothers(t *testing.T) {
	for name, c := range map[string]struct {
		in  protocol.Message
		end time.Duration
	}{
		"nobody comes": {protocol.Message{Kind: protocol.Tick}, residents.Patience},
		"a reservation": {reserve("r", protocol.Reservation{Kind: protocol.ForOwner, Slice: "a", Start: at(time.Minute),
			End: at(2 * time.Minute)}), 58 * time.Second},
		"the host's process": {protocol.Message{Kind: protocol.Foreign, From: executor,
			Body: &protocol.Intrusion{Slice: "a", Present: true}}, 0},
		"trouble": {protocol.Message{Kind: protocol.Unhealthy, From: executor,
			Body: &protocol.Condition{Unhealthy: true, Text: "no disk"}}, 0},
		"want of memory": {protocol.Message{Kind: protocol.Pressure, From: executor,
			Body: &protocol.Strain{Capacity: 1000, Used: 999}}, 0},
		"its slice goes": {protocol.Message{Kind: protocol.Inventory, From: executor,
			Body: &protocol.Stock{Slices: []protocol.Slice{device("b")}}}, 0},
		"its machine leaves": {protocol.Message{Kind: protocol.Inventory, From: executor,
			Body: &protocol.Stock{Slices: []protocol.Slice{device("a"), device("b")}, Until: at(time.Hour), Leaves: true}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := booted(t)
			first := w.sell(1, "a", time.Second, 7, false)
			w.stays(first, 7)
			w.step(c.in)
			if c.end > 0 {
				w.never(protocol.Dismiss)
				w.now = at(c.end - 1)
				w.step(protocol.Message{Kind: protocol.Tick})
				w.never(protocol.Dismiss)
				w.now = at(c.end)
				w.step(protocol.Message{Kind: protocol.Tick})
			}
			same(t, "who is told to end", w.must(protocol.Dismiss).Token, first)
		})
	}
}

func TestAProgramThatNobodyKnowsEnds(t *testing.T) {
	w := booted(t)
	m := exited(job.Token{Epoch: 1, Seq: 99}, job.Done, 1)
	m.Body.(*protocol.Conclusion).Resident = &protocol.Resident{Number: 7}
	w.step(m)
	same(t, "who is told to end", w.must(protocol.Dismiss).Token, job.Token{Epoch: 1, Seq: 99})
	first := w.sell(1, "a", time.Minute, 7, false)
	w.stays(first, 7)
	w.stays(first, 7) // heard again
	w.never(protocol.Dismiss)
	w.restart()
	w.inventory()
	if v := w.views["a"]; v.Resident != nil {
		t.Fatalf("a boot sees %+v", v.Resident)
	}
}

func TestTheMemoryOfAProgramCountsWhileItWaits(t *testing.T) {
	cfg := Config{ID: "n", Zone: "z", Host: joint.Config{Memory: 100}}
	w := &world{tb: t, cfg: cfg, now: t0, n: New(cfg), shadow: New(cfg), twin: New(cfg)}
	w.recover()
	w.inventory()
	w.stays(w.sell(1, "a", time.Minute, 7, false), 7) // it keeps 50
	big := func(id uint64, s job.SliceID, number uint64) protocol.Message {
		m := w.askFor(id, s, time.Minute, number, false)
		m.Body.(*protocol.Asking).Demand, m.Body.(*protocol.Asking).Peak = trp.Vector{70}, trp.Peak{Mean: 70}
		return m
	}
	same(t, "what the other slice is offered with", w.views["b"].Slice.Bears, quantity.Amount(50))
	same(t, "what its own is", w.views["a"].Slice.Bears, quantity.Amount(100))
	w.step(big(2, "b", 8))
	w.must(protocol.Refused)
	w.step(big(3, "a", 7)) // in which it is
	w.must(protocol.Granted)
}
