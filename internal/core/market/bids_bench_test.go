package market

import (
	"fmt"
	"math"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/trp"
)

// BenchmarkVerify is what the scheduler does to one variant that somebody declares: all of it is verified again, its score
// calibrated by its job's record and put together with the system's. 1,000 jobs differ in profile, progress and trust; their
// four variants each were proposed for a window of their own.
func BenchmarkVerify(b *testing.B) {
	c := Config{}.WithDefaults()
	f := NewFloor(FloorConfig{Policy: fifo.Policy{}, Market: &c, Horizon: time.Hour, MinWindow: time.Second, Retry: time.Second},
		&fakeSale{})
	const jobs = 1000
	now := quantity.Instant(1e15)
	end := now.Add(40 * time.Minute)
	o := &offer{slice: &Slice{Supply: &fakeSlice{}, class: &Class{Capacity: trp.Vector{20 << 30}, Speed: 1000}}, full: true}
	w := &window{id: 1, start: now, end: end}
	type proposed struct {
		j *Job
		v protocol.Variant
	}
	var list []proposed
	for i := range jobs {
		d := &fakeJob{spec: benchSpec(b, i), submitted: now.Add(-time.Duration(i) * time.Minute)}
		d.committed = job.Ranges{{From: 0, To: int64(i%20) * 100}}
		if i%20 == 0 {
			d.committed = nil
		}
		d.learned.Trust = protocol.Trust{Error: int64(i%7) * 50_000, History: 400_000, Seen: 10}
		j := &Job{Demand: d}
		v := j.View()
		for _, p := range atomizer.Propose(&v, f.Window(j, o.slice.class, now, end), 4, now, nil) {
			p.Window = 1
			list = append(list, proposed{j, p})
		}
	}
	if len(list) < 2*jobs {
		b.Fatalf("only %d variants of %d jobs", len(list), jobs)
	}
	refused := 0
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; {
		f.bids = f.bids[:0]
		from := 0
		for i := range list {
			if i > 0 && list[i].j != list[i-1].j {
				from = len(f.bids)
			}
			if why := f.enter(now, 0, list[i].j, o, w, &list[i].v, nil, from, false); why != "" {
				refused++
			}
			if n++; n == b.N {
				break
			}
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mvariants/s")
	if refused > 0 {
		b.Fatalf("%d variants were refused", refused)
	}
}

// BenchmarkAnswers is the answer of every waiting job to a window, with its reason.
func BenchmarkAnswers(b *testing.B) {
	benchmarkIndex(b, func(f *Floor, now quantity.Instant, c *Class, w *window) bool {
		return f.answersTo(now, c, w, len(f.jobs)).interested > 0
	})
}

// BenchmarkWinner is the job that is asked first, found through the index.
func BenchmarkWinner(b *testing.B) {
	benchmarkIndex(b, func(f *Floor, now quantity.Instant, c *Class, w *window) bool {
		pick := f.pick.none()
		f.best(now, c, w, nil, pick)
		return pick.job != nil
	})
}

func benchmarkIndex(b *testing.B, ask func(*Floor, quantity.Instant, *Class, *window) bool) {
	for _, p := range all.Policies() {
		for _, n := range []int{1000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/waiting=%d", p.Name(), n), func(b *testing.B) {
				if n > 10_000 && testing.Short() {
					b.Skip("it takes long to set up; run it without -short")
				}
				f := NewFloor(FloorConfig{Policy: p, Horizon: time.Hour, MinWindow: time.Second, Retry: time.Second}, &fakeSale{})
				now, answered := quantity.Instant(1e15), 0
				for class := range 5 {
					f.Place(&Slice{Supply: &fakeSlice{name: job.SliceID(fmt.Sprint("s", class))}},
						&protocol.Slice{Capacity: trp.Vector{quantity.Amount((5 + class) << 30)}, Speed: 1000})
				}
				for i := range n {
					d := &fakeJob{spec: benchSpec(b, i), submitted: quantity.Instant(i)}
					d.spec.Queue = fmt.Sprint("q", i%5)
					j := &Job{Demand: d}
					f.Activate(j)
					f.Changed(j)
				}
				f.refreshIndex(now)
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					i++
					if ask(f, now, f.classes[i%5], &window{start: now, end: now.Add(time.Duration(60+i%17*30) * time.Second)}) {
						answered++
					}
				}
				if answered == 0 {
					b.Fatal("nobody is interested")
				}
			})
		}
	}
}

// TestPriorityCounts: a hundred points of priority double what a bid weighs, and between the hundreds it grows evenly.
func TestPriorityCounts(t *testing.T) {
	c := Config{}.WithDefaults()
	f := NewFloor(FloorConfig{Policy: fifo.Policy{}, Market: &c, Horizon: time.Hour, MinWindow: time.Second, Retry: time.Second},
		&fakeSale{})
	now := quantity.Instant(1e15)
	o, w := &offer{slice: &Slice{Supply: &fakeSlice{}, class: &Class{Capacity: trp.Vector{20 << 30}, Speed: 1000}}, full: true},
		&window{id: 1, start: now, end: now.Add(40 * time.Minute)}
	for _, priority := range []int32{-1000, -500, -250, -100, -1, 0, 1, 50, 100, 101, 499, 500, 10_000} {
		d := &fakeJob{spec: benchSpec(t, 1), submitted: now.Add(-time.Hour)}
		d.spec.Priority = priority
		f.bids = f.bids[:0]
		f.propose(now, 0, &Job{Demand: d}, o, w, false)
		if len(f.bids) == 0 {
			t.Fatal("nothing is bid")
		}
		for i := range f.bids {
			b := &f.bids[i]
			points := max(-mostPrecedence, min(mostPrecedence, float64(priority)))
			hundreds := math.Floor(points / 100)
			want := math.Exp2(hundreds) * (1 + points/100 - hundreds) * float64(score.Weight(b.total, b.length(w.end), c.PerTime))
			if got := float64(b.weight); math.Abs(got-want) > want/50+2 {
				t.Errorf("at priority %d a bid weighs %v, want %v", priority, got, want)
			}
		}
	}
}

func benchSpec(tb interface{ Fatal(...any) }, i int) *job.Spec {
	s := &job.Spec{
		Name: job.ID(fmt.Sprintf("j%05d", i)), Queue: "q", Kind: job.Steps, Total: int64(5000 + i%50*100), PerUnit: time.Second, Grid: 10,
		Parallelism: 1,
		Restore:     time.Second, Checkpoint: time.Second, TauMin: 20 * time.Second, Deadline: quantity.Never, Worth: job.DefaultWorth,
		Theta: 10_000,
	}
	if i%3 == 0 {
		s.Deadline = quantity.Instant(1e15).Add(time.Duration(i) * time.Minute)
	}
	s.Profile.Form = trp.Phases
	for p := range int64(5) {
		s.Profile.Phases = append(s.Profile.Phases, trp.Phase{UpTo: s.Total * (p + 1) / 5, Mean: quantity.Amount(4+(int64(i)+p)%5) << 30,
			SD: 200 << 20})
	}
	var err error
	if s.Safe, err = trp.Compile(s.Profile, s.Total, s.Theta); err != nil {
		tb.Fatal(err)
	}
	return s
}
