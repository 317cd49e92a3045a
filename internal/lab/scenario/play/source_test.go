package play

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/workload"
)

// listed gives jobs of a list.
type listed struct {
	jobs []workload.Job
	next int
}

// TestStreamsAreMerged: against all jobs sorted by submission, then part, then place; cut at the end, of one kind if asked,
// numbered from 0, with the names of the explicit ones.
func TestStreamsAreMerged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type tagged struct {
			workload.Job
			part int
		}
		until := quantity.Instant(rapid.Int64Range(0, 20).Draw(t, "until"))
		only := rapid.SampledFrom([]job.Kind{0, job.Rigid}).Draw(t, "only")
		o := &offered{until: until, only: only, named: map[int64]string{}}
		var want []tagged
		parts := rapid.IntRange(1, 4).Draw(t, "parts")
		for p := range parts {
			times := rapid.SliceOfN(rapid.Int64Range(0, 25), 0, 8).Draw(t, "times")
			slices.Sort(times)
			src := &listed{}
			names := &explicit{}
			for i, at := range times {
				kind := rapid.SampledFrom([]job.Kind{job.Rigid, job.Steps}).Draw(t, "kind")
				j := workload.Job{Number: int64(i), Submit: quantity.Instant(at), Kind: kind, Work: time.Duration(p*100 + i)}
				src.jobs = append(src.jobs, j)
				names.jobs = append(names.jobs, scenario.Job{Name: j.Work.String(), Job: j})
				if j.Submit <= until {
					want = append(want, tagged{j, p})
				}
			}
			x := part{of: src}
			if p == 0 {
				x.names = names
			}
			if err := x.pull(); err != nil {
				t.Fatal(err)
			}
			o.parts = append(o.parts, x)
		}
		slices.SortStableFunc(want, func(a, b tagged) int { return int(a.Submit - b.Submit) })
		n := int64(0)
		for number, w := range want {
			if only != 0 && w.Kind != only {
				continue
			}
			var got workload.Job
			more, err := o.Next(&got)
			if !more || err != nil || got.Work != w.Work || got.Number != int64(number) {
				t.Fatalf("job %d: %+v, %v, %v; want %+v", number, got, more, err, w)
			}
			if name, explicit := o.named[got.Number]; explicit != (w.part == 0) || explicit && name != w.Work.String() {
				t.Fatalf("job %d of part %d is called %q", number, w.part, name)
			}
			n++
		}
		if more, err := o.Next(new(workload.Job)); more || err != nil {
			t.Fatalf("after %d jobs there is one more, %v", n, err)
		}
	})
}

// TestWorkOfASeed: the same seed offers the same work, another one other work, and a stream keeps to its queue and its load.
func TestWorkOfASeed(t *testing.T) {
	s, err := scenario.Load("small")
	if err != nil {
		t.Fatal(err)
	}
	sum := func(seed uint64) (n int, total time.Duration, queues map[string]int) {
		o, err := offer(t.Context(), s, seed, &Traces{})
		if err != nil {
			t.Fatal(err)
		}
		queues = map[string]int{}
		for j := (workload.Job{}); ; n++ {
			more, err := o.Next(&j)
			if err != nil {
				t.Fatal(err)
			}
			if !more {
				return n, total, queues
			}
			total += j.Work * time.Duration(n+1)
			queues[j.Queue]++
		}
	}
	n, total, queues := sum(1)
	if m, again, _ := sum(1); m != n || again != total {
		t.Errorf("seed 1 gave %d jobs, then %d", n, m)
	}
	if _, other, _ := sum(2); other == total {
		t.Error("seed 2 offers the work of seed 1")
	}
	if len(queues) != 2 || queues["rigid"] < queues["batch"] || queues["batch"] == 0 {
		t.Errorf("queues %v", queues)
	}
}

// TestALookAtTheWorkCanBeStopped: who asks for it hears so, and is not told of a part as if it were the whole.
func TestALookAtTheWorkCanBeStopped(t *testing.T) {
	s, err := scenario.Load("small", strict.Set{Path: "workload.synthetic.0.jobs", Value: "100000000"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := offer(ctx, s, 1, &Traces{}); !errors.Is(err, context.Canceled) {
		t.Errorf("work without end: %v", err)
	}
	if s, err = scenario.Load("small"); err != nil {
		t.Fatal(err)
	}
	f, err := Measure(ctx, s, Mechanism{Name: SJA, Policy: fifo.Policy{}}, &Traces{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a cut off look at the gaps gives %v, %v", f, err)
	}
}

func (l *listed) Next(j *workload.Job) (bool, error) {
	if l.next == len(l.jobs) {
		return false, nil
	}
	*j = l.jobs[l.next]
	l.next++
	return true, nil
}
