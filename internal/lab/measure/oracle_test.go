package measure_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/workload"
)

// A history is everything that was said to a collector, in whole seconds; the oracle below measures it second by second.
type history struct {
	classes  []measure.Class
	from, to int // of the window; to is 0 for the end
	end      int
	jobs     []*record
	messages int
}

type record struct {
	workload.Job
	submit, done int // done is -1 for a job that came to no end
	state        job.State
	pieces       []*held
}

type held struct {
	measure.Piece
	start, end int // end is -1 while it runs on
}

func (r *record) running() []*held {
	return slices.DeleteFunc(slices.Clone(r.pieces), func(p *held) bool { return p.end >= 0 })
}

// play draws a history and tells it to a collector as it goes.
func play(t *rapid.T) (*history, measure.Metrics) {
	h := &history{from: rapid.IntRange(0, 15).Draw(t, "from")}
	if rapid.Bool().Draw(t, "bounded") {
		h.to = h.from + rapid.IntRange(1, 40).Draw(t, "length")
	}
	for range rapid.IntRange(1, 3).Draw(t, "classes") {
		h.classes = append(h.classes, measure.Class{
			Count: rapid.IntRange(1, 4).Draw(t, "count"), Weight: rapid.SampledFrom([]int64{143, 250, 1000}).Draw(t, "weight"),
			Memory: quantity.Amount(rapid.IntRange(1, 40).Draw(t, "memory") * gb),
		})
	}
	c := collector(t, h.classes, measure.Window{From: sec(float64(h.from)), To: sec(float64(h.to))})
	idle := make([]int, len(h.classes))
	for i, k := range h.classes {
		idle[i] = k.Count
	}
	slots := map[measure.Slot]*record{}
	now := 0
	for range rapid.IntRange(0, 60).Draw(t, "events") {
		now += rapid.IntRange(0, 3).Draw(t, "later")
		at := sec(float64(now))
		s := measure.Slot(rapid.IntRange(0, 5).Draw(t, "slot"))
		r := slots[s]
		switch {
		case r == nil:
			r = &record{Job: workload.Job{
				Number: int64(len(h.jobs)), Queue: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "queue"),
				Priority: rapid.Int32Range(0, 7).Draw(t, "usable"),
				Slices:   rapid.IntRange(1, 3).Draw(t, "slices"), Work: span(float64(rapid.IntRange(0, 40).Draw(t, "work"))),
				Theta: rapid.Int64Range(0, 1e5).Draw(t, "theta"),
			}, submit: now, done: -1}
			h.jobs, slots[s] = append(h.jobs, r), r
			c.Arrived(at, s, &r.Job)
		case len(r.running()) > 0 && rapid.Bool().Draw(t, "ends"):
			p := r.running()[0]
			length := now - p.start
			useful := rapid.IntRange(0, length).Draw(t, "useful")
			p.end, p.End = now, at
			p.Useful, p.Overhead = span(float64(useful)), span(float64(rapid.IntRange(0, length-useful).Draw(t, "overhead")))
			p.Work = p.Useful / 2
			p.Peak, p.Excess = quantity.Amount(rapid.IntRange(0, 50).Draw(t, "peak")*gb), rapid.Bool().Draw(t, "excess")
			idle[p.Class] += int(p.Slices)
			c.Ended(at, &p.Piece)
		case len(r.running()) == 0 && rapid.Bool().Draw(t, "done"):
			states := []job.State{job.Finished, job.Finished, job.Failed, job.Cancelled, job.Expired}
			if len(r.pieces) == 0 {
				states = append(states, job.Impossible)
			}
			r.done, r.state = now, rapid.SampledFrom(states).Draw(t, "state")
			c.Done(at, s, r.state)
			delete(slots, s)
		default:
			class := rapid.IntRange(0, len(h.classes)-1).Draw(t, "class")
			if idle[class] == 0 {
				continue
			}
			n := rapid.IntRange(1, idle[class]).Draw(t, "n")
			idle[class] -= n
			r.pieces = append(r.pieces, &held{Piece: measure.Piece{Slot: s, Class: uint8(class), Slices: int32(n), Start: at}, start: now,
				end: -1})
			c.Began(at, s, uint8(class), int32(n))
		}
		n := rapid.IntRange(0, 3).Draw(t, "messages")
		h.messages += n
		c.Sent(n)
	}
	h.end = now + rapid.IntRange(0, 10).Draw(t, "rest")
	return h, c.Finish(sec(float64(h.end)))
}

// use is the oracle for what is measured over time: it looks at every second of the window.
func (h *history) use(out *measure.Metrics) {
	to := h.end
	if h.to > 0 {
		to = min(to, h.to)
	}
	var capacity, memory, busy, known, useful, overhead, peak, unsold, work, idleTime, fragments float64
	for t := h.from; t < to; t++ {
		idle := make([]float64, len(h.classes))
		for i, k := range h.classes {
			idle[i] = float64(k.Count)
			capacity += float64(k.Count) * float64(k.Weight)
			memory += float64(k.Count) * float64(k.Memory)
		}
		waiting := false
		for _, r := range h.jobs {
			holds := false
			for _, p := range r.pieces {
				if p.start > t || p.end >= 0 && p.end <= t {
					continue
				}
				holds = true
				k, n := h.classes[p.Class], float64(p.Slices)
				idle[p.Class] -= n
				busy += n * float64(k.Weight)
				if p.end < 0 {
					continue
				}
				part := 1 / float64(p.end-p.start)
				known += n * float64(k.Weight)
				useful += n * float64(k.Weight) * p.Useful.Seconds() * part
				overhead += n * float64(k.Weight) * p.Overhead.Seconds() * part
				work += n * p.Work.Seconds() * part
				peak += n * float64(min(p.Peak, k.Memory))
			}
			waiting = waiting || r.submit <= t && (r.done < 0 || r.done > t) && !holds
		}
		counted := h.counted()
		for i, k := range h.classes {
			free := idle[i] * float64(k.Weight)
			idleTime += free
			if waiting {
				unsold += free
			}
			for _, r := range counted {
				if usable(&r.Job)>>i&1 == 0 || idle[i] < float64(r.Slices) {
					fragments += free / float64(len(counted))
				}
			}
		}
		if len(counted) == 0 {
			fragments = math.NaN()
		}
	}
	out.Set("utilization", over(busy, capacity))
	out.Set("usefulUtilization", over(useful, capacity))
	out.Set("memoryUtilization", over(peak, memory))
	out.Set("overheadShare", over(overhead, known))
	out.Set("lostShare", over(known-useful-overhead, known))
	out.Set("fragmentation", over(fragments, idleTime))
	out.Set("unsellable", over(unsold, capacity))
	out.Set("usefulWork", work)
}

func over(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}

// counted are the jobs submitted in the window.
func (h *history) counted() []*record {
	return slices.DeleteFunc(slices.Clone(h.jobs), func(r *record) bool { return r.submit < h.from || h.to > 0 && r.submit >= h.to })
}

// ends is the oracle for what is measured of jobs.
func (h *history) ends(out *measure.Metrics) {
	var waits, completions, stretches, slowdowns []float64
	queues := map[string][]float64{}
	count := map[string]float64{"jobs": float64(len(h.counted()))}
	var ran, runs float64
	for _, r := range h.counted() {
		runs += float64(len(r.pieces))
		end := h.end
		if r.done >= 0 {
			end = r.done
		}
		if r.state == job.Impossible {
			count["rejected"]++
			continue
		}
		if len(r.pieces) > 0 {
			ran++
			waits = append(waits, float64(r.pieces[0].start-r.submit))
		} else {
			waits = append(waits, float64(end-r.submit))
		}
		took := float64(end - r.submit)
		switch {
		case r.done < 0:
			count["unfinished"]++
		case r.state != job.Finished:
			count["failed"]++
			continue
		default:
			holds := 0.
			for t := r.submit; t < end; t++ {
				if slices.ContainsFunc(r.pieces, func(p *held) bool { return p.start <= t && t < p.end }) {
					holds++
				}
			}
			slowdowns = append(slowdowns, max(1, took/max(10, holds)))
		}
		completions = append(completions, took)
		stretches = append(stretches, took/max(10, r.Work.Seconds()))
		queues[r.Queue] = append(queues[r.Queue], took/max(10, r.Work.Seconds()))
	}
	for _, name := range []string{"jobs", "rejected", "failed", "unfinished"} {
		out.Set(name, count[name])
	}
	for name, values := range map[string][]float64{"wait": waits, "completion": completions} {
		slices.Sort(values)
		out.Set(name+"Mean", mean(values))
		for suffix, q := range map[string]float64{"P50": .5, "P95": .95, "P99": .99} {
			out.Set(name+suffix, math.NaN())
			if n := len(values); n > 0 {
				out.Set(name+suffix, values[int(math.Ceil(q*float64(n)))-1])
			}
		}
	}
	out.Set("completionPerWork", mean(stretches))
	out.Set("completionMax", math.NaN())
	out.Set("worstJob", math.NaN())
	if len(completions) > 0 {
		out.Set("completionMax", slices.Max(completions))
		out.Set("worstJob", slices.Max(stretches))
	}
	out.Set("slowdownMean", mean(slowdowns))
	out.Set("subjobs", over(runs, ran))
	var speeds, squares []float64
	worst := math.NaN()
	for _, name := range []string{"a", "b", "c"} {
		if len(queues[name]) == 0 {
			continue
		}
		m := mean(queues[name])
		if !(m <= worst) {
			worst = m
		}
		speeds, squares = append(speeds, 1/max(m, 1e-9)), append(squares, 1/max(m*m, 1e-18))
	}
	out.Set("fairness", mean(speeds)*mean(speeds)/mean(squares))
	out.Set("worstQueue", worst)
}

func mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return over(sum, float64(len(values)))
}

// whole is the oracle for what is measured of the run and of its runs.
func (h *history) whole(out *measure.Metrics) {
	var pieces, excess, theta float64
	last, first := 0, math.MaxInt
	for _, r := range h.jobs {
		first = min(first, r.submit)
		last = max(last, r.done)
		if r.done < 0 {
			last = h.end
		}
		for _, p := range r.pieces {
			if p.end < 0 || p.start < h.from || h.to > 0 && p.start >= h.to {
				continue
			}
			pieces++
			theta += float64(r.Theta) / 1e6
			if p.Excess {
				excess++
			}
		}
	}
	out.Set("memoryExcessRate", over(excess, pieces))
	out.Set("theta", over(theta, pieces))
	out.Set("messagesPerTask", over(float64(h.messages), float64(len(h.jobs))))
	out.Set("makespan", math.NaN())
	if len(h.jobs) > 0 {
		out.Set("makespan", float64(last-first))
	}
}

func TestEveryMetricAgainstTheWholeHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, got := play(t)
		var want measure.Metrics
		h.use(&want)
		h.ends(&want)
		h.whole(&want)
		if len(want) != len(got) {
			t.Fatalf("the oracle knows %d metrics, the collector gives %d", len(want), len(got))
		}
		for _, v := range got {
			if w := want.Get(v.Name); !(math.IsNaN(v.Value) && math.IsNaN(w)) && !(math.Abs(v.Value-w) <= 1e-7*max(1, math.Abs(w))) {
				t.Errorf("%s is %g, want %g", v.Name, v.Value, w)
			}
			info := measure.About(v.Name)
			if info.Unit == measure.Share && !(v.Value >= -1e-9 && v.Value <= 1+1e-9) && !math.IsNaN(v.Value) {
				t.Errorf("%s is a share and %g", v.Name, v.Value)
			}
		}
	})
}

func TestWaitsAreADistribution(t *testing.T) {
	c := collector(t, []measure.Class{{Count: 1, Weight: 1}}, measure.Window{})
	for s := range measure.Slot(4) {
		c.Arrived(0, s, plain(int64(s), "", 1))
	}
	for s := range measure.Slot(4) {
		c.Done(sec(float64(s)), s, job.Expired)
	}
	c.Finish(sec(4))
	for i, p := range c.Waits() {
		if want := math.Ceil(4*p.Share-1e-9) - 1; p.Seconds != want {
			t.Errorf("point %d: %g of the jobs waited at most %g s, want %g", i, p.Share, p.Seconds, want)
		}
	}
	if n := len(c.Waits()); n != 200 {
		t.Errorf("%d points, want 200", n)
	}
}
