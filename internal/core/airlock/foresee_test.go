package airlock

import (
	"slices"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// outgrown has more than its plan, and can yield.
func outgrown(seq uint64, resident, growth quantity.Amount) Task {
	return Task{Token: job.Token{Epoch: 1, Seq: seq}, Start: 1, Resident: resident, Growth: growth, Planned: gib, Yields: true}
}

// TestTheNextIsAskedAboveOneThatCannotYield: to wait would bring both to the emergency line, where that one loses all that it has.
func TestTheNextIsAskedAboveOneThatCannotYield(t *testing.T) {
	low, high := outgrown(1, 20*gib, 0), outgrown(2, 20*gib, 0)
	low.Yields, high.Priority = false, 1
	s := Snapshot{Capacity: 100 * gib, Used: 91 * gib, Growth: gib, Tasks: []Task{low, high}}
	if d := New(Config{}).Decide(t0, &s); len(d.Actions) != 1 || d.Actions[0].Task != 1 || d.Actions[0].Cause != Foreseen {
		t.Errorf("%v", d)
	}
}

// TestWhatLeavesDoesNotGrowEither: what would be taken by one that was asked before is not missing.
func TestWhatLeavesDoesNotGrowEither(t *testing.T) {
	asked := outgrown(1, gib/2, gib/10)
	asked.State, asked.Since = Readdressing, t0
	s := Snapshot{Capacity: 100 * gib, Used: 91 * gib, Growth: gib, Tasks: []Task{asked, outgrown(2, 20*gib, 0)}}
	if d := New(Config{}).Decide(t0, &s); len(d.Actions) > 0 {
		t.Errorf("%v", d)
	}
}

// askedAndShort is a host where two are asked in time, and a third has to be suspended for what they don't bring.
func askedAndShort() *Snapshot {
	return &Snapshot{Capacity: 100 * gib, Used: 95 * gib, Growth: gib, Room: 50 * gib, Tasks: []Task{
		outgrown(1, 4*gib, gib/100), outgrown(2, 4*gib, 0), {Token: job.Token{Epoch: 1, Seq: 3}, Start: 1, Resident: 20 * gib},
	}}
}

// TestWhoWasAskedIsNotSuspendedToo, and what it brings is counted on.
func TestWhoWasAskedIsNotSuspendedToo(t *testing.T) {
	d := New(Config{}).Decide(t0, askedAndShort())
	var steps []Step
	for i, a := range d.Actions {
		if steps = append(steps, a.Step); a.Task != i {
			t.Errorf("step %d is of task %d", i, a.Task)
		}
	}
	if !slices.Equal(steps, []Step{Readdress, Readdress, Suspend}) || d.Deficit != 12*gib || d.Underway != 8*gib || d.Covered != 20*gib {
		t.Errorf("%v", d)
	}
}

// TestStepsToldInAnyOrderAreAccountedForInTheirs: also of those that were asked in time, with what they would have taken.
func TestStepsToldInAnyOrderAreAccountedForInTheirs(t *testing.T) {
	s, a := askedAndShort(), New(Config{})
	own := *a.Decide(t0, s)
	own.Actions = slices.Clone(own.Actions)
	other := Decision{Reading: own.Reading, Room: own.Room}
	for _, x := range slices.Backward(own.Actions) {
		other.Actions = append(other.Actions, Action{Task: x.Task, Token: x.Token, Step: x.Step, Cause: x.Cause})
	}
	if a.Account(t0, s.Tasks, &other); !slices.Equal(other.Actions, own.Actions) || other.Deficit != own.Deficit ||
		other.Covered != own.Covered {
		t.Errorf("it is told as %v, and was decided as %v", &other, &own)
	}
}

// TestRoomIsTakenOnce: what one that is about to be suspended takes outside is not there for the next.
func TestRoomIsTakenOnce(t *testing.T) {
	s := Snapshot{Capacity: 100 * gib, Used: 93 * gib, Room: 10 * gib, Tasks: []Task{
		{Token: job.Token{Epoch: 1, Seq: 1}, Start: 1, Resident: 6 * gib, State: Suspending, Since: t0},
		{Token: job.Token{Epoch: 1, Seq: 2}, Start: 1, Resident: 20 * gib},
	}}
	if d := New(Config{}).Decide(t0, &s); len(d.Actions) != 1 || d.Actions[0].Step != Suspend || d.Actions[0].Relief != 4*gib {
		t.Errorf("%v", d)
	}
}

// TestWhatIsTakenMeanwhileNeedsRoomOutsideToo: at the emergency line with growth, one byte short of what will be above it.
func TestWhatIsTakenMeanwhileNeedsRoomOutsideToo(t *testing.T) {
	s := Snapshot{Capacity: 100 * gib, Used: 98 * gib, Growth: gib / 2, Room: 2 * gib,
		Tasks: []Task{{Token: job.Token{Epoch: 1, Seq: 1}, Start: 1, Resident: 20 * gib}}}
	if d := New(Config{}).Decide(t0, &s); d.Level != Severe || len(d.Actions) != 1 || d.Actions[0].Step != Suspend {
		t.Errorf("with room for all of it: %v", d)
	}
	s.Room--
	if d := New(Config{}).Decide(t0, &s); d.Level != Emergency || len(d.Actions) != 1 || d.Actions[0].Step != Reclaim {
		t.Errorf("with room for less: %v", d)
	}
}

// TestACheckpointIsTooSlowAtTheEmergencyLine: what those bring who are asked above one that can't leave counts for nothing there,
// whether or not anything
// grows, whether they cover what is missing, and however many they are. The lowest is ended.
func TestACheckpointIsTooSlowAtTheEmergencyLine(t *testing.T) {
	keeps := Task{Token: job.Token{Epoch: 1, Seq: 9}, Start: 1, Priority: 9, Resident: 10 * percent, Bound: true}
	for _, c := range []struct {
		name         string
		used, growth quantity.Amount
		above        []quantity.Amount
		more         []Task
	}{
		{"one covers it", 98 * percent, percent, []quantity.Amount{20}, nil},
		{"nothing grows, and more is used than there is", 101 * percent, 0, []quantity.Amount{20}, nil},
		{"one does not cover it", 98 * percent, percent * 14 / 10, []quantity.Amount{10}, nil},
		{"nor does it, below one that keeps to its plan", 98 * percent, percent * 14 / 10, []quantity.Amount{10}, []Task{keeps}},
		{"two cover it", 98 * percent, percent * 9 / 10, []quantity.Amount{4, 4}, nil},
	} {
		low := outgrown(1, 10*percent, 0)
		low.Bound, low.Yields = true, false
		s := Snapshot{Capacity: 100 * percent, Used: c.used, Growth: c.growth, Room: 50 * percent}
		s.Tasks = append([]Task{low}, c.more...)
		for i, has := range c.above {
			high := outgrown(uint64(2+i), has*percent, 0)
			high.Priority, high.Bound = 1, true
			s.Tasks = append(s.Tasks, high)
		}
		if d := New(Config{}).Decide(t0, &s); d.Level != Emergency || len(d.Actions) == 0 ||
			d.Actions[0].Task != 0 || d.Actions[0].Step != Reclaim {
			t.Errorf("%s: %v", c.name, d)
		}
	}
}

// TestNobodyIsAskedForWhatIsNotMissing: the first brings just what is, to the byte.
func TestNobodyIsAskedForWhatIsNotMissing(t *testing.T) {
	for _, more := range []quantity.Amount{0, 1} {
		s := Snapshot{Capacity: 100 * percent, Used: 91*percent + more, Growth: percent * 11 / 10}
		s.Tasks = []Task{outgrown(1, 2*percent, 0), outgrown(2, 2*percent, 0)}
		s.Tasks[1].Priority = 1
		if d := New(Config{}).Decide(t0, &s); len(d.Actions) != 1+int(more) || d.Actions[0].Task != 0 {
			t.Errorf("with %d bytes more than the first brings: %v", more, d)
		}
	}
}
