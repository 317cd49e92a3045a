package preempt

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
)

// stage is a planner of one device of each of some classes, and what it says.
type stage struct {
	p   planner.Planner
	out planner.Out
}

func newStage(t *testing.T, classes int, restore, checkpoint time.Duration) *stage {
	t.Helper()
	var c planner.Cluster
	for i := range classes {
		c.Classes = append(c.Classes, planner.Class{Name: string(rune('a' + i))})
		c.Nodes = append(c.Nodes, planner.Node{Devices: []uint8{uint8(i)}})
	}
	p, err := Migrate().New(planner.Options{Cluster: c, Restore: restore, Checkpoint: checkpoint})
	if err != nil {
		t.Fatal(err)
	}
	return &stage{p: p}
}

func (s *stage) arrive(at time.Duration, id planner.ID, runs ...time.Duration) {
	task := planner.Task{ID: id, Devices: 1, Share: planner.Whole, Classes: 1<<len(runs) - 1, Run: &[planner.MaxClasses]time.Duration{}}
	copy(task.Run[:], runs)
	s.p.Arrive(quantity.Instant(at), task)
}

// says plans, and compares verbs and tasks.
func (s *stage) says(t *testing.T, at time.Duration, want ...planner.Decision) {
	t.Helper()
	s.out.Reset()
	s.p.Plan(quantity.Instant(at), &s.out)
	var got []planner.Decision
	for _, d := range s.out.Decisions {
		got = append(got, planner.Decision{Verb: d.Verb, Task: d.Task, Class: d.Class})
	}
	if !slices.Equal(got, want) {
		t.Fatalf("at %v it says %+v, want %+v", at, got, want)
	}
}

func start(id planner.ID, class uint8) planner.Decision {
	return planner.Decision{Verb: planner.Start, Task: id, Class: class}
}

func stop(id planner.ID) planner.Decision {
	return planner.Decision{Verb: planner.Preempt, Task: id}
}

// TestNobodyStarves: a task that ran for an hour and then waits for eight begins at level 0 again, before later ones.
func TestNobodyStarves(t *testing.T) {
	s := newStage(t, 1, time.Second, time.Second)
	h := time.Hour
	s.arrive(0, 0, 100*h)
	s.says(t, 0, start(0, 0))
	s.arrive(h, 1, 14*time.Minute)
	s.says(t, h, stop(0))
	back := h + time.Second
	s.p.Leave(quantity.Instant(back), 0)
	s.arrive(back, 0, 99*h)
	s.says(t, back, start(1, 0))
	// New ones keep coming and are of level 0; task 0 is of level 2.
	at, last := back, planner.ID(1)
	for at < back+8*h-14*time.Minute {
		at += 13 * time.Minute
		s.arrive(at, last+1, 13*time.Minute)
		s.p.Leave(quantity.Instant(at), last)
		s.says(t, at, start(last+1, 0))
		last++
	}
	at += 13 * time.Minute
	s.arrive(at, last+1, 13*time.Minute)
	s.p.Leave(quantity.Instant(at), last)
	s.says(t, at, start(0, 0))
}

// TestMove: the faster class becomes free, and a task moves there if that gains more than it costs; its place is kept while
// it checkpoints.
func TestMove(t *testing.T) {
	minute := time.Minute
	s := newStage(t, 2, minute, minute)
	s.arrive(0, 0, 20*minute, 10*minute)
	s.says(t, 0, start(0, 1))
	s.arrive(0, 1, 90*minute, 30*minute)
	s.says(t, 0, start(1, 0))
	s.p.Leave(quantity.Instant(10*minute), 0)
	// 80 minutes are left here and 26:40 there: a gain of more than twice the two minutes.
	s.says(t, 10*minute, stop(1))
	// Whoever comes now does not take its place, and gets the one it leaves.
	s.arrive(10*minute+1, 2, 20*minute, 10*minute)
	s.says(t, 10*minute+1)
	s.p.Leave(quantity.Instant(11*minute), 1)
	s.arrive(11*minute, 1, 80*minute, 27*minute)
	s.says(t, 11*minute, start(1, 1), start(2, 0))
}

// TestNoMoveWithoutGain: what a move would gain is less than its cost.
func TestNoMoveWithoutGain(t *testing.T) {
	minute := time.Minute
	s := newStage(t, 2, minute, minute)
	s.arrive(0, 0, 20*minute, 9*minute)
	s.arrive(0, 1, 40*minute, 35*minute)
	s.says(t, 0, start(0, 1), start(1, 0))
	s.p.Leave(quantity.Instant(9*minute), 0)
	s.says(t, 9*minute) // 31 minutes here, 27 there
}

func TestLevels(t *testing.T) {
	for _, c := range []struct {
		had  time.Duration
		want int
	}{
		{0, 0}, {15*time.Minute - 1, 0}, {15 * time.Minute, 1}, {time.Hour - 1, 1}, {time.Hour, 2}, {4 * time.Hour, 3},
		{16 * time.Hour, 4}, {64*time.Hour - 1, 4}, {64 * time.Hour, 5}, {1e6 * time.Hour, 5},
	} {
		if got := migrateLevel(c.had); got != c.want {
			t.Errorf("after %v the level is %d, want %d", c.had, got, c.want)
		}
	}
}

func TestOptions(t *testing.T) {
	_, err := Migrate().New(planner.Options{Restore: -1})
	if errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "0 classes") ||
		!strings.Contains(err.Error(), "restore of -1ns") {
		t.Errorf("got %v, want an error of kind Invalid that says both", err)
	}
}
