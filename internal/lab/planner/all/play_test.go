package all_test

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
)

// Job is a task of a played workload. It runs as long as it declares.
type Job struct {
	planner.Task
	Submit quantity.Instant
}

// Played is how a job went.
type Played struct{ Began, Ended quantity.Instant }

// actor is where one job stands in a play.
type actor struct {
	state     state
	left, run [planner.MaxClasses]time.Duration // planned; what is left of it, and what its planner was told of this run
	class     uint8
	since     quantity.Instant
	restores  bool
	over      quantity.Instant // when it ends, or has made its checkpoint
}

// Failer is a test that can fail: of package testing or of rapid.
type Failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Play runs jobs, in the order of their submission, to their end under a planner; a job's ID is its place. Stopping work costs what the
// options say. It is the least simulation there is, for tests that know what must come out.
func Play(t Failer, kind planner.Kind, o planner.Options, jobs []Job) []Played {
	t.Helper()
	p, err := kind.New(o)
	if err != nil {
		t.Fatal(err)
	}
	actors, played := make([]actor, len(jobs)), make([]Played, len(jobs))
	arrive := func(now quantity.Instant, i int) {
		a := &actors[i]
		a.state, a.run = waiting, a.left
		task := jobs[i].Task
		task.ID, task.Run = planner.ID(i), &a.run
		p.Arrive(now, task)
	}
	waker, _ := p.(planner.Waker)
	var out planner.Out
	come, over, wake := 0, 0, quantity.Never
	for over < len(jobs) {
		now := wake
		if come < len(jobs) {
			now = min(now, jobs[come].Submit)
		}
		for i := range actors {
			if a := &actors[i]; a.state == running || a.state == leaving {
				now = min(now, a.over)
			}
		}
		if now == quantity.Never {
			t.Fatalf("%d of %d jobs are over, and nothing happens any more", over, len(jobs))
		}
		for i := range actors {
			switch a := &actors[i]; {
			case a.state == running && a.over == now:
				p.Leave(now, planner.ID(i))
				a.state, played[i].Ended = absent, now
				over++
			case a.state == leaving && a.over == now:
				p.Leave(now, planner.ID(i))
				a.restores = true
				arrive(now, i)
			}
		}
		for ; come < len(jobs) && jobs[come].Submit == now; come++ {
			actors[come].left = *jobs[come].Run
			arrive(now, come)
			played[come].Began = quantity.Never
		}
		out.Reset()
		p.Plan(now, &out)
		for _, d := range out.Decisions {
			a := &actors[d.Task]
			switch d.Verb {
			case planner.Start:
				a.state, a.class, a.since = running, d.Class, now
				a.over = now.Add(a.left[a.class])
				if a.restores {
					a.over = a.over.Add(o.Restore)
				}
				played[d.Task].Began = min(played[d.Task].Began, now)
			case planner.Preempt:
				done := now.Sub(a.since)
				if a.restores {
					done = max(0, done-o.Restore)
				}
				whole := a.left[a.class]
				for c := range a.left { // what is done is done at the speed of every class
					a.left[c] -= time.Duration(quantity.MulDiv(int64(done), int64(a.left[c]), int64(whole)))
				}
				a.state, a.over = leaving, now.Add(o.Checkpoint)
			case planner.Never:
				t.Fatalf("job %d can never run", d.Task)
			}
		}
		if wake = quantity.Never; waker != nil {
			wake = waker.Wake(now)
		}
	}
	return played
}
