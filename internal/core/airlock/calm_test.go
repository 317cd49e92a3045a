package airlock

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// standing is a task that is suspended for so long, with a part of it outside that is more than lies between the calm line of a host of 100
// GiB and its severe one.
func standing(seq uint64, stood time.Duration) Task {
	return Task{Token: job.Token{Epoch: 1, Seq: seq}, Start: 1, Resident: 20 * gib, Parked: 9 * gib, State: Suspended,
		Since: t0.Add(-stood), Entries: 1, Yields: true}
}

// TestWhatIsOutsideKeepsNobodyFromGoingOnWhereItIsCalm: memory is moved out until it is calm and no further, so a large part of a large
// task may never find room below the severe line. It takes again what it touches, and no more.
func TestWhatIsOutsideKeepsNobodyFromGoingOnWhereItIsCalm(t *testing.T) {
	for _, c := range []struct {
		name   string
		used   quantity.Amount
		stood  time.Duration
		change func(*Task)
		want   Step
		cause  Cause
	}{
		{"it is to be asked soon", 84 * gib, 15 * time.Second, func(*Task) {}, Resume, Waited},
		{"now", 84 * gib, 20 * time.Second, func(*Task) {}, Resume, Waited},
		{"there is time yet", 84 * gib, 15*time.Second - 1, func(*Task) {}, 0, 0},
		{"it is not calm", 85 * gib, 20 * time.Second, func(*Task) {}, Readdress, Waited},
		{"it is not calm, and its time is over", 85 * gib, 30 * time.Second, func(*Task) {}, Reclaim, Overtime},
		{"it has outgrown its plan", 84 * gib, 20 * time.Second, func(k *Task) { k.Planned = 20 * gib }, Readdress, Waited},
		{"so it has, and can't yield", 84 * gib, 20 * time.Second, func(k *Task) { k.Planned, k.Yields = 20*gib, false }, 0, 0},
		{"nor at its end", 84 * gib, 30 * time.Second, func(k *Task) { k.Planned, k.Yields = 20*gib, false }, Resume, Waited},
		{"it was asked before", 84 * gib, 30 * time.Second, func(k *Task) { k.State, k.Parked = Readdressing, 0 }, Reclaim, Overtime},
		{"all that is used and all that is outside find room", 80 * gib, 20 * time.Second, func(*Task) {}, Resume, Eased},
	} {
		k := standing(1, c.stood)
		c.change(&k)
		d := New(Config{}).Decide(t0, &Snapshot{Capacity: 100 * gib, Used: c.used, Room: 50 * gib, Tasks: []Task{k}})
		if c.want == 0 && len(d.Actions) > 0 || c.want != 0 && (len(d.Actions) != 1 || d.Actions[0].Step != c.want ||
			d.Actions[0].Cause != c.cause) {
			t.Errorf("%s: %v, want %v since %v", c.name, d, c.want, c.cause)
		}
	}
}

// TestTheyGoOnOneByOneWhereTheirMemoryMayNotFindRoom: the highest, and the next when the first has had time to show what it needs.
func TestTheyGoOnOneByOneWhereTheirMemoryMayNotFindRoom(t *testing.T) {
	low, high := standing(1, 20*time.Second), standing(2, 20*time.Second)
	low.Yields, high.Priority = false, 1
	s := Snapshot{Capacity: 100 * gib, Used: 84 * gib, Tasks: []Task{low, high}}
	a := New(Config{})
	if d := a.Decide(t0, &s); len(d.Actions) != 1 || d.Actions[0].Task != 1 || d.Actions[0].Step != Resume {
		t.Errorf("first: %v", d)
	}
	s.Tasks[1].State, s.Tasks[1].Since, s.Tasks[1].Resumed = Running, 0, t0
	if d := a.Decide(t0.Add(5*time.Second-1), &s); len(d.Actions) != 0 {
		t.Errorf("before its turn: %v", d)
	}
	if d := a.Decide(t0.Add(5*time.Second), &s); len(d.Actions) != 1 || d.Actions[0].Task != 0 || d.Actions[0].Step != Resume {
		t.Errorf("when it is its turn: %v", d)
	}
}

// calmHost is calm, with tasks that are suspended, of which any part may be outside.
func calmHost(t *rapid.T) *Snapshot {
	s := host(t)
	s.Used, s.Growth, s.Stall = quantity.Amount(rapid.IntRange(0, 85<<10-1).Draw(t, "used MiB"))<<20, 0, 0
	for i := range s.Tasks {
		if k := &s.Tasks[i]; rapid.Bool().Draw(t, "stands") {
			k.State, k.Since, k.Growth = Suspended, t0.Add(-time.Duration(rapid.IntRange(0, 40).Draw(t, "stood s"))*time.Second), 0
			k.Parked = quantity.Amount(rapid.SampledFrom([]int{0, 1, 5000, 9000, 60000}).Draw(t, "parked MiB")) << 20
		}
	}
	return s
}

// TestNobodyIsEndedForBeingSuspendedWhereItIsCalm but behind one above it that is suspended; and of those that have kept to their plan the
// highest is not asked to yield either, unless another has just gone on.
func TestNobodyIsEndedForBeingSuspendedWhereItIsCalm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, s := config(t), calmHost(t)
		d := New(c).Decide(t0, s)
		head, last := -1, quantity.Instant(0)
		for i := range s.Tasks {
			k := &s.Tasks[i]
			if last = max(last, k.Resumed); k.State == Suspended && (head < 0 || below(&c, &s.Tasks[head], k)) {
				head = i
			}
			if k.State == Resuming { // it is not known yet what that needs
				last = t0
			}
		}
		for _, x := range d.Actions {
			k := &s.Tasks[x.Task]
			if x.Step == Reclaim && x.Task == head {
				t.Fatalf("%+v is ended: %v", *k, d)
			}
			if x.Step == Readdress && x.Task == head && !k.Outgrown() && (last == 0 || t0.Sub(last) >= c.CoolDown) {
				t.Fatalf("%+v is asked: %v", *k, d)
			}
		}
	})
}

// TestWhereItStaysCalmTheHighestGoesOn, whatever of it is outside, and whoever looks how often.
func TestWhereItStaysCalmTheHighestGoesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := config(t)
		s := &Snapshot{Capacity: 100 * gib, Used: quantity.Amount(rapid.IntRange(0, 85<<10-1).Draw(t, "used MiB")) << 20}
		for i := range rapid.IntRange(1, 4).Draw(t, "tasks") {
			k := standing(uint64(i), 0)
			k.Parked = quantity.Amount(rapid.IntRange(0, 60<<10).Draw(t, "parked MiB")) << 20
			k.Priority, k.Yields = rapid.Int32Range(0, 3).Draw(t, "priority"), rapid.Bool().Draw(t, "yields")
			s.Tasks = append(s.Tasks, k)
		}
		byRank := func(x, y Task) int {
			if below(&c, &x, &y) {
				return 1
			}
			return -1
		}
		slices.SortFunc(s.Tasks, byRank)
		a, every := New(c), time.Duration(rapid.IntRange(1, 1000).Draw(t, "every ms"))*time.Millisecond
		for now := t0; now.Sub(t0) < 40*time.Second; now = now.Add(every) {
			d := a.Decide(now, s)
			for _, x := range d.Actions {
				k := &s.Tasks[x.Task]
				switch x.Step {
				case Resume:
					k.State, k.Since, k.Resumed = Running, 0, now
				case Readdress:
					if x.Task == 0 {
						t.Fatalf("after %v the highest is asked: %v", now.Sub(t0), d)
					}
					k.State = Reclaiming // and gone in time
				default:
					t.Fatalf("after %v: %v", now.Sub(t0), d)
				}
			}
		}
		for i := range s.Tasks {
			if k := &s.Tasks[i]; k.State == Suspended {
				t.Fatalf("%+v is suspended for good", *k)
			}
		}
	})
}

// TestOneLookAboveTheCalmLineAsksNobody: what is moved out ends just below that line, and what else runs is never quite the same.
func TestOneLookAboveTheCalmLineAsksNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &Snapshot{Capacity: 100 * gib, Tasks: []Task{standing(1, 0)}}
		a, every, above := New(Config{}), rapid.IntRange(10, 500).Draw(t, "every ms"), 0
		for now := t0; s.Tasks[0].State == Suspended; now = now.Add(time.Duration(every) * time.Millisecond) {
			if s.Used = 85*gib - 1; above < 9 && rapid.Bool().Draw(t, "above") {
				s.Used, above = 85*gib, above+1
			} else {
				above = 0
			}
			for _, x := range a.Decide(now, s).Actions {
				if x.Step != Resume {
					t.Fatalf("after %v it is %v", now.Sub(t0), x.Step)
				}
				s.Tasks[0].State = Running
			}
		}
	})
}
