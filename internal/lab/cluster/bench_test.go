package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/cluster"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/conservative"
	"sluice.dev/sluice/internal/lab/planner/easy"
	"sluice.dev/sluice/internal/lab/planner/fcfs"
	"sluice.dev/sluice/internal/lab/planner/greedy"
	"sluice.dev/sluice/internal/lab/planner/ranked"
)

// loop is the least driver there can be: one heap of ends, and an arrival source that keeps a backlog or a rate.
type loop struct {
	c       *cluster.Cluster
	out     cluster.Out
	heap    []due
	free    []cluster.ID
	runs    []*[planner.MaxClasses]time.Duration // planned, by id
	real    []time.Duration
	next    cluster.ID
	now     quantity.Instant
	arrival quantity.Instant
	rng     prng.Stream
	draw    func(s *prng.Stream) (devices int32, real, planned time.Duration)
	// gap is the mean time between arrivals; backlog, if not 0, replaces it: a task arrives whenever fewer wait.
	gap     time.Duration
	backlog int64
	events  int
}

type due struct {
	at quantity.Instant
	id cluster.ID
}

func (a due) before(b due) bool { return a.at < b.at || a.at == b.at && a.id < b.id }

// push and pop are a 4-ary heap of values.
func (l *loop) push(d due) {
	l.heap = append(l.heap, d)
	i := len(l.heap) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !d.before(l.heap[up]) {
			break
		}
		l.heap[i] = l.heap[up]
		i = up
	}
	l.heap[i] = d
}

func (l *loop) pop() due {
	top := l.heap[0]
	last := l.heap[len(l.heap)-1]
	l.heap = l.heap[:len(l.heap)-1]
	n, i := len(l.heap), 0
	for {
		least := 4*i + 1
		if least >= n {
			break
		}
		for k := least + 1; k < min(4*i+5, n); k++ {
			if l.heap[k].before(l.heap[least]) {
				least = k
			}
		}
		if !l.heap[least].before(last) {
			break
		}
		l.heap[i] = l.heap[least]
		i = least
	}
	if n > 0 {
		l.heap[i] = last
	}
	return top
}

// typical is for planners that look at what is yet to come.
var typical = []planner.Typical{{Task: planner.Task{Devices: 1, Share: planner.Whole, Classes: 1}, Count: 1}}

// newLoop has machines of eight devices of one class.
func newLoop(tb testing.TB, kind planner.Kind, devices int, draw func(*prng.Stream) (int32, time.Duration, time.Duration)) *loop {
	m := cluster.Machines{Classes: []planner.Class{{Name: "gpu", Weight: planner.Whole}}}
	for n := 0; n < devices; n += 8 {
		m.Nodes = append(m.Nodes, planner.Node{Devices: make([]uint8, min(8, devices-n))})
	}
	p, err := kind.New(planner.Options{Cluster: m, Typical: typical})
	if err != nil {
		tb.Fatal(err)
	}
	return &loop{c: cluster.New(m, p), rng: prng.New(1), draw: draw}
}

func (l *loop) arrive() {
	var id cluster.ID
	if n := len(l.free); n > 0 {
		id, l.free = l.free[n-1], l.free[:n-1]
	} else {
		id = l.next
		l.next++
		l.runs = append(l.runs, new([planner.MaxClasses]time.Duration))
		l.real = append(l.real, 0)
	}
	devices, run, planned := l.draw(&l.rng)
	l.real[id], l.runs[id][0] = run, planned
	l.c.Step(l.now, cluster.Arrive(cluster.Task{ID: id, Devices: devices, Share: planner.Whole, Spread: true, Classes: 1, Run: l.runs[id]}),
		&l.out)
	l.events++
}

// plan ticks and takes the starts.
func (l *loop) plan() {
	l.c.Step(l.now, cluster.Tick(), &l.out)
	for _, e := range l.out.Effects {
		l.push(due{l.now.Add(l.real[e.Task]), e.Task})
		l.events++
	}
	l.out.Reset()
}

// instant handles all that is due next.
func (l *loop) instant() {
	at := quantity.Never
	if len(l.heap) > 0 {
		at = l.heap[0].at
	}
	if l.backlog == 0 {
		at = min(at, l.arrival)
	}
	l.now = at
	for len(l.heap) > 0 && l.heap[0].at == at {
		d := l.pop()
		l.c.Step(at, cluster.End(d.id, cluster.Finished), &l.out)
		l.free = append(l.free, d.id)
		l.events++
	}
	if l.backlog == 0 {
		for l.arrival == at {
			l.arrive()
			l.arrival = at + quantity.Instant(l.rng.Exp()*float64(l.gap)) + 1
		}
	}
	l.plan()
	for l.backlog > 0 && l.c.Counts().Waiting < l.backlog {
		l.arrive()
		l.plan()
	}
}

// single is tasks of one device, an hour on average.
func single(s *prng.Stream) (int32, time.Duration, time.Duration) {
	run := time.Duration(s.Exp() * float64(time.Hour))
	return 1, run, run
}

// parallel is tasks of 1 to 32 devices, an hour on average, planned 1 to 3 times too long.
func parallel(s *prng.Stream) (int32, time.Duration, time.Duration) {
	devices := int32(1 + s.IntN(32))
	run := time.Duration(s.Exp()*float64(time.Hour)) + time.Second
	return devices, run, time.Duration(float64(run) * (1 + 2*s.Float64()))
}

func (l *loop) bench(b *testing.B) {
	b.ReportAllocs()
	l.events = 0
	for b.Loop() {
		for before := l.events; l.events == before; {
			l.instant()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(l.events), "ns/event")
	b.ReportMetric(float64(l.events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
	b.ReportMetric(float64(l.c.Counts().Waiting), "waiting")
	b.ReportMetric(float64(l.c.Counts().Running), "running")
}

// BenchmarkFCFS is first-come at load .9: as many tasks run, and are pending in the heap, as the name says, times .9.
func BenchmarkFCFS(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := newLoop(b, fcfs.Kind(), n, single)
			l.gap = time.Duration(float64(time.Hour) / float64(n) / .9)
			for l.events < 20*n {
				l.instant()
			}
			l.bench(b)
		})
	}
}

// BenchmarkConservative is the same with a reservation for everybody who waits, all of which may move at every end.
func BenchmarkConservative(b *testing.B) {
	for _, waiting := range []int{10, 100, 1_000} {
		b.Run(fmt.Sprintf("1000/%d", waiting), func(b *testing.B) { backlog(b, conservative.Kind(), 1_000, waiting) })
	}
}

// BenchmarkSkip is the same with nothing kept for anybody.
func BenchmarkSkip(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("%d/%d", n, n), func(b *testing.B) { backlog(b, greedy.Skip(), n, n) })
	}
}

// BenchmarkSJF is the shortest first, passing over who does not fit and with a reservation: every plan looks at all that wait.
func BenchmarkSJF(b *testing.B) {
	for _, kind := range []planner.Kind{ranked.SJF(), ranked.SJFEasy()} {
		for _, waiting := range []int{100, 1_000, 10_000} {
			b.Run(fmt.Sprintf("%s/1000/%d", kind.Name, waiting), func(b *testing.B) { backlog(b, kind, 1_000, waiting) })
		}
	}
}

// BenchmarkEASY is EASY with a backlog that is kept: devices, and how many wait.
func BenchmarkEASY(b *testing.B) {
	for _, n := range []struct{ devices, waiting int }{{1_000, 1_000}, {10_000, 1_000}, {100_000, 1_000}, {1_000, 10_000}, {10_000, 10_000},
		{100_000, 10_000}, {100_000, 100_000}} {
		b.Run(fmt.Sprintf("%d/%d", n.devices, n.waiting), func(b *testing.B) {
			backlog(b, easy.Kind(), n.devices, n.waiting)
		})
	}
}

func backlog(b *testing.B, kind planner.Kind, devices, waiting int) {
	l := newLoop(b, kind, devices, parallel)
	l.backlog = int64(waiting)
	for l.events < 5*waiting+devices {
		l.plan()
		if l.c.Counts().Waiting < l.backlog {
			l.arrive()
		} else {
			l.instant()
		}
	}
	l.bench(b)
}
