package airlock

import (
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestTheNextGivesWayAboveOneThatCannot: before memory gets to the emergency line, where the lowest is ended whatever else is open.
func TestTheNextGivesWayAboveOneThatCannot(t *testing.T) {
	task := func(seq uint64, change func(*Task)) Task {
		k := Task{Token: job.Token{Epoch: 1, Seq: seq}, Start: 1, Priority: int32(seq), Resident: 10 * gib}
		change(&k)
		return k
	}
	able, stuck := func(*Task) {}, func(k *Task) { k.Bound = true }
	yields := func(k *Task) { k.Yields = true }
	for _, c := range []struct {
		name             string
		used, grow, room quantity.Amount
		tasks            []func(*Task)
		want             []Step // of each task; 0: none
		blocked          int
	}{
		{"the next can be suspended", 93, 0, 50, []func(*Task){stuck, able, able}, []Step{0, Suspend, 0}, 0},
		{"the next can yield", 93, 0, 0, []func(*Task){able, yields, able}, []Step{0, Readdress, 0}, 0},
		{"the next but one can", 93, 0, 50, []func(*Task){stuck, stuck, able, able}, []Step{0, 0, Suspend, 0}, 0},
		{
			"two are needed, with one that can't between them", 95, 1, 50,
			[]func(*Task){able, stuck, able, able}, []Step{Suspend, 0, Suspend, 0}, 1,
		},
		{
			"suspension frees what it would have grown by", 93, 1, 0,
			[]func(*Task){stuck, able, func(k *Task) { k.Growth = gib }}, []Step{0, 0, Suspend}, 0,
		},
		{"nobody can", 93, 0, 50, []func(*Task){stuck, stuck}, []Step{0, 0}, 0},
		{
			"at the emergency line what is above it has room outside", 98, 0, 50,
			[]func(*Task){stuck, able, able}, []Step{0, Suspend, Suspend}, 0,
		},
		{"at the emergency line it has none, and the lowest ends", 98, 0, 0, []func(*Task){stuck, able}, []Step{Reclaim, 0}, -1},
		{
			"a checkpoint takes too long there", 98, 0, 50,
			[]func(*Task){stuck, func(k *Task) { k.Bound, k.Yields = true, true }}, []Step{Reclaim, 0}, -1,
		},
		{
			"as before of who is the lowest", 98, 0, 50,
			[]func(*Task){func(k *Task) { k.Bound, k.Yields, k.Resident = true, true, 20*gib }}, []Step{Readdress}, -1,
		},
	} {
		s := Snapshot{Capacity: 100 * gib, Used: c.used * gib, Growth: c.grow * gib, Room: c.room * gib}
		for i, change := range c.tasks {
			s.Tasks = append(s.Tasks, task(uint64(1+i), change))
		}
		d := New(Config{}).Decide(t0, &s)
		got := make([]Step, len(c.tasks))
		for _, a := range d.Actions {
			got[a.Task] = a.Step
		}
		if !slices.Equal(got, c.want) || d.Blocked != c.blocked {
			t.Errorf("%s: %v, blocked %d, want %v and %d: %v", c.name, got, d.Blocked, c.want, c.blocked, d)
		}
	}
}

// TestNobodyIsEndedForItsTimeAboveOneThatStays: it goes on, at any level. Whoever then has to end is the lowest.
func TestNobodyIsEndedForItsTimeAboveOneThatStays(t *testing.T) {
	for _, c := range []struct {
		name   string
		used   quantity.Amount
		change func(low *Task)
		want   Step
	}{
		{"one below it runs", 93 * gib, func(*Task) {}, Resume},
		{"between the lines", 90 * gib, func(*Task) {}, Resume},
		{"it can't be asked while memory ends, and the lowest brings enough", 98 * gib, func(*Task) {}, Resume},
		{"one below it is suspended, and has time", 90 * gib, func(l *Task) {
			l.State, l.Since, l.Parked, l.Resident = Suspended, t0.Add(-time.Second), 30*gib, 0
		}, Resume},
		{"the one below it is over its time too", 90 * gib, func(l *Task) {
			l.State, l.Since = Suspended, t0.Add(-31*time.Second)
		}, Reclaim},
		{"the one below it leaves", 90 * gib, func(l *Task) { l.State, l.Since = Readdressing, t0.Add(-time.Second) }, Reclaim},
		{"the one below it has next to nothing", 90 * gib, func(l *Task) { l.Resident = gib / 100 }, Reclaim},
		{"the other is above it", 90 * gib, func(l *Task) { l.Priority = 9 }, Reclaim},
	} {
		low := Task{Token: job.Token{Epoch: 1, Seq: 1}, Start: 1, Resident: 30 * gib, Bound: true}
		c.change(&low)
		high := Task{
			Token: job.Token{Epoch: 1, Seq: 2}, Start: 1, Priority: 1, State: Suspended, Since: t0.Add(-30 * time.Second),
			Parked: 20 * gib, Entries: 1,
		}
		d := New(Config{}).Decide(t0, &Snapshot{Capacity: 100 * gib, Used: c.used, Tasks: []Task{low, high}})
		i := slices.IndexFunc(d.Actions, func(a Action) bool { return a.Task == 1 })
		if i < 0 || d.Actions[i].Step != c.want || d.Actions[i].Cause != Overtime {
			t.Errorf("%s: %v, want %v", c.name, d, c.want)
		}
	}
}

// TestWhoHasOutgrownItsPlanLeavesTheRoomOutside as soon as it is calm, if it does not fit again. It is from airlock-storm: a sawtooth made
// 22 GiB of 8 and was moved out until the swap was full, and 20 s were to pass until it would be asked. After 19.4 s another jumped by 36
// GiB: past the end of the memory and of the swap, where the kernel ended that one, which had run for longer and ranked higher.
func TestWhoHasOutgrownItsPlanLeavesTheRoomOutside(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Snapshot, *Task)
		want   Step
		cause  Cause
	}{
		{"it would not fit", func(*Snapshot, *Task) {}, Readdress, Cramped},
		{"it fits", func(s *Snapshot, _ *Task) { s.Used -= 100 * mib }, Resume, Eased},
		{"it has kept to its plan", func(_ *Snapshot, k *Task) { k.Planned, k.Since = 22*gib, t0.Add(-10*time.Second) }, 0, 0},
		{"it can't yield", func(_ *Snapshot, k *Task) { k.Yields = false }, 0, 0},
		{"it is not calm yet", func(s *Snapshot, _ *Task) { s.Used = 154000 * mib }, 0, 0},
		{"it is not suspended yet", func(_ *Snapshot, k *Task) { k.State = Suspending }, 0, 0},
	} {
		s := Snapshot{Capacity: 176 * gib, Used: 149504 * mib, Tasks: []Task{{
			Token: job.Token{Epoch: 1, Seq: 1}, Start: 1, Resident: 6 * gib, Parked: 16 * gib, Planned: 9 * gib,
			State: Suspended, Since: t0.Add(-17 * time.Second), Yields: true, Entries: 1,
		}}}
		c.change(&s, &s.Tasks[0])
		d := New(Config{}).Decide(t0, &s)
		got := len(d.Actions) == 1 && d.Actions[0].Step == c.want && d.Actions[0].Cause == c.cause
		if !got && (c.want != 0 || len(d.Actions) > 0) {
			t.Errorf("%s: %v, want %v", c.name, d, c.want)
		}
	}
}

// TestACheckpointAboveOneThatKeepsToItsPlanIsTooSlow at the emergency line, where it does not count who has outgrown its plan.
func TestACheckpointAboveOneThatKeepsToItsPlanIsTooSlow(t *testing.T) {
	low, high := Task{Token: job.Token{Epoch: 1, Seq: 1}, Start: 1, Resident: 10 * gib, Bound: true}, outgrown(2, 20*gib, 0)
	high.Priority, high.Bound = 1, true
	s := Snapshot{Capacity: 100 * gib, Used: 98 * gib, Growth: gib, Room: 50 * gib, Tasks: []Task{low, high}}
	d := New(Config{Outgrown: OutgrownAlike}).Decide(t0, &s)
	if len(d.Actions) != 1 || d.Actions[0].Task != 0 || d.Actions[0].Step != Reclaim {
		t.Errorf("%v", d)
	}
}
