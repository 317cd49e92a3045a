package bound

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
)

const second = quantity.Instant(time.Second)

// near is how far rounding may take one bound beyond another, relatively.
const near = 1e-6

func within(a, b float64) bool { return a <= b+near*(math.Abs(b)+1) }

// scenario draws a small one on whole seconds: up to two slices of one or two classes.
func scenario(t *rapid.T, most int, speeds []int64) ([]Class, []Job, Window) {
	classes := []Class{{Name: "a", Count: 1}, {Name: "b", Count: 1}}
	switch rapid.IntRange(0, 2).Draw(t, "slices") {
	case 0:
		classes = classes[:1]
	case 1:
		classes = []Class{{Name: "a", Count: 2}}
	}
	jobs := make([]Job, rapid.IntRange(1, most).Draw(t, "jobs"))
	for i := range jobs {
		j := Job{Submit: quantity.Instant(rapid.IntRange(0, 5).Draw(t, "submit")) * second, Width: 1}
		j.Whole = rapid.Bool().Draw(t, "whole")
		parts := 1
		if !j.Whole {
			parts = rapid.IntRange(1, 2).Draw(t, "parts")
		}
		for range parts {
			p := Part{Work: time.Duration(rapid.IntRange(1, 4).Draw(t, "work")) * time.Second}
			for c := range classes {
				p.Speeds[c] = rapid.SampledFrom(speeds).Draw(t, "speed")
			}
			j.Parts = append(j.Parts, p)
		}
		jobs[i] = j
	}
	slices.SortStableFunc(jobs, func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) })
	from := rapid.IntRange(0, 2).Draw(t, "from")
	return classes, jobs, Window{quantity.Instant(from) * second, quantity.Instant(from+rapid.IntRange(1, 5).Draw(t, "length")) * second}
}

// grid is the most work in the window by trying everything second by second: which job is on which slice. It knows no
// linear program.
func grid(classes []Class, jobs []Job, w Window) float64 {
	on := classOf(classes)
	type state struct {
		left [4][2]int64 // thousandths of a second of work
		at   int64
	}
	var start state
	for i, j := range jobs {
		for p, part := range j.Parts {
			start.left[i][p] = part.Work.Milliseconds()
		}
	}
	start.at = int64(w.From / second)
	known := map[state]int64{}
	var best func(s state) int64
	best = func(s state) int64 {
		if s.at == int64(w.To/second) {
			sum := int64(0)
			for i, j := range jobs {
				whole, left := int64(0), int64(0)
				for p, part := range j.Parts {
					whole += part.Work.Milliseconds()
					left += s.left[i][p]
				}
				if !j.Whole || left == 0 {
					sum += whole - left
				}
			}
			return sum
		}
		if v, ok := known[s]; ok {
			return v
		}
		most := int64(0)
		var place func(k int, used uint, next state)
		place = func(k int, used uint, next state) {
			if k == len(on) {
				next.at++
				most = max(most, best(next))
				return
			}
			place(k+1, used, next) // idle
			for i, j := range jobs {
				if used>>i&1 == 1 || j.Submit > quantity.Instant(s.at)*second {
					continue
				}
				for p, part := range j.Parts {
					if v := part.Speeds[on[k]]; v > 0 && s.left[i][p] > 0 {
						n := next
						n.left[i][p] = max(0, n.left[i][p]-v)
						place(k+1, used|1<<i, n)
					}
				}
			}
		}
		place(0, 0, s)
		known[s] = most
		return most
	}
	return float64(best(start)) / 1000
}

// What is tried out second by second never passes the exact bound, and the bounds are in order.
func TestBoundsAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes, jobs, w := scenario(t, 3, []int64{0, 500, 1000, 1000, 2000})
		o := Options{Buckets: rapid.IntRange(1, 6).Draw(t, "buckets"), Types: rapid.IntRange(1, 8).Draw(t, "types")}
		r, err := For(classes, jobs, w, o)
		if err != nil {
			t.Fatal(err)
		}
		tried := grid(classes, jobs, w)
		if !within(tried, r.Exact) || !within(r.Exact, r.LP) || !within(r.LP, r.Area) {
			t.Fatalf("tried %.6f, exact %.6f, LP %.6f, area %.6f: not in order (%s)", tried, r.Exact, r.LP, r.Area, r.How)
		}
	})
}

// On slices of one speed all best schedules lie on whole seconds if there is one slice: the bound is what was tried.
func TestExactIsReached(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, jobs, w := scenario(t, 3, []int64{1000})
		classes := []Class{{Name: "a", Count: 1}}
		w.From = 0 // a job from before may come with any part of its work: none may be Whole then
		r, err := For(classes, jobs, w, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if tried := grid(classes, jobs, w); math.Abs(tried-r.Exact) > near*(1+tried) {
			t.Fatalf("exact is %.6f, the best schedule has %.6f", r.Exact, tried)
		}
	})
}

// Schedules as they are made: jobs one after the other at random on random slices, with waiting and overhead, whole jobs
// without a break. What they complete in the window is within all bounds, and they take at least the least mean time.
func TestSchedulesStayWithin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes, jobs, w := scenario(t, 6, []int64{300, 1000, 1500})
		if rapid.Bool().Draw(t, "gang") && classes[0].Count == 2 {
			jobs[0].Whole, jobs[0].Width, jobs[0].Parts = true, 2, jobs[0].Parts[:1]
		}
		on := classOf(classes)
		free, done := make([]float64, len(on)), 0.
		ready := make([]float64, len(jobs))
		completions, counted := 0., 0
		order := rapid.Permutation(indices(len(jobs))).Draw(t, "order")
		for _, i := range order {
			j := &jobs[i]
			ready[i] = j.Submit.Sub(0).Seconds()
			inside := 0.
			for _, p := range j.Parts {
				left := p.Work.Seconds()
				for left > 1e-12 {
					k := rapid.IntRange(0, len(on)-1).Draw(t, "slice")
					begin := max(ready[i], free[k]) + rapid.Float64Range(0, 1).Draw(t, "overhead")
					v := speed(p.Speeds[on[k]])
					piece := left
					if !j.Whole {
						piece = min(left, max(.2, left*rapid.Float64Range(.1, 1).Draw(t, "piece")))
					}
					if j.Width == 2 {
						begin = max(begin, free[0], free[1])
						v *= 2
					}
					end := begin + piece/v
					free[k], ready[i] = end, end
					if j.Width == 2 {
						free[0], free[1] = end, end
					}
					from, to := w.From.Sub(0).Seconds(), w.To.Sub(0).Seconds()
					inside += v * max(0, min(end, to)-max(begin, from))
					left -= piece
				}
			}
			if !j.Whole || ready[i] <= w.To.Sub(0).Seconds() {
				done += inside
			}
			if w.holds(j) {
				completions += ready[i] - j.Submit.Sub(0).Seconds()
				counted++
			}
		}
		r, err := For(classes, jobs, w, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !within(done, r.Exact) || !within(done, r.LP) || !within(done, r.Area) {
			t.Fatalf("completed %.6f of at most exact %.6f, LP %.6f, area %.6f", done, r.Exact, r.LP, r.Area)
		}
		if mean := completions / float64(max(1, counted)); r.Completing != counted || !within(r.Completion, mean) {
			t.Fatalf("mean completion of %d is %.6f, the bound of %d is %.6f", counted, mean, r.Completing, r.Completion)
		}
	})
}

// classOf every slice.
func classOf(classes []Class) []int {
	var on []int
	for c, class := range classes {
		for range class.Count {
			on = append(on, c)
		}
	}
	return on
}

func indices(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func part(work time.Duration, speeds ...int64) []Part {
	p := Part{Work: work}
	copy(p.Speeds[:], speeds)
	return []Part{p}
}

// The least mean completion without interruption is that of every order on every slice, each job as early as it goes.
func TestUnbrokenIsTheBestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes, jobs, _ := scenario(t, 4, []int64{0, 300, 1000})
		for i := range jobs {
			jobs[i].Whole, jobs[i].Parts = true, jobs[i].Parts[:1]
			jobs[i].Parts[0].Speeds[0] = max(jobs[i].Parts[0].Speeds[0], 100)
		}
		w := Window{0, 100 * second}
		on := classOf(classes)
		best := math.Inf(1)
		free := make([]float64, len(on))
		var place func(left []int, sum float64)
		place = func(left []int, sum float64) {
			if len(left) == 0 {
				best = min(best, sum)
			}
			for n, i := range left {
				for k, c := range on {
					p := jobs[i].Parts[0]
					if p.Speeds[c] == 0 {
						continue
					}
					submit, before := jobs[i].Submit.Sub(0).Seconds(), free[k]
					free[k] = max(before, submit) + p.Work.Seconds()/speed(p.Speeds[c])
					place(slices.Delete(slices.Clone(left), n, n+1), sum+free[k]-submit)
					free[k] = before
				}
			}
		}
		place(indices(len(jobs)), 0)
		r, err := For(classes, jobs, w, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if want := best / float64(len(jobs)); math.Abs(r.Completion-want) > near*(1+want) {
			t.Fatalf("the bound is %.6f, the best order has %.6f", r.Completion, want)
		}
	})
}

// Known instances, worked out by hand.
func TestByHand(t *testing.T) {
	two := []Class{{Name: "a", Count: 1}, {Name: "b", Count: 1}}
	for _, c := range []struct {
		name            string
		classes         []Class
		jobs            []Job
		window          int
		exact, lp, area float64
		completion      float64
	}{
		{"nothing", two, nil, 10, 0, 0, 0, 0},
		{"a whole job that does not end in time counts nothing", two[:1],
			[]Job{{Parts: part(11*time.Second, 1000), Width: 1, Whole: true}}, 10, 0, 0, 0, 11},
		{"a divisible one counts what is done", two[:1],
			[]Job{{Parts: part(11*time.Second, 1000), Width: 1}}, 10, 10, 10, 10, 11},
		{"two whole jobs of 6 s in 10 s: one", two[:1],
			[]Job{{Parts: part(6*time.Second, 1000), Width: 1, Whole: true}, {Parts: part(6*time.Second, 1000), Width: 1, Whole: true}}, 10,
			6, 10, 10, 9},
		{"each where it is fast", two,
			[]Job{{Parts: part(20*time.Second, 1000, 400), Width: 1}, {Parts: part(20*time.Second, 900, 800), Width: 1}}, 10, 18, 18, 18,
			65. / 3},
		{"a job comes late", two[:1],
			[]Job{{Submit: 6 * second, Parts: part(20*time.Second, 1000), Width: 1}}, 10, 4, 4, 4, 20},
		{"memory keeps a part off the small slice", two,
			[]Job{{Parts: []Part{part(10*time.Second, 1000, 1000)[0], part(20*time.Second, 1000, 0)[0]}, Width: 2}}, 10, 20, 20, 20, 20},
	} {
		r, err := For(c.classes, c.jobs, Window{0, quantity.Instant(c.window) * second}, Options{Buckets: 5})
		if err != nil {
			t.Fatal(err)
		}
		for what, x := range map[string][2]float64{"exact": {r.Exact, c.exact}, "LP": {r.LP, c.lp}, "area": {r.Area, c.area},
			"completion": {r.Completion, c.completion}} {
			if math.Abs(x[0]-x[1]) > 1e-5 {
				t.Errorf("%s: %s is %.6f, want %.6f", c.name, what, x[0], x[1])
			}
		}
	}
}

// The capacity for a mix is what it is by hand: half of the work is fast on class a only.
func TestRate(t *testing.T) {
	classes := []Class{{Name: "a", Count: 2}, {Name: "b", Count: 1}}
	m := NewMix(classes, Window{}, Options{})
	if m.Rate() != 0 {
		t.Errorf("an empty mix has the rate %v", m.Rate())
	}
	m.Add(&Job{Parts: part(10*time.Second, 1000, 0), Width: 1})
	if got := m.Rate(); math.Abs(got-2) > 1e-9 {
		t.Errorf("work that runs on a alone: rate %v, want 2", got)
	}
	// r/2 <= 2 - x and r/2 <= .5 x + 1 with x the slices of a that the second type gets: x = 2/3, r = 8/3.
	m.Add(&Job{Parts: part(10*time.Second, 500, 1000), Width: 1})
	if got := m.Rate(); math.Abs(got-8./3) > 1e-9 {
		t.Errorf("rate %v, want 8/3", got)
	}
}

// The prices of classes are a dual solution of the capacity: the cluster is worth its rate, and work in the proportions of the mix,
// each type where it is cheapest, costs at least 1 a second.
func TestPricesAreTheDualOfTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes := []Class{{Name: "a", Count: rapid.IntRange(1, 3).Draw(t, "a")}, {Name: "b", Count: rapid.IntRange(1, 3).Draw(t, "b")},
			{Name: "c", Count: 1}}
		m := NewMix(classes, Window{}, Options{})
		total, jobs := 0., make([]Part, rapid.IntRange(1, 6).Draw(t, "types"))
		for i := range jobs {
			run := time.Duration(rapid.IntRange(1, 9).Draw(t, "work")) * time.Second
			var v [3]int64
			for c := range v {
				v[c] = rapid.SampledFrom([]int64{0, 200, 500, 900, 1000}).Draw(t, "speed")
			}
			v[0] = max(v[0], 100)
			jobs[i] = part(run, v[:]...)[0]
			m.Add(&Job{Parts: jobs[i : i+1], Width: 1})
			total += run.Seconds()
		}
		prices, worth, cost := m.Prices(), 0., 0.
		for c, class := range classes {
			worth += float64(class.Count) * prices[c]
		}
		for _, p := range jobs {
			least := math.Inf(1)
			for c := range classes {
				if p.Speeds[c] > 0 {
					least = min(least, prices[c]/speed(p.Speeds[c]))
				}
			}
			cost += p.Work.Seconds() / total * least
		}
		if math.Abs(worth-m.Rate()) > near*(1+worth) || cost < 1-near {
			t.Fatalf("at prices %v the cluster is worth %.6f, its rate is %.6f, and a second's work costs %.6f", prices[:3], worth,
				m.Rate(), cost)
		}
	})
}

// However many kinds of speeds there are, the program keeps its size, and the bound only grows when kinds are merged.
func TestManyTypes(t *testing.T) {
	classes := []Class{{Name: "a", Count: 3}, {Name: "b", Count: 5}}
	var jobs []Job
	for i := range 3000 {
		jobs = append(jobs, Job{Submit: quantity.Instant(i) * second, Width: 1,
			Parts: part(time.Duration(1+i%7)*time.Second, int64(500+i%500), int64(100+i*7%900))})
	}
	w := Window{0, 1500 * second}
	last := math.Inf(1)
	for _, types := range []int{4, 16, 48} {
		r, err := For(classes, jobs, w, Options{Types: types, Buckets: 8})
		if err != nil {
			t.Fatal(err)
		}
		if r.Size.Types > types || r.Size.Subsets != 0 || r.Best() != r.LP {
			t.Errorf("%+v", r)
		}
		if r.LP > last*(1+near) {
			t.Errorf("%d types: the bound is %.1f, above %.1f of fewer", types, r.LP, last)
		}
		last = r.LP
	}
}

func TestEveryProblemOfAScenario(t *testing.T) {
	_, err := For([]Class{{Name: "a", Count: -1}}, nil, Window{5, 5}, Options{})
	if errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "class 0 (a): -1 slices") ||
		!strings.Contains(err.Error(), "the window ends") {
		t.Errorf("%v", err)
	}
	late := []Job{{Submit: 3, Width: 1, Parts: part(time.Second, 1000)}, {Submit: 1, Width: 1, Parts: part(time.Second, 1000)}}
	if _, err := For([]Class{{Name: "a", Count: 1}}, late, Window{0, 5}, Options{}); errkind.Of(err) != errkind.Invalid ||
		!strings.Contains(err.Error(), "out of the order") {
		t.Errorf("%v", err)
	}
	if _, err := For(nil, nil, Window{0, 5}, Options{}); !strings.Contains(fmt.Sprint(err), "0 classes") {
		t.Errorf("%v", err)
	}
}

// For is New, Add of every job, and Result.
func For(classes []Class, jobs []Job, w Window, o Options) (Result, error) {
	b, err := New(classes, w, o)
	if err != nil {
		return Result{}, err
	}
	for i := range jobs {
		b.Add(&jobs[i])
	}
	return b.Result()
}
