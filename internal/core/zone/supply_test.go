package zone_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/core/trp"
)

// pool lends slices of so many MiB, and shows room without an end.
func pool(w *world, mib int64) *supply.Sight {
	return &supply.Sight{
		Number: 1, Seen: w.now, Gaps: []supply.Gap{{Start: w.now, End: quantity.Never, Count: 9}},
		Pool: supply.Pool{
			Name: "p", Most: 9, Lengths: []time.Duration{5 * time.Minute, 2 * time.Hour}, Step: time.Minute, Idle: time.Minute,
			Start: 30 * time.Second, HandOver: 30 * time.Second,
			Slices: []supply.Slice{{Capacity: trp.Vector{quantity.Amount(mib << 20)}, Speed: 1000}},
		},
	}
}

// sees has the zone told of a pool, and returns what it orders.
func (w *world) sees(s *supply.Sight) *supply.Order {
	before := len(w.facts)
	w.step(protocol.Message{Kind: protocol.Sighted, From: protocol.Address{Role: protocol.Provider, ID: s.Pool.Name}, Body: s})
	said := of(protocol.Ordered, w.out.Effects)
	if len(said) != 1 || said[0].To != (protocol.Address{Role: protocol.Provider, ID: s.Pool.Name}) {
		w.t.Fatalf("a sight is answered by %+v", said)
	}
	if slices.ContainsFunc(w.facts[before:], func(f protocol.Fact) bool { return f.Kind != protocol.Claimed }) {
		w.t.Fatalf("a sight makes facts %+v", w.facts[before:])
	}
	return said[0].Body.(*supply.Order)
}

// TestAPoolServesWhatWaits: jobs that nothing here can run are laid on pilots, and others are not.
func TestAPoolServesWhatWaits(t *testing.T) {
	minutes := func(n ...int) (list []time.Duration) {
		for _, n := range n {
			list = append(list, time.Duration(n)*time.Minute)
		}
		return list
	}
	capped := func(w *world) {
		w.step(protocol.Message{Kind: protocol.QueueChanged, From: protocol.Address{Role: protocol.Gate},
			Body: &protocol.Queue{Name: "default", Weight: 1, Cap: 2}})
	}
	paused := func(id job.ID) func(w *world) {
		return func(w *world) {
			w.step(protocol.Message{Kind: protocol.PauseJob, Job: id, Epoch: 1, From: protocol.Address{Role: protocol.Gate},
				Body: &protocol.Pause{Paused: true}})
		}
	}
	for _, c := range []struct {
		name string
		// own are slices that are there, in MiB, mib those of a pilot.
		own    []int64
		mib    int64
		jobs   []*job.Spec
		before func(w *world)
		ask    []time.Duration
		why    string
	}{
		{name: "nothing waits", mib: 900, why: "no job waits"},
		{name: "units, on several", mib: 900, jobs: []*job.Spec{items(t, "a", 1800, 400, 3)}, ask: minutes(14, 14, 14)},
		{name: "a chain, on one", mib: 900, jobs: []*job.Spec{steps(t, "a", 1200, 10, 400)}, ask: minutes(27)},
		{name: "rigid", mib: 900, jobs: []*job.Spec{rigid(t, "a", 10*time.Minute, 400, 1)}, ask: minutes(11)},
		{name: "rigid without an end", mib: 900, jobs: []*job.Spec{rigid(t, "a", 0, 400, 1)}, why: "no job waits"},
		{name: "a gang", mib: 900, jobs: []*job.Spec{rigid(t, "a", 10*time.Minute, 400, 2)}, why: "no job waits"},
		{name: "too large for the pool", mib: 300, jobs: []*job.Spec{items(t, "a", 1800, 400, 3)}, why: "no job waits"},
		{name: "served already", own: []int64{900}, mib: 900, jobs: []*job.Spec{steps(t, "a", 1200, 10, 400)}, why: "no job waits"},
		{name: "too large for what is there", own: []int64{300}, mib: 900, jobs: []*job.Spec{steps(t, "a", 1200, 10, 400)},
			ask: minutes(27)},
		{name: "the second of two", own: []int64{900}, mib: 900, ask: minutes(27),
			jobs: []*job.Spec{steps(t, "a", 1200, 10, 400), steps(t, "b", 1200, 10, 400)}},
		{name: "what runs here has room for more", own: []int64{900}, mib: 900, jobs: []*job.Spec{items(t, "a", 1800, 400, 4)},
			ask: minutes(12, 12, 12)},
		{name: "paused", mib: 900, jobs: []*job.Spec{steps(t, "a", 1200, 10, 400)}, before: paused("a"), why: "no job waits"},
		{name: "its queue's cap", mib: 900, jobs: []*job.Spec{items(t, "a", 1800, 400, 8)}, before: capped, ask: minutes(20, 20)},
		{name: "its queue's cap, of which something runs here", own: []int64{900}, mib: 900, before: capped,
			jobs: []*job.Spec{items(t, "a", 1800, 400, 8)}, ask: minutes(37)},
		{name: "by policy, as far as there may be pilots", mib: 900, ask: minutes(7, 27),
			jobs: []*job.Spec{rigid(t, "a", 6*time.Minute, 400, 1), steps(t, "b", 1200, 10, 400)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.own...)
			w.tick()
			for _, s := range c.jobs {
				w.submit(s)
				w.now++
			}
			if c.before != nil {
				c.before(w)
			}
			if len(c.own) > 0 {
				for i := 0; i < 20 && w.now < quantity.Instant(3e9); i++ {
					w.tick()
				}
			}
			o := w.sees(pool(w, c.mib))
			if !slices.Equal(o.Ask, c.ask) || !strings.Contains(o.Why, c.why) {
				t.Errorf("it asks for %v, want %v, and says: %s", o.Ask, c.ask, o.Why)
			}
			w.restart()
			if again := w.sees(pool(w, c.mib)); len(c.own) == 0 && fmt.Sprint(again) != fmt.Sprint(o) {
				t.Errorf("after a restart it orders %+v, before %+v", again, o)
			}
		})
	}
}

// TestAPilotServesTheJob that it was asked for: its machine joins, nothing more is asked for, and at the end it has nothing to do.
func TestAPilotServesTheJob(t *testing.T) {
	w := newWorld(t)
	w.submit(steps(t, "a", 300, 10, 400))
	if o := w.sees(pool(w, 900)); len(o.Ask) != 1 {
		t.Fatalf("%+v", o)
	}
	pilot := supply.Pilot{Name: "p-1", State: supply.Waiting, Length: 10 * time.Minute, Asked: w.now}
	sight := func() *supply.Sight {
		s := pool(w, 900)
		s.Pilots = []supply.Pilot{pilot}
		return s
	}
	if o := w.sees(sight()); len(o.Ask)+len(o.Cancel)+len(o.Idle) != 0 {
		t.Errorf("while it waits: %+v", o)
	}
	w.now = w.now.Add(10 * time.Second)
	pilot.State, pilot.Started, pilot.Joined, pilot.Until = supply.Joined, w.now, w.now, w.now.Add(10*time.Minute)
	w.brings("p-1/0", "p-1", 900)
	busy := false
	for end := w.now.Add(10 * time.Minute); w.now < end && len(w.closed) == 0; {
		w.tick()
		o := w.sees(sight())
		if len(o.Ask)+len(o.Cancel) != 0 {
			t.Fatalf("while it runs: %+v", o)
		}
		if len(o.Idle) == 0 && !busy {
			busy = true
			w.restart() // it has no slices then, until its node has offered them again
			if o := w.sees(sight()); len(o.Ask)+len(o.Cancel)+len(o.Idle) != 0 {
				t.Fatalf("while the zone comes up again: %+v", o)
			}
		}
	}
	if !busy || len(w.closed) != 1 {
		t.Fatalf("closed %v, busy %v", w.closed, busy)
	}
	o := w.sees(sight())
	if !slices.Equal(o.Idle, []string{"p-1"}) || len(o.Cancel) != 0 {
		t.Errorf("when nothing is left: %+v", o)
	}
	pilot.Idle, w.now = w.now, w.now.Add(time.Minute)
	if o := w.sees(sight()); len(o.Cancel) != 1 || o.Cancel[0].Name != "p-1" {
		t.Errorf("a minute later: %+v", o)
	}
}

// TestOnlyAProviderSpeaksOfItsPool, and of nothing else.
func TestOnlyAProviderSpeaksOfItsPool(t *testing.T) {
	w := newWorld(t, 900)
	w.submit(steps(t, "a", 300, 10, 400))
	for w.deliver() {
	}
	at := func(r protocol.Role, id string) protocol.Address { return protocol.Address{Role: r, ID: id} }
	for _, from := range []protocol.Address{
		at(protocol.Node, "n"), at(protocol.Node, "p"), at(protocol.Gate, "p"), at(protocol.Person, "p"), at(protocol.Provider, "q"),
		at(protocol.Provider, ""), at(protocol.Executor, "p"), at(protocol.Zone, "p"),
	} {
		ignored(t, w, fmt.Sprintf("from %+v", from), protocol.Message{Kind: protocol.Sighted, From: from, Body: pool(w, 900)})
	}
	for _, m := range []protocol.Message{
		{Kind: protocol.Cancel, Job: "a", Epoch: 1, Body: &protocol.Cancellation{Text: "no"}},
		{Kind: protocol.Removed, Body: &protocol.Removal{Node: "n"}},
		{Kind: protocol.PauseJob, Job: "a", Epoch: 1, Body: &protocol.Pause{Paused: true}},
	} {
		m.From = at(protocol.Provider, "p")
		ignored(t, w, fmt.Sprintf("kind %d", m.Kind), m)
	}
}
