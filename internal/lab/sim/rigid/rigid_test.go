package rigid

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/cluster"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/fcfs"
	"sluice.dev/sluice/internal/lab/workload"
)

const sec = quantity.Instant(time.Second)

// list is a source of jobs that are given.
type list []workload.Job

func (l *list) Next(j *workload.Job) (bool, error) {
	if len(*l) == 0 {
		return false, nil
	}
	*j = (*l)[0]
	*l = (*l)[1:]
	return true, nil
}

// heard writes down what an observer hears.
type heard struct {
	lines  []string
	pieces []measure.Piece
	hash   uint64
}

func (h *heard) say(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	h.lines = append(h.lines, line)
	f := fnv.New64a()
	_, _ = f.Write([]byte(line))
	h.hash = h.hash*0x9e3779b97f4a7c15 + f.Sum64()
}

func (h *heard) Arrived(at quantity.Instant, s measure.Slot, _ *workload.Job) {
	h.say("%v arrived %d", at.Sub(0), s)
}
func (h *heard) Began(at quantity.Instant, s measure.Slot, class uint8, n int32) {
	h.say("%v began %d on %d of %d", at.Sub(0), s, n, class)
}
func (h *heard) Ended(at quantity.Instant, p *measure.Piece) {
	h.say("%v ended %d: %v, work %v useful %v overhead %v", at.Sub(0), p.Slot, p.Outcome, p.Work, p.Useful, p.Overhead)
	h.pieces = append(h.pieces, *p)
}
func (h *heard) Done(at quantity.Instant, s measure.Slot, state job.State) {
	h.say("%v done %d: %v", at.Sub(0), s, state)
}
func (h *heard) Sent(n int) { h.say("sent %d", n) }

// twoClasses are slow small devices and fast large ones.
func twoClasses(small, large int) cluster.Machines {
	m := cluster.Machines{Classes: []planner.Class{{Name: "small", Weight: 500, Memory: 10}, {Name: "large", Weight: 1000, Memory: 20}}}
	n := planner.Node{Devices: make([]uint8, small)}
	for range large {
		n.Devices = append(n.Devices, 1)
	}
	m.Nodes = []planner.Node{n}
	return m
}

// task lets a job use every class on which its declared time says how long it takes.
func task(m cluster.Machines) func(*workload.Job, *cluster.Task) error {
	return func(j *workload.Job, t *cluster.Task) error {
		t.Devices, t.Share, t.Spread, t.Classes = int32(j.Slices), planner.Whole, true, 1<<len(m.Classes)-1
		for c := range m.Classes {
			t.Run[c] = takes(j.Declared, m.Classes[c].Weight)
		}
		return nil
	}
}

func rigid(t interface {
	Helper()
	Fatal(...any)
}, m cluster.Machines, k planner.Kind, jobs workload.Source, o measure.Observer) *Sim {
	t.Helper()
	p, err := k.New(planner.Options{Cluster: m})
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(Options{Actor: cluster.New(m, p), Machines: m, Source: jobs, Task: task(m), Observer: o})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// block of a minute of work whose memory is mean in all of it.
func oneJob(mean quantity.Amount) workload.Job {
	return workload.Job{
		Kind: job.Rigid, Slices: 1, Units: 60, Grid: 1, Parallelism: 1, Work: time.Minute, Declared: time.Minute, Submit: sec,
		Restore: 5 * time.Second, Checkpoint: 3 * time.Second, Startup: 7 * time.Second,
		Memory: workload.Memory{Phases: []trp.Phase{{UpTo: 30, Mean: mean / 2}, {UpTo: 60, Mean: mean}}},
	}
}

// swap is a planner for one device that preempts what runs for whatever is new, and serves the rest in turn.
type swap struct {
	waiting              []planner.ID
	running, moving, new planner.ID
}

func (s *swap) Arrive(_ quantity.Instant, t planner.Task) {
	s.waiting = append(s.waiting, t.ID)
	if s.new = t.ID; s.moving == t.ID {
		s.moving, s.new = -1, -1
	}
}

func (s *swap) Leave(_ quantity.Instant, id planner.ID) {
	if s.running == id {
		s.running = -1
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(w planner.ID) bool { return w == id })
}

func (s *swap) Plan(_ quantity.Instant, out *planner.Out) {
	if s.running != s.moving {
		s.moving = -1
	}
	switch {
	case len(s.waiting) == 0:
	case s.running < 0:
		s.running, s.waiting = s.waiting[0], s.waiting[1:]
		out.Devices = append(out.Devices, 0)
		out.Start(s.running, 0, 0, len(out.Devices)-1)
		s.new = -1
	case s.new >= 0 && s.moving < 0:
		s.moving, s.new = s.running, -1
		out.Decisions = append(out.Decisions, planner.Decision{Verb: planner.Preempt, Task: s.running})
	}
}

func (s *swap) Reservations(quantity.Instant, []planner.Reservation) []planner.Reservation {
	return nil
}

func swapKind() planner.Kind {
	return planner.Kind{Name: "swap", Preempts: true,
		New: func(planner.Options) (planner.Planner, error) { return &swap{running: -1, moving: -1, new: -1}, nil }}
}

func TestRigidRuns(t *testing.T) {
	with := func(j workload.Job, change func(*workload.Job)) workload.Job { change(&j); return j }
	for _, c := range []struct {
		name string
		kind planner.Kind
		m    cluster.Machines
		jobs list
		want []string
	}{
		{"the faster class, at its true time", fcfs.Kind(), twoClasses(1, 1), list{oneJob(4)}, []string{
			"1s arrived 0", "1s began 0 on 1 of 1", "1m1s ended 0: done, work 1m0s useful 1m0s overhead 0s", "1m1s done 0: COMPLETED",
		}},
		{"a job that may be cut starts up first", fcfs.Kind(), twoClasses(0, 1),
			list{with(oneJob(4), func(j *workload.Job) { j.Kind = job.Steps })}, []string{
				"1s arrived 0", "1s began 0 on 1 of 1", "1m8s ended 0: done, work 1m0s useful 1m0s overhead 7s", "1m8s done 0: COMPLETED",
			}},
		{"a speed of its own", fcfs.Kind(), twoClasses(1, 0),
			list{with(oneJob(4), func(j *workload.Job) { j.Speeds = []job.SpeedOn{{Profile: "small", Permille: 2000}} })}, []string{
				"1s arrived 0", "1s began 0 on 1 of 0", "31s ended 0: done, work 1m0s useful 30s overhead 0s", "31s done 0: COMPLETED",
			}},
		{"killed at its walltime", fcfs.Kind(), twoClasses(1, 0),
			list{with(oneJob(4), func(j *workload.Job) { j.Declared = 20 * time.Second })}, []string{
				"1s arrived 0", "1s began 0 on 1 of 0", "41s ended 0: deadline, work 0s useful 0s overhead 0s", "41s done 0: FAILED",
			}},
		{"it outgrows the small class, and comes again for the large one", fcfs.Kind(), twoClasses(1, 1),
			list{with(oneJob(4), func(j *workload.Job) { j.Work = time.Hour; j.Declared = time.Hour }), oneJob(12)}, []string{
				"1s arrived 0", "1s arrived 1", "1s began 0 on 1 of 1", "1s began 1 on 1 of 0",
				"1m1s ended 1: memory, work 0s useful 0s overhead 0s",
				"1h0m1s ended 0: done, work 1h0m0s useful 1h0m0s overhead 0s", "1h0m1s done 0: COMPLETED", "1h0m1s began 1 on 1 of 1",
				"1h1m1s ended 1: done, work 1m0s useful 1m0s overhead 0s", "1h1m1s done 1: COMPLETED",
			}},
		{"it outgrows all there is", fcfs.Kind(), twoClasses(0, 1), list{oneJob(50)}, []string{
			"1s arrived 0", "1s began 0 on 1 of 1", "1s ended 0: memory, work 0s useful 0s overhead 0s", "1s done 0: FAILED",
		}},
		{"more devices than there are", fcfs.Kind(), twoClasses(0, 1), list{with(oneJob(1), func(j *workload.Job) { j.Slices = 3 })},
			[]string{
				"1s arrived 0", "1s done 0: NEVER",
			}},
		{"its owner's deadline", fcfs.Kind(), twoClasses(0, 1), list{with(oneJob(1), func(j *workload.Job) { j.Deadline = 11 * sec }),
			with(oneJob(1), func(j *workload.Job) { j.Deadline = 5 * sec })}, []string{
			"1s arrived 0", "1s arrived 1", "1s began 0 on 1 of 1", "5s done 1: EXPIRED",
			"11s ended 0: stopped, work 0s useful 0s overhead 0s", "11s done 0: EXPIRED",
		}},
		{"preempted: it pays for its checkpoint and for the restore", swapKind(), twoClasses(1, 0),
			list{oneJob(4), with(oneJob(4), func(j *workload.Job) { j.Submit = 21 * sec })}, []string{
				"1s arrived 0", "1s began 0 on 1 of 0", "21s arrived 1",
				"24s ended 0: yielded, work 10s useful 20s overhead 3s", "24s began 1 on 1 of 0",
				"2m24s ended 1: done, work 1m0s useful 2m0s overhead 0s",
				"2m24s done 1: COMPLETED", "2m24s began 0 on 1 of 0", "4m9s ended 0: done, work 50s useful 1m40s overhead 5s",
				"4m9s done 0: COMPLETED",
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &heard{}
			r := rigid(t, c.m, c.kind, &c.jobs, h)
			over, err := r.Run(context.Background(), 9000*sec)
			if err != nil || !over && !c.kind.Preempts {
				t.Errorf("over %v, %v", over, err)
			}
			if got := h.lines[:min(len(h.lines), len(c.want))]; !slices.Equal(got, c.want) || !c.kind.Preempts &&
				len(h.lines) != len(c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(h.lines, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// TestPreemptedWorkIsDone: however often jobs push each other off the only device, what the runs of each did adds up to its
// work, and the rest of their time is a checkpoint, a restore, or both.
func TestPreemptedWorkIsDone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var jobs list
		at := quantity.Instant(0)
		for range rapid.IntRange(2, 8).Draw(rt, "jobs") {
			at = at.Add(time.Duration(rapid.IntRange(0, 90).Draw(rt, "gap")) * time.Second)
			j := oneJob(4)
			j.Submit, j.Work = at, time.Duration(rapid.Int64Range(1, int64(5*time.Minute)).Draw(rt, "work"))
			j.Declared = j.Work
			jobs = append(jobs, j)
		}
		offered := slices.Clone(jobs)
		h := &heard{}
		m := twoClasses(1, 0)
		m.Classes[0].Weight = 333
		r := rigid(rt, m, swapKind(), &jobs, h)
		if over, err := r.Run(context.Background(), quantity.Never); !over || err != nil {
			rt.Fatalf("over %v, %v:\n%s", over, err, strings.Join(h.lines, "\n"))
		}
		var work, all time.Duration
		for _, p := range h.pieces {
			work += p.Work
			if held := p.End.Sub(p.Start); held-p.Useful-p.Overhead > time.Microsecond || p.Useful+p.Overhead > held {
				rt.Errorf("a run of %v has %v useful and %v of overhead", held, p.Useful, p.Overhead)
			}
		}
		for _, j := range offered {
			all += j.Work
		}
		if work != all {
			rt.Errorf("the jobs have %v of work, %v was done:\n%s", all, work, strings.Join(h.lines, "\n"))
		}
	})
}

// TestRigidIsFirstCome compares whole runs under first-come with a plain simulation of a queue.
func TestRigidIsFirstCome(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := twoClasses(0, rapid.IntRange(1, 5).Draw(rt, "devices"))
		var jobs list
		at := quantity.Instant(0)
		for i := range rapid.IntRange(1, 40).Draw(rt, "jobs") {
			j := oneJob(1)
			at = at.Add(time.Duration(rapid.IntRange(0, 3).Draw(rt, "gap")) * time.Second)
			j.Number, j.Submit, j.Slices = int64(i), at, rapid.IntRange(1, len(m.Nodes[0].Devices)).Draw(rt, "width")
			j.Work = time.Duration(rapid.IntRange(1, 9).Draw(rt, "work")) * time.Second
			j.Declared = j.Work + time.Duration(rapid.IntRange(0, 3).Draw(rt, "more"))*time.Second
			jobs = append(jobs, j)
		}
		free := make([]quantity.Instant, len(m.Nodes[0].Devices)) // when each device is free
		var want []string
		start := quantity.Instant(0)
		for _, j := range jobs {
			slices.Sort(free)
			start = max(start, j.Submit, free[j.Slices-1])
			for k := range j.Slices {
				free[k] = start.Add(j.Work)
			}
			want = append(want, fmt.Sprint(start, start.Add(j.Work)))
		}
		h := &heard{}
		r := rigid(rt, m, fcfs.Kind(), &jobs, h)
		over, err := r.Run(context.Background(), quantity.Never)
		if !over || err != nil {
			rt.Fatal(over, err)
		}
		var got []string
		for _, p := range h.pieces {
			got = append(got, fmt.Sprint(p.Start, p.End))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			rt.Fatalf("got %v\nwant %v", got, want)
		}
		if n := uint64(3 * len(want)); r.Events() != n {
			rt.Errorf("%d events, want %d", r.Events(), n)
		}
	})
}

// stream is an endless source of short jobs at a load of about .9 of so many devices.
type stream struct {
	draw    prng.Stream
	at      quantity.Instant
	gap     float64
	n, most int64
	burst   int64 // so many come at once, first of all
	phases  []trp.Phase
}

func newStream(devices int, most int64) *stream {
	return &stream{gap: float64(time.Hour) / float64(devices) / .9, most: most, phases: []trp.Phase{{UpTo: 30, Mean: 3, SD: 1},
		{UpTo: 60, Mean: 5}}}
}

func (s *stream) Next(j *workload.Job) (bool, error) {
	if s.n == s.most {
		return false, nil
	}
	if s.n >= s.burst {
		s.at += quantity.Instant(s.draw.Exp() * s.gap)
	}
	work := time.Duration(s.draw.Exp()*float64(time.Hour)) + 1
	*j = workload.Job{
		Number: s.n, Queue: "q", Submit: s.at, Kind: job.Rigid, Slices: 1, Units: 60, Grid: 1, Parallelism: 1, Work: work, Declared: work,
		Memory: workload.Memory{Seed: uint64(s.n), Phases: s.phases},
	}
	s.n++
	return true, nil
}

func collector(t interface {
	Helper()
	Fatal(...any)
}, m cluster.Machines) *measure.Collector {
	t.Helper()
	var classes []measure.Class
	for i, c := range m.Classes {
		n := 0
		for _, node := range m.Nodes {
			for _, d := range node.Devices {
				if int(d) == i {
					n++
				}
			}
		}
		classes = append(classes, measure.Class{Name: c.Name, Weight: c.Weight, Memory: c.Memory, Count: max(1, n)})
	}
	k, err := measure.New(measure.Config{Classes: classes, Usable: func(*workload.Job) uint64 { return 3 }})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestRigidAllocatesNothing in steady state, with metrics on.
func TestRigidAllocatesNothing(t *testing.T) {
	m := twoClasses(0, 100)
	jobs := newStream(50, -1)
	jobs.burst = 500 // tables grow to what they will ever be
	r := rigid(t, m, fcfs.Kind(), jobs, collector(t, m))
	limit := r.Now().Add(200 * time.Hour)
	if _, err := r.Run(context.Background(), limit); err != nil {
		t.Fatal(err)
	}
	before := r.Events()
	if n := testing.AllocsPerRun(20, func() {
		limit = limit.Add(10 * time.Hour)
		if _, err := r.Run(context.Background(), limit); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations in about %d events", n, (r.Events()-before)/21)
	}
}

func TestRigidIsDeterministic(t *testing.T) {
	var hashes []uint64
	for _, procs := range []int{1, 2, 1, 2} {
		before := runtime.GOMAXPROCS(procs)
		h := &heard{}
		r := rigid(t, twoClasses(3, 3), fcfs.Kind(), newStream(5, 500), h)
		over, err := r.Run(context.Background(), quantity.Never)
		runtime.GOMAXPROCS(before)
		if !over || err != nil || len(h.lines) != 2000 {
			t.Fatalf("over %v, %v, %d events", over, err, len(h.lines))
		}
		hashes = append(hashes, h.hash)
	}
	if slices.Max(hashes) != slices.Min(hashes) {
		t.Errorf("the same seed gives the events %x", hashes)
	}
}

// broken is a source that fails.
type broken struct{}

func (broken) Next(*workload.Job) (bool, error) {
	return false, errkind.Errorf(errkind.Corrupt, "line 3: nonsense")
}

func TestRigidErrors(t *testing.T) {
	if _, err := New(Options{Speeds: []int64{-1}}); errkind.Of(err) != errkind.Invalid ||
		strings.Count(err.Error(), "simulation: ") != 4 {
		t.Errorf("got %v", err)
	}
	m := twoClasses(1, 1)
	p, err := fcfs.Kind().New(planner.Options{Cluster: m})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{Actor: cluster.New(m, p), Machines: m, Source: broken{}, Task: task(m)}); errkind.Of(
		err) != errkind.Corrupt {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := rigid(t, m, fcfs.Kind(), newStream(2, -1), nil)
	if _, err := r.Run(ctx, quantity.Never); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if over, err := r.Run(context.Background(), 100*sec); over || err != nil || r.Now() != 100*sec {
		t.Errorf("over %v, %v, now %v", over, err, r.Now())
	}
}

// BenchmarkRigid is first-come at load .9 with metrics on; so many devices, and about as many pending ends.
func BenchmarkRigid(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := cluster.Machines{Classes: []planner.Class{{Name: "large", Weight: 1000, Memory: 20}}}
			for range n / 8 {
				m.Nodes = append(m.Nodes, planner.Node{Devices: make([]uint8, 8)})
			}
			jobs := newStream(n, -1)
			jobs.burst = int64(n + n/10)
			r := rigid(b, m, fcfs.Kind(), jobs, collector(b, m))
			limit := quantity.Instant(5 * time.Hour)
			run := func() {
				if _, err := r.Run(context.Background(), limit); err != nil {
					b.Fatal(err)
				}
			}
			run()
			b.ReportAllocs()
			before := r.Events()
			for b.Loop() {
				limit = limit.Add(time.Duration(float64(time.Hour) / float64(n) * 100))
				run()
			}
			b.ReportMetric(float64(r.Events()-before)/b.Elapsed().Seconds()/1e6, "Mevents/s")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(r.Events()-before), "ns/event")
		})
	}
}

// Events is how many jobs came, and how many runs began and ended.
func (r *Sim) Events() uint64 { return r.count }

// Live is how many jobs have come and are not over.
func (r *Sim) Live() int { return r.live }
