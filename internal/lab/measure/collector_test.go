package measure_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/workload"
)

// sec is an instant, in seconds of virtual time.
func sec(s float64) quantity.Instant { return quantity.Instant(s * float64(time.Second)) }

func span(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

const gb = 1_000_000_000

// plain is a job of one slice and so many seconds of work, that no class can take as a whole.
func plain(number int64, queue string, work float64) *workload.Job {
	return &workload.Job{Number: number, Queue: queue, Slices: 1, Work: span(work), Theta: 10_000, Kind: job.Rigid}
}

// usable takes the classes from the job's priority, which the collector does not look at.
func usable(j *workload.Job) uint64 { return uint64(j.Priority) }

func collector(t interface {
	Helper()
	Fatal(...any)
}, classes []measure.Class, w measure.Window) *measure.Collector {
	t.Helper()
	c, err := measure.New(measure.Config{Classes: classes, Window: w, Usable: usable})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// piece is a whole run on one slice of class 0 that was useful throughout.
func piece(s measure.Slot, from, to float64) *measure.Piece {
	return &measure.Piece{Slot: s, Slices: 1, Start: sec(from), End: sec(to), Work: span(to - from), Useful: span(to - from),
		Outcome: job.Done}
}

func TestSmallSchedules(t *testing.T) {
	nan := math.NaN()
	one := []measure.Class{{Name: "gpu", Count: 1, Weight: 1000, Memory: 10 * gb}}
	mixed := []measure.Class{{Name: "small", Count: 2, Weight: 250, Memory: 10 * gb},
		{Name: "large", Count: 1, Weight: 500, Memory: 40 * gb}}
	for _, c := range []struct {
		name    string
		classes []measure.Class
		window  measure.Window
		play    func(c *measure.Collector)
		end     float64
		want    map[string]float64
	}{
		{"nothing happens", one, measure.Window{}, func(*measure.Collector) {}, 10, map[string]float64{
			"utilization": 0, "usefulUtilization": 0, "waitMean": nan, "waitP99": nan, "completionMean": nan, "completionPerWork": nan,
			"slowdownMean": nan, "completionMax": nan, "worstJob": nan,
			"jobs": 0, "rejected": 0, "failed": 0, "unfinished": 0, "memoryExcessRate": nan, "theta": nan, "subjobs": nan,
			"overheadShare": nan, "lostShare": nan,
			"fragmentation": nan, "unsellable": 0, "fairness": nan, "worstQueue": nan, "messagesPerTask": nan, "usefulWork": 0,
			"makespan": nan,
		}},
		{"cut off before its beginning", one, measure.Window{}, func(*measure.Collector) {}, -1, map[string]float64{
			"utilization": nan, "waitMean": nan, "jobs": 0, "unsellable": nan, "makespan": nan,
		}},
		// One slice, two jobs of 20 s and 5 s at 0: the second waits 20 s.
		{"first come", one, measure.Window{}, func(c *measure.Collector) {
			c.Arrived(0, 0, plain(0, "a", 20))
			c.Began(0, 0, 0, 1)
			c.Arrived(0, 1, plain(1, "b", 5))
			p := piece(0, 0, 20)
			p.Peak = 5 * gb
			c.Ended(sec(20), p)
			c.Done(sec(20), 0, job.Finished)
			c.Began(sec(20), 1, 0, 1)
			p = piece(1, 20, 25)
			p.Peak, p.Excess = 12*gb, true
			c.Ended(sec(25), p)
			c.Done(sec(25), 1, job.Finished)
			c.Sent(8)
		}, 50, map[string]float64{
			"utilization": .5, "usefulUtilization": .5,
			"memoryUtilization": (20*5 + 5*10) / 500., // the peak past the slice counts up to its capacity
			"waitMean":          10, "waitP50": 0, "waitP95": 20, "waitP99": 20,
			"completionMean": 22.5, "completionP50": 20, "completionP99": 25,
			"completionPerWork": (20./20 + 25./10) / 2, // 5 s count as 10
			"slowdownMean":      (1 + 25./10) / 2,
			"jobs":              2, "rejected": 0, "failed": 0, "unfinished": 0,
			"memoryExcessRate": .5, "theta": .01, "subjobs": 1, "overheadShare": 0, "lostShare": 0,
			"fragmentation": 1, // priority 0: no class is usable
			"unsellable":    0, // a job waited for 20 s, and nothing was idle then
			"fairness":      (1 + .4) * (1 + .4) / 2 / (1 + .16), "worstQueue": 2.5,
			"messagesPerTask": 4, "usefulWork": 25, "makespan": 25,
		}},
		// A job of 100 s in two runs: [0,60) of which 40 s count, 10 s are overhead and 10 s are lost; [80,140) of which all counts.
		{"cut and lost", one, measure.Window{}, func(c *measure.Collector) {
			c.Arrived(0, 0, plain(0, "a", 100))
			c.Began(0, 0, 0, 1)
			p := piece(0, 0, 60)
			p.Work, p.Useful, p.Overhead = span(40), span(40), span(10)
			c.Ended(sec(60), p)
			c.Began(sec(80), 0, 0, 1)
			c.Ended(sec(140), piece(0, 80, 140))
			c.Done(sec(140), 0, job.Finished)
		}, 200, map[string]float64{
			"utilization": .6, "usefulUtilization": .5, "overheadShare": 10. / 120, "lostShare": 10. / 120, "subjobs": 2,
			"waitMean": 0, "completionMean": 140, "completionPerWork": 1.4, "slowdownMean": 140. / 120, "unsellable": 20. / 200,
			"usefulWork": 100,
		}},
		// The window is [10, 30): of a run [0, 40) half counts for use; the job submitted in the window waits on beyond it.
		{"window", one, measure.Window{From: sec(10), To: sec(30)}, func(c *measure.Collector) {
			c.Arrived(0, 0, plain(0, "a", 30))
			c.Began(0, 0, 0, 1)
			c.Arrived(sec(15), 1, plain(1, "a", 10))
			p := piece(0, 0, 40)
			p.Work, p.Useful, p.Overhead, p.Excess = span(30), span(30), span(4), true
			c.Ended(sec(40), p)
			c.Done(sec(40), 0, job.Finished)
			c.Began(sec(40), 1, 0, 1)
			c.Ended(sec(50), piece(1, 40, 50))
			c.Done(sec(50), 1, job.Finished)
		}, 50, map[string]float64{
			"utilization": 1, "usefulUtilization": .75, "overheadShare": .1, "lostShare": .15, "usefulWork": 15, "jobs": 1, "waitMean": 25,
			"completionMean": 35, "memoryExcessRate": nan, "messagesPerTask": 0, "makespan": 50,
		}},
		// One is rejected, one fails while it waits, one fails in its run, two come to no end.
		{"ends of all kinds", one, measure.Window{}, func(c *measure.Collector) {
			for s := range measure.Slot(5) {
				c.Arrived(0, s, plain(int64(s), "a", 30))
			}
			c.Done(0, 0, job.Impossible)
			c.Done(sec(4), 1, job.Expired)
			c.Began(sec(10), 2, 0, 1)
			p := piece(2, 10, 16)
			p.Useful, p.Work = 0, 0
			c.Ended(sec(16), p)
			c.Done(sec(16), 2, job.Failed)
			c.Began(sec(20), 3, 0, 1)
		}, 60, map[string]float64{
			"jobs": 5, "rejected": 1, "failed": 2, "unfinished": 2, "waitMean": (4 + 10 + 20 + 60) / 4., "waitP50": 10,
			"completionMean": 60, "completionPerWork": 2,
			"slowdownMean": nan, "utilization": 46. / 60, "lostShare": 1, "unsellable": 14. / 60, "makespan": 60, "subjobs": 1,
		}},
		// Half of the jobs fit everywhere but need two slices of a class, half fit on the large one alone.
		// [0,10): all idle. F = .5*(large: only one) .5 + .5*(small) .5 = .25+.25 = .5 of a weight of 1.
		// [10,30): one small taken. F = .5*(.25+.5) + .5*.25 = .5 of .75.
		{"fragments", mixed, measure.Window{}, func(c *measure.Collector) {
			pair := plain(0, "a", 20)
			pair.Slices, pair.Priority = 2, 3
			c.Arrived(0, 0, pair)
			c.Done(0, 0, job.Failed)
			big := plain(1, "a", 20)
			big.Priority = 2
			c.Arrived(sec(10), 0, big)
			c.Began(sec(10), 0, 0, 1)
		}, 30, map[string]float64{
			"fragmentation": (10*.5 + 20*.5) / (10*1 + 20*.75), "utilization": 20 * .25 / 30, "failed": 1, "unfinished": 1,
		}},
		// Two slices of a class at once, at half the weight each, and a memory of which a quarter is used.
		{"gang", mixed, measure.Window{}, func(c *measure.Collector) {
			pair := plain(0, "a", 20)
			pair.Slices = 2
			c.Arrived(0, 0, pair)
			c.Began(0, 0, 0, 2)
			p := piece(0, 0, 30)
			p.Slices, p.Work, p.Useful, p.Peak = 2, span(20), span(30), 5*gb
			c.Ended(sec(30), p)
			c.Done(sec(30), 0, job.Finished)
		}, 60, map[string]float64{
			"utilization": .25, "usefulUtilization": .25, "memoryUtilization": 2 * 5. * 30 / (60 * 60), "usefulWork": 40,
			"completionPerWork": 1.5, "slowdownMean": 1,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := collector(t, c.classes, c.window)
			c.play(m)
			got := m.Finish(sec(c.end))
			for name, want := range c.want {
				if v := got.Get(name); !near(v, want) {
					t.Errorf("%s is %g, want %g", name, v, want)
				}
			}
		})
	}
}

// near says whether two figures agree but for rounding.
func near(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-9*max(1, math.Abs(b))
}

func TestAllMetricsInOrder(t *testing.T) {
	got := collector(t, []measure.Class{{Count: 1, Weight: 1}}, measure.Window{}).Finish(sec(1))
	table := measure.Table()
	if len(got) != len(table)-3 || table[len(got)].Name != measure.WaitCoverage || table[len(got)+1].Name != measure.BoundShare ||
		table[len(got)+2].Name != measure.CompletionOverBound {
		t.Fatalf("%d metrics; want the %d of the table but its last three, set by others", len(got), len(table)-3)
	}
	for i, v := range got {
		if v.Name != table[i].Name {
			t.Errorf("metric %d is %s, want %s", i, v.Name, table[i].Name)
		}
	}
}

func TestConfigurationIsRefusedWhole(t *testing.T) {
	_, err := measure.New(measure.Config{Classes: []measure.Class{{Name: "x", Count: 0, Weight: 1}},
		Window: measure.Window{From: 5, To: 5}})
	want := "metrics: class 0 (\"x\"): count 0, weight 1, memory 0; want at least 1, 1 and 0\n" +
		"window: it ends at 5 and begins at 5; want an end after its beginning, or 0 for the end of the run\n" +
		"usable: no function given; fragmentation needs to know where a job could run"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestBrokenDriversAreStopped(t *testing.T) {
	for name, play := range map[string]func(c *measure.Collector){
		"time goes back":           func(c *measure.Collector) { c.Arrived(5, 0, plain(0, "", 1)); c.Arrived(4, 1, plain(1, "", 1)) },
		"a slot twice":             func(c *measure.Collector) { c.Arrived(5, 0, plain(0, "", 1)); c.Arrived(5, 0, plain(1, "", 1)) },
		"no such job":              func(c *measure.Collector) { c.Began(5, 0, 0, 1) },
		"more slices than idle":    func(c *measure.Collector) { c.Arrived(5, 0, plain(0, "", 1)); c.Began(5, 0, 0, 2) },
		"an end without beginning": func(c *measure.Collector) { c.Arrived(5, 0, plain(0, "", 1)); c.Ended(5, piece(0, 0, 0)) },
		"done while it runs": func(c *measure.Collector) {
			c.Arrived(5, 0, plain(0, "", 1))
			c.Began(5, 0, 0, 1)
			c.Done(5, 0, job.Finished)
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("not stopped")
				}
			}()
			play(collector(t, []measure.Class{{Count: 1, Weight: 1}}, measure.Window{}))
		})
	}
}

// steady plays n jobs, of which at most 100 live at once, from a time on.
func steady(c *measure.Collector, from quantity.Instant, n int, queues []string, p *measure.Piece, j *workload.Job) quantity.Instant {
	const alive = 100
	for i := range n {
		at := from.Add(time.Duration(i) * time.Second)
		s := measure.Slot(i % alive)
		if i >= alive {
			p.Slot, p.Class, p.Start, p.End = s, uint8(i%alive)&1, at.Add(-alive*time.Second), at
			c.Ended(at, p)
			c.Done(at, s, job.Finished)
		}
		j.Number, j.Queue = int64(i), queues[i%len(queues)]
		c.Arrived(at, s, j)
		c.Began(at, s, uint8(i%alive)&1, 1)
	}
	end := from.Add(time.Duration(n) * time.Second)
	for i := n; i < n+alive; i++ {
		s := measure.Slot(i % alive)
		p.Slot, p.Start, p.End, p.Class = s, end, end, uint8(i%alive)&1
		c.Ended(end, p)
		c.Done(end, s, job.Finished)
	}
	return end
}

func TestNoAllocation(t *testing.T) {
	c := collector(t, []measure.Class{{Count: 64, Weight: 1000, Memory: 10 * gb}, {Count: 64, Weight: 500, Memory: 5 * gb}},
		measure.Window{})
	queues := make([]string, 10)
	for i := range queues {
		queues[i] = fmt.Sprintf("queue-%d", i)
	}
	p, j := piece(0, 0, 1), plain(0, "", 30)
	now := steady(c, 0, 300, queues, p, j)
	if n := testing.AllocsPerRun(20, func() { now = steady(c, now, 500, queues, p, j) }); n > 0 {
		t.Errorf("2,000 events allocate %g times, want never", n)
	}
}

// BenchmarkCollector is the cost of an event: an arrival, a start, an end or a final state.
func BenchmarkCollector(b *testing.B) {
	c := collector(b, []measure.Class{{Count: 64, Weight: 1000, Memory: 10 * gb}, {Count: 64, Weight: 500, Memory: 5 * gb}},
		measure.Window{})
	p, j := piece(0, 0, 1), plain(0, "", 30)
	queues := []string{"research", "production", "students"}
	b.ReportAllocs()
	now := quantity.Instant(0)
	for done := 0; done < b.N; done += 4 * 1000 {
		now = steady(c, now, 1000, queues, p, j)
	}
}
