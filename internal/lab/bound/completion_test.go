package bound

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
)

// On one slice the bound is what the shortest remaining time first gives, played out job by job; there are enough jobs that
// the first are given to the machines together and the others one by one.
func TestShortestRemainingFirst(t *testing.T) {
	const n = weighed + 300
	s := prng.New(1)
	jobs := make([]Job, n)
	at := 0
	for i := range jobs {
		at += s.IntN(20)
		jobs[i] = Job{Submit: quantity.Instant(at) * second, Width: 1, Parts: part(time.Duration(1+s.IntN(18))*time.Second, 1000)}
	}
	r, err := For([]Class{{Name: "a", Count: 1}}, jobs, Window{0, quantity.Instant(at+1) * second}, Options{})
	if err != nil {
		t.Fatal(err)
	}

	left := make([]int, n)
	for i, j := range jobs {
		left[i] = int(j.Parts[0].Work / time.Second)
	}
	sum, done := 0, 0
	for now := 0; done < n; now++ { // second by second
		best := -1
		for i, j := range jobs {
			if j.Submit > quantity.Instant(now)*second {
				break
			}
			if left[i] > 0 && (best < 0 || left[i] < left[best]) {
				best = i
			}
		}
		if best < 0 {
			continue
		}
		if left[best]--; left[best] == 0 {
			sum += now + 1 - int(jobs[best].Submit/second)
			done++
		}
	}
	if want := float64(sum) / n; math.Abs(r.Completion-want) > 1e-6*want {
		t.Errorf("the bound is %.4f s, played out it is %.4f s", r.Completion, want)
	}
}

// divided is the least sum of times to completion, in seconds, of all schedules that change on whole seconds: jobs may be stopped,
// moved and, as far as they are wide, be on several slices.
func divided(classes []Class, jobs []Job) float64 {
	type state struct {
		at   int
		left [3][2]int64 // thousandths of a second of work
	}
	var start state
	for i, j := range jobs {
		for p, part := range j.Parts {
			start.left[i][p] = part.Work.Milliseconds()
		}
	}
	on := classOf(classes)
	known := map[state]float64{}
	var best func(s state) float64
	best = func(s state) float64 {
		waiting := 0
		for i := range jobs {
			if s.left[i] != [2]int64{} {
				waiting++
			}
		}
		if waiting == 0 {
			return 0
		}
		if v, ok := known[s]; ok {
			return v
		}
		known[s] = math.Inf(1) // nothing done: no better than to do something
		least := math.Inf(1)
		var place func(k int, used [3]int, next state, moved bool)
		place = func(k int, used [3]int, next state, moved bool) {
			if k == len(on) {
				if !moved {
					return
				}
				next.at++
				sum := 0.
				for i, j := range jobs {
					// What is there counts the second, of a job that is not done at its start.
					if j.Submit < quantity.Instant(next.at)*second && s.left[i] != [2]int64{} {
						sum++
					}
				}
				least = min(least, sum+best(next))
				return
			}
			place(k+1, used, next, moved || came(jobs, s.at) < len(jobs))
			for i, j := range jobs {
				if used[i] == j.Width || j.Submit > quantity.Instant(s.at)*second {
					continue
				}
				for p, part := range j.Parts {
					if v := part.Speeds[on[k]]; v > 0 && next.left[i][p] > 0 {
						n, u := next, used
						n.left[i][p] = max(0, n.left[i][p]-v)
						u[i]++
						place(k+1, u, n, true)
					}
				}
			}
		}
		place(0, [3]int{}, s, false)
		known[s] = least
		return least
	}
	return best(start)
}

// came is how many jobs are there at a second.
func came(jobs []Job, at int) (n int) {
	for _, j := range jobs {
		if j.Submit <= quantity.Instant(at)*second {
			n++
		}
	}
	return n
}

// No schedule that may stop, move and share out work passes the bound: all of them are tried, second by second.
func TestNoDividedScheduleIsSooner(t *testing.T) {
	near := 0
	rapid.Check(t, func(t *rapid.T) {
		classes, jobs, _ := scenario(t, 3, []int64{0, 500, 1000, 1000, 2000})
		for i := range jobs {
			jobs[i].Width = rapid.IntRange(1, 2).Draw(t, "width")
			for p := range jobs[i].Parts { // all run somewhere
				s := &jobs[i].Parts[p].Speeds
				s[0] = max(s[0], 500)
			}
		}
		c := completion{classes: classes}
		for i := range jobs {
			c.add(&jobs[i])
		}
		tried := divided(classes, jobs) / float64(len(jobs))
		if !within(c.mean(), tried) {
			t.Fatalf("the bound is %.6f, and a schedule has %.6f", c.mean(), tried)
		}
		if c.mean() > tried*.95 {
			near++
		}
	})
	if near == 0 {
		t.Error("the bound is never within 5% of the best schedule: it is hardly one")
	}
}

// Eastman, Even and Isaacs, worked out: on m slices with everybody there the bound is 1/m of the least sum of completions on one
// slice, and (m-1)/2m of the work.
func TestManySlicesAtOnce(t *testing.T) {
	for _, m := range []int{1, 3, 10} {
		var jobs []Job
		one, work := 0., 0.
		for i := range 24 {
			run := float64(i + 1)
			work += run
			one += work
			jobs = append(jobs, Job{Width: 1, Parts: part(time.Duration(run)*time.Second, 1000)})
		}
		r, err := For([]Class{{Name: "a", Count: m}}, jobs, Window{0, second}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		k := float64(m)
		if want := (one/k + (k-1)/(2*k)*work) / 24; math.Abs(r.Completion-want) > 1e-9*want {
			t.Errorf("%d slices: the bound is %.6f, want %.6f", m, r.Completion, want)
		}
	}
}

// Which order counts: at 5 s a job of 8 s comes while one of 10 s has 5 s left. By what is left it waits, by size it does not.
func TestOrdersOfTheMachine(t *testing.T) {
	m := machine{v: [MaxClasses]float64{1}, rate: 1}
	classes := []Class{{Name: "a", Count: 1}}
	m.add(classes, &Job{Width: 1, Parts: part(10*time.Second, 1000)}, 0)
	m.add(classes, &Job{Width: 1, Parts: part(8*time.Second, 1000)}, 5)
	m.sum()
	if want := 10. + 13; math.Abs(m.remaining.ended-want) > 1e-9 {
		t.Errorf("the shortest remaining first ends after %v s, want %v", m.remaining.ended, want)
	}
	// The first is at work from 0 to 5 and from 13 to 18, the second from 5 to 13.
	if want := 9. + 4; math.Abs(m.size.busy-want) > 1e-9 {
		t.Errorf("the shortest first has mean busy times of %v s, want %v", m.size.busy, want)
	}
}
