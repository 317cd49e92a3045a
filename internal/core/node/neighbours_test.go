package node

import (
	"cmp"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/leases"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// shared is a machine of several nodes, each with slices a and b.
type shared []*world

func newShared(t tb, nodes int) (m shared) {
	for i := range nodes {
		w := &world{tb: t, cfg: Config{ID: "n", Zone: "z", Number: i}, now: t0}
		w.n, w.shadow, w.twin = New(w.cfg), New(w.cfg), New(w.cfg)
		w.recover()
		w.inventory()
		m = append(m, w)
	}
	return m
}

// press tells every node the same word, with what the others know of theirs before any of them has heard it, and returns what was done to
// whom.
func (m shared) press(s protocol.Strain) (done []protocol.Message) {
	all := make([][]protocol.Neighbour, len(m))
	for i, w := range m {
		w.Helper()
		all[i] = w.n.Neighbours(s.Uses)
	}
	for i, w := range m {
		own := s
		own.Uses = slices.DeleteFunc(slices.Clone(s.Uses), func(u protocol.Use) bool { return NumberOf(u.Token) != i })
		for j := range all {
			if j != i {
				own.Others = append(own.Others, all[j]...)
			}
		}
		w.step(protocol.Message{Kind: protocol.Pressure, From: executor, Body: &own})
		for _, e := range w.effects {
			if e.Kind == protocol.Suspend || e.Kind == protocol.Resume || e.Kind == protocol.Stop {
				done = append(done, e)
			}
		}
	}
	return done
}

func (m shared) pass(d time.Duration) {
	for _, w := range m {
		w.Helper()
		w.pass(d)
	}
}

// TestTheLowestOfTheMachineGivesWay: whichever node has it. Nobody else does, and nothing is granted at any node until it goes on.
func TestTheLowestOfTheMachineGivesWay(t *testing.T) {
	m := newShared(t, 2)
	low, high := m[1].ranked(1, "a", protocol.Rank{}, 0), m[0].ranked(2, "a", protocol.Rank{Priority: 1}, 0)
	s := protocol.Strain{Capacity: 100 * gib, Used: 93 * gib, Room: 50 * gib, Uses: []protocol.Use{{Token: high, Resident: 60 * gib},
		{Token: low, Resident: 20 * gib}}}
	is := func(what string, kind protocol.Kind) {
		t.Helper()
		if done := m.press(s); len(done) != 1 || done[0].Kind != kind || done[0].Token != low {
			t.Errorf("%s: done are %+v, want kind %d to %v", what, done, kind, low)
		}
	}
	is("over the line", protocol.Suspend)
	if done := m.press(s); len(done) != 0 {
		t.Errorf("it is suspended soon, and done are %+v", done)
	}
	if steps := m[1].n.Airlock(t0).Steps; len(steps) != 1 || steps[0].Spared != "j" || steps[0].SparedToken != high {
		t.Errorf("why it was hit is told as %+v", steps)
	}
	if steps := m[0].n.Airlock(t0).Steps; len(steps) != 0 {
		t.Errorf("of what nothing was done to it is told %+v", steps)
	}
	m[1].still(low, true)
	s.Used, s.Uses[1] = 60*gib, protocol.Use{Token: low, Parked: 20 * gib}
	is("calm again", protocol.Resume)
	for i, w := range m {
		w.step(ask(uint64(3+i), "b", time.Minute, 10*time.Minute))
		if w.sent(protocol.Granted) != nil {
			t.Errorf("node %d grants what the suspended one is to have", i+1)
		}
	}
	m[1].still(low, false)
	m.press(s)
	for i, w := range m {
		w.step(ask(uint64(5+i), "b", time.Minute, 10*time.Minute))
		if w.sent(protocol.Granted) == nil {
			t.Errorf("node %d grants nothing, and nothing is suspended", i+1)
		}
	}
}

// TestTheNextGivesWayInTheLowestsPlace: it can't be helped by anything that is legal, and the other node's is asked for it. Who ends is the
// lowest all the same.
func TestTheNextGivesWayInTheLowestsPlace(t *testing.T) {
	m := newShared(t, 2)
	low, high := m[1].ranked(1, "a", protocol.Rank{Class: protocol.Lasting}, 2),
		m[0].ranked(2, "a", protocol.Rank{Class: protocol.Collective, Yields: true}, 0)
	s := protocol.Strain{Capacity: 100 * gib, Used: 93 * gib, Room: 50 * gib, Uses: []protocol.Use{{Token: high, Resident: 60 * gib},
		{Token: low, Resident: 20 * gib}}}
	if done := m.press(s); len(done) != 1 || done[0].Token != high || done[0].Kind != protocol.Suspend {
		t.Errorf("done are %+v", done)
	}
	s.Used, s.Room = 98*gib, 0
	if done := m.press(s); len(done) != 1 || done[0].Token != low {
		t.Errorf("at the emergency line done are %+v, want the end of %v alone", done, low)
	}
}

// TestASilentExecutorsNeighboursAreForgotten: what stands at another node, by an old word, holds nothing of ours back.
func TestASilentExecutorsNeighboursAreForgotten(t *testing.T) {
	m := newShared(t, 2)
	low, high := m[0].ranked(1, "a", protocol.Rank{}, 0), m[1].ranked(2, "a", protocol.Rank{Priority: 1}, 0)
	s := protocol.Strain{Capacity: 100 * gib, Used: 93 * gib, Room: 50 * gib, Uses: []protocol.Use{{Token: high, Resident: 5 * gib},
		{Token: low, Resident: 5 * gib}}}
	if done := m.press(s); len(done) != 2 {
		t.Fatalf("done are %+v", done)
	}
	m[0].still(low, true)
	m[1].still(high, true)
	s.Used, s.Uses = 86*gib, nil
	m.press(s) // and nothing more
	m.pass(30 * time.Second)
	if l := m[0].n.leases.Of(low); l.Phase() != leases.Resuming {
		t.Errorf("its time is over, there is room, and it is %v", l.Phase())
	}
}

// TestManyNodesDecideAsOne: what several nodes of a machine do is what one that has all of their subjobs would do, in any state that words
// have led to.
func TestManyNodesDecideAsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newShared(t, rapid.IntRange(2, 3).Draw(t, "nodes"))
		var tokens []job.Token
		for _, w := range m {
			for _, s := range []job.SliceID{"a", "b"} {
				r := protocol.Rank{
					Priority: int32(rapid.IntRange(-1, 1).Draw(t, "priority")),
					Class:    protocol.Class(rapid.IntRange(0, protocol.Classes-1).Draw(t, "class")),
					Value:    uint16(rapid.IntRange(0, 2).Draw(t, "value")), Yields: rapid.Bool().Draw(t, "yields"),
				}
				tokens = append(tokens, w.ranked(uint64(1+len(tokens)), s, r, 2*rapid.IntRange(0, 1).Draw(t, "bound")))
			}
		}
		one, owed, ending := airlock.New(airlock.Config{}), airlock.Owed{}, map[job.Token]quantity.Amount{}
		for range rapid.IntRange(1, 8).Draw(t, "words") {
			for _, w := range m {
				w.now = w.now.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "s")) * time.Second)
			}
			for _, w := range m { // one clock
				w.now = slices.MaxFunc(m, func(a, b *world) int { return cmp.Compare(a.now, b.now) }).now
				w.step(protocol.Message{Kind: protocol.Tick})
			}
			s := protocol.Strain{
				Capacity: 160 * gib, Room: quantity.Amount(rapid.IntRange(0, 100).Draw(t, "room")) * gib,
				Used: quantity.Amount(rapid.SampledFrom([]int{40, 130, 148, 150, 154, 157}).Draw(t, "used")) * gib,
			}
			for _, token := range tokens {
				w := m[NumberOf(token)]
				if l := w.n.leases.Of(token); l != nil && !l.Ended() {
					u := protocol.Use{Token: token, Resident: quantity.Amount(rapid.IntRange(0, 40).Draw(t, "resident")) * gib}
					if l.Phase() == leases.Suspending && rapid.Bool().Draw(t, "stands") {
						w.still(token, true)
					}
					if l.Phase() == leases.Suspended {
						u.Parked = quantity.Amount(rapid.IntRange(0, 20).Draw(t, "parked")) * gib
					}
					s.Uses = append(s.Uses, u)
				}
			}
			let := quantity.Amount(0)
			for token, had := range ending {
				let += max(0, had-residentOf(s.Uses, token))
			}
			whole := airlock.Snapshot{Capacity: s.Capacity, Used: s.Used, Room: s.Room, Owed: owed.Look(m[0].now, s.Used, let)}
			for _, w := range m {
				for _, o := range w.n.Neighbours(s.Uses) {
					whole.Tasks = append(whole.Tasks, taskOf(&o))
				}
			}
			want := map[job.Token]airlock.Step{}
			for _, a := range one.Decide(m[0].now, &whole).Actions {
				want[a.Token] = a.Step
			}
			clear(ending)
			for i := range whole.Tasks {
				if task := &whole.Tasks[i]; task.State == airlock.Reclaiming || want[task.Token] == airlock.Reclaim {
					ending[task.Token] = task.Resident
				}
			}
			got := map[job.Token]airlock.Step{}
			for _, e := range m.press(s) {
				switch {
				case e.Kind == protocol.Suspend:
					got[e.Token] = airlock.Suspend
				case e.Kind == protocol.Resume:
					got[e.Token] = airlock.Resume
				case e.Body.(*protocol.Halt).Now:
					got[e.Token] = airlock.Reclaim
				default:
					got[e.Token] = airlock.Readdress
				}
			}
			if !maps.Equal(got, want) {
				t.Fatalf("the nodes do %v, one would do %v", got, want)
			}
		}
	})
}

func residentOf(uses []protocol.Use, token job.Token) quantity.Amount {
	if i := slices.IndexFunc(uses, func(u protocol.Use) bool { return u.Token == token }); i >= 0 {
		return uses[i].Resident
	}
	return 0
}
