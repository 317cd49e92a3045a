package all_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/preempt"
)

// TestNoScheduleIsBetter: on one device, with stops for nothing, no schedule has a smaller sum of completions, whenever the jobs
// come. All schedules are tried second by second: there is a best one that changes its mind on whole seconds alone.
func TestNoScheduleIsBetter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := Singles(t, 5, 1, 4)
		sum := int64(0)
		for i, p := range Play(t, preempt.SRPT(), planner.Options{Cluster: OneDevice()}, jobs) {
			sum += seconds(p.Ended) - seconds(jobs[i].Submit)
		}
		if best := least(jobs); sum != best {
			t.Fatalf("the sum of completions is %d s, the best schedule has %d s", sum, best)
		}
	})
}

func seconds(t quantity.Instant) int64 { return int64(t / quantity.Instant(time.Second)) }

// least is the smallest sum of completions of all schedules that may stop what runs at every second.
func least(jobs []Job) int64 {
	type state struct {
		at   int64
		left [5]int64
	}
	start := state{}
	for i, j := range jobs {
		start.left[i] = int64(j.Run[0] / time.Second)
	}
	known := map[state]int64{}
	var best func(s state) int64
	best = func(s state) int64 {
		if s.left == [5]int64{} {
			return 0
		}
		if v, ok := known[s]; ok {
			return v
		}
		idle := s
		idle.at++
		sum, came := int64(1)<<62, false
		for i, j := range jobs {
			if s.left[i] == 0 || seconds(j.Submit) > s.at {
				continue
			}
			came = true
			next := idle
			next.left[i]--
			v := best(next)
			if next.left[i] == 0 {
				v += next.at - seconds(j.Submit)
			}
			sum = min(sum, v)
		}
		if !came { // to idle while somebody is there betters nothing
			sum = best(idle)
		}
		known[s] = sum
		return sum
	}
	return best(start)
}

// TestAStopPaysForItself: with a checkpoint of 15 s and a restore of 20 s, a task with R left makes way for one of S where
// R > S + 50 s, and after it has run for four times the 35 s.
func TestAStopPaysForItself(t *testing.T) {
	for _, c := range []struct {
		name         string
		left, comes  time.Duration
		after, began time.Duration
	}{
		{"a little more left than that", 10*time.Minute + 51*time.Second, 10 * time.Minute, 5 * time.Minute, 5*time.Minute +
			15*time.Second},
		{"just as much", 10*time.Minute + 50*time.Second, 10 * time.Minute, 5 * time.Minute, 15*time.Minute + 50*time.Second},
		{"when it has run too short", 10 * time.Hour, 10 * time.Minute, time.Minute, 140*time.Second + 15*time.Second},
	} {
		jobs := []Job{single(0, c.after+c.left), single(c.after, c.comes)}
		o := planner.Options{Cluster: OneDevice(), Checkpoint: 15 * time.Second, Restore: 20 * time.Second}
		if got := Play(t, preempt.SRPT(), o, jobs)[1].Began.Sub(0); got != c.began {
			t.Errorf("%s: it starts after %v, want %v", c.name, got, c.began)
		}
	}
}

// TestWhoIsFixedIsLeftAlone: and so is who has less left.
func TestWhoIsFixedIsLeftAlone(t *testing.T) {
	jobs := []Job{single(0, 10*time.Hour), single(time.Hour, time.Minute)}
	jobs[0].Fixed = true
	if got := Play(t, preempt.SRPT(), planner.Options{Cluster: OneDevice()}, jobs)[1].Began.Sub(0); got != 10*time.Hour {
		t.Errorf("it starts after %v, want 10h", got)
	}
}

// TestLengthsAreThoseOfTheBestClass: on a slow device 100 minutes are left, which are 10 on the fast one: a task of 20 minutes on
// either stops nobody there, and one of 5 minutes does.
func TestLengthsAreThoseOfTheBestClass(t *testing.T) {
	for _, c := range []struct {
		minutes int
		began   time.Duration
	}{{5, 61*time.Minute + time.Second}, {20, 161 * time.Minute}} {
		two := planner.Cluster{Classes: []planner.Class{{Name: "slow"}, {Name: "fast"}}, Nodes: []planner.Node{{Devices: []uint8{0, 1}}}}
		jobs := []Job{single(0, 1000*time.Hour), single(time.Minute, 160*time.Minute),
			single(61*time.Minute, time.Duration(c.minutes)*time.Minute)}
		jobs[0].Run[1], jobs[0].Classes, jobs[0].Fixed = 1000*time.Hour, 2, true // keeps the fast one
		jobs[1].Run[1], jobs[1].Classes = 16*time.Minute, 3
		jobs[2].Run[1], jobs[2].Classes = time.Duration(c.minutes)*time.Minute, 3
		if got := Play(t, preempt.SRPT(), planner.Options{Cluster: two, Checkpoint: time.Second}, jobs)[2].Began.Sub(
			0); got != c.began {
			t.Errorf("%d minutes: it starts after %v, want %v", c.minutes, got, c.began)
		}
	}
}

func single(at, run time.Duration) Job {
	r := new([planner.MaxClasses]time.Duration)
	r[0] = run
	return Job{Submit: quantity.Instant(at), Task: planner.Task{Devices: 1, Share: planner.Whole, Classes: 1, Run: r}}
}
