package compose

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/miso"
	"sluice.dev/sluice/internal/lab/trace/tracetest"
	"sluice.dev/sluice/internal/lab/workload"
)

// Phases rise to the job's units, reach the peak in exactly one phase, and keep to their shares.
func TestPhases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := workload.Shape{Warm: rapid.Int64Range(0, 600).Draw(t, "warm"), Steady: rapid.Int64Range(600, 999).Draw(t, "steady"),
			WarmShare: rapid.Int64Range(0, 500).Draw(t, "warm share"), BurstShare: rapid.Int64Range(0, 500).Draw(t, "burst share")}
		units := rapid.Int64Range(1, 10_000).Draw(t, "units")
		const peak = quantity.Amount(8_000_000_000)
		list := phases(&shape, units, peak, .02, rapid.Float64Range(0, .999999).Draw(t, "u"))
		last, bursts := int64(0), 0
		for i, p := range list {
			if p.UpTo <= last {
				t.Fatalf("%v", list)
			}
			long := p.UpTo - last
			last = p.UpTo
			switch p.Mean {
			case peak:
				bursts++
				if want := max(1, (units*shape.BurstShare+500)/1000); long != want {
					t.Fatalf("the burst has %d units, want %d", long, want)
				}
			case peak / 1000 * quantity.Amount(shape.Warm):
				if i != 0 && shape.Warm != shape.Steady {
					t.Fatalf("warms up in phase %d", i)
				}
			case peak / 1000 * quantity.Amount(shape.Steady):
			default:
				t.Fatalf("a phase of %d", p.Mean)
			}
		}
		if last != units || bursts != 1 || len(list) > 4 {
			t.Fatalf("%d units: %v", units, list)
		}
	})
}

// Stretches of a log are whole stretches of it: within a block each job is the log's next, with its gap.
func TestStretches(t *testing.T) {
	log := make([]entry, 1300)
	for i := range log {
		log[i] = entry{gap: time.Duration(i%7) * time.Second, duration: time.Duration(i + 1), gpus: 1}
	}
	var a workload.Arrival
	whole := &stretches{log: log}
	n := 0
	for ; ; n++ {
		if ok, _ := whole.Next(&a); !ok {
			break
		}
		if a.Key != uint64(n) || a.Duration != log[n].duration {
			t.Fatalf("job %d of the log as published is %+v", n, a)
		}
	}
	if n != len(log) {
		t.Errorf("the log as published has %d jobs, want %d", n, len(log))
	}
	drawn := &stretches{log: log, seed: 9}
	begins := map[time.Duration]bool{}
	var last workload.Arrival
	for i := range 20 * blockJobs {
		if ok, err := drawn.Next(&a); !ok || err != nil {
			t.Fatalf("ends after %d jobs, %v", i, err)
		}
		if i%blockJobs == 0 {
			begins[a.Duration] = true
		} else if want := last.Duration%1300 + 1; a.Duration != want || time.Duration(a.Submit-last.Submit) != log[a.Duration-1].gap {
			t.Fatalf("job %d of a stretch is the log's %d, %d after the last", i, a.Duration, a.Submit-last.Submit)
		}
		last = a
	}
	if len(begins) < 15 {
		t.Errorf("20 stretches begin at %d places", len(begins))
	}
}

// A shape says where its series lay.
func TestShapeOf(t *testing.T) {
	values := make([]float64, 200)
	for i := range values {
		values[i] = 60
		if i < 40 {
			values[i] = 20
		} else if i >= 190 {
			values[i] = 100
		}
	}
	got, ok := shapeOf(values)
	if want := (workload.Shape{Warm: 200, Steady: 600, WarmShare: 200, BurstShare: 50}); !ok || got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if _, ok := shapeOf(make([]float64, 200)); ok {
		t.Error("a series without memory has a shape")
	}
}

func TestTracesThatAreNotThere(t *testing.T) {
	_, err := Published(t.TempDir())
	if errkind.Of(err) != errkind.NotFound || !strings.Contains(err.Error(), "philly_sep-oct") ||
		!strings.Contains(err.Error(), "miso_mig_iter_summary") || !strings.Contains(err.Error(), "pod_gpu_memory") {
		t.Errorf("%v", err)
	}
}

// What comes out of the published traces has their published facts.
func TestPublished(t *testing.T) {
	tracetest.Data(t, MISOFile)
	tracetest.Data(t, GenAIFile)
	dir := strings.TrimSuffix(tracetest.Data(t, PhillyFile), filepath.FromSlash(PhillyFile))
	in, err := Published(dir)
	if err != nil {
		t.Fatal(err)
	}

	// A program fits exactly the slices on which it ran, by the peak that 99 of 100 runs stay below.
	ran := map[string][8]bool{}
	err = trace.Each(miso.Format(), filepath.Join(dir, filepath.FromSlash(MISOFile)), func(r *trace.Record) error {
		name := programName(r.Measurement.Program, r.Measurement.Batch)
		compute, _, _ := usable(r.Measurement.Profile)
		on := ran[name]
		on[compute] = true
		ran[name] = on
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range in.Programs {
		for _, profile := range []string{"1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"} {
			compute, memory, _ := usable(profile)
			peak := phases(&workload.Shape{BurstShare: 1000}, 1, p.Peak, .02, 0)[0]
			fits := peak.Mean+quantity.Amount(often*float64(peak.SD)) <= memory
			if fits != ran[p.Name][compute] {
				t.Errorf("%s with a peak of %d MiB: fits %s: %t, ran there: %t", p.Name, p.Peak>>20, profile, fits, ran[p.Name][compute])
			}
			if p.Speeds[compute] <= 0 {
				t.Errorf("%s has no speed on %s", p.Name, profile)
			}
		}
	}

	// Lifetime mean over peak of the pods: .48, .63 and .94 at 5, 50 and 95% of those of the whole day; .48, .61 and .76 of those
	// with 100 samples in the first 60% of it, which is what the file has. Ours is of three levels.
	var means []float64
	for _, s := range in.Shapes {
		steady := 1000 - s.WarmShare - s.BurstShare
		means = append(means, float64(s.WarmShare*s.Warm+steady*s.Steady+s.BurstShare*1000)/1e6)
	}
	slices.Sort(means)
	for _, q := range []struct{ p, want, near float64 }{{.05, .48, .03}, {.5, .61, .03}, {.95, .76, .03}} {
		if got := means[int(q.p*float64(len(means)))]; got < q.want-q.near || got > q.want+q.near {
			t.Errorf("mean over peak at %.2f of the pods is %.3f, want %.2f", q.p, got, q.want)
		}
	}

	// The log from its dense start on holds nearly all of its 52,849 jobs.
	log := in.Arrivals(0)
	var a workload.Arrival
	n, single := 0, 0
	for {
		ok, err := log.Next(&a)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		n++
		if a.GPUs == 1 {
			single++
		}
	}
	if n < 52_700 || n > 52_849 || float64(single)/float64(n) < .949 || float64(single)/float64(n) > .951 {
		t.Errorf("%d jobs, %d with one GPU", n, single)
	}
}
