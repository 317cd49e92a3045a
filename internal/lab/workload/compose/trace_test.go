package compose_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/trace"
	formats "sluice.dev/sluice/internal/lab/trace/all"
	"sluice.dev/sluice/internal/lab/workload"
	"sluice.dev/sluice/internal/lab/workload/compose"
	"sluice.dev/sluice/internal/lab/workload/synthetic"
)

// written is a trace of a format with the given text.
func written(t *testing.T, format, text string, change func(*compose.Trace)) (compose.Trace, string) {
	t.Helper()
	f, err := formats.ByName(format)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "trace"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tr := compose.Trace{Format: f, File: "trace", GPUs: 1, PerGPU: 1}
	if change != nil {
		change(&tr)
	}
	return tr, dir
}

// arrivalsOf reads all arrivals of a seed.
func arrivalsOf(t *testing.T, l *compose.Log, seed uint64) (out []workload.Arrival) {
	t.Helper()
	from := l.Arrivals(seed)
	for range 10_000 {
		var a workload.Arrival
		more, err := from.Next(&a)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return out
		}
		out = append(out, a)
	}
	t.Fatal("the arrivals do not end")
	return nil
}

func countsOf(l *compose.Log) (out []string) {
	for _, c := range (compose.Inputs{}).With(l).Counts {
		out = append(out, c.String())
	}
	return out
}

// An SWF log as people have it: nothing goes without a count, and what is asked for is taken.
const swfLog = `; Version: 2.2
1 100 0 60 2 -1 1048576 2 600 -1 1 7 2 -1 5 1 -1 -1
2 40 0 30 1 -1 -1 1 -1 -1 1 7 2 -1 5 1 -1 -1
3 110 0 -1 1 -1 -1 1 90 -1 0 7 2 -1 5 1 -1 -1
4 120 -0.0 0 1 -1 -1 1 -1 -1 5 7 2 -1 5 1 -1 -1
5 130 0 -7 1 -1 -1 1 -1 -1 5 7 2 -1 5 1 -1 -1
6 140 0 20 0 -1 -1 0 -1 -1 5 7 2 -1 5 1 -1 -1
7 -1 0 20 1 -1 -1 1 -1 -1 5 7 2 -1 5 1 -1 -1
8 150 0 90 -1 -1 -1 -1 30 -1 1 7 2 -1 -1 1 -1 -1 extra
`

func TestJobsOfALog(t *testing.T) {
	tr, dir := written(t, "swf", swfLog, func(tr *compose.Trace) { tr.Walltimes, tr.FromFile, tr.PerGPU = true, true, 2 })
	l, err := tr.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []workload.Arrival{
		{Key: 0, Duration: 30 * time.Second, GPUs: 1, Queue: "5"},
		{Key: 1, Submit: quantity.Instant(60 * time.Second), Duration: time.Minute, GPUs: 1, Queue: "5", Walltime: 10 * time.Minute,
			Memory: 2 << 30},
		{Key: 2, Submit: quantity.Instant(110 * time.Second), Duration: 90 * time.Second, GPUs: 1, Queue: "2", Walltime: 30 * time.Second},
	}
	for _, seed := range []uint64{0, 5} {
		if got := arrivalsOf(t, l, seed); !slices.Equal(got, want) {
			t.Errorf("seed %d:\n%+v, want\n%+v", seed, got, want)
		}
	}
	counts := []string{
		"8 trace (swf): records", "1 negative zero: taken as 0 (first in line 5)",
		"1 negative run time: taken as unknown (first in line 6)",
		"1 more than 18 fields: the rest left out (first in line 9)", "2 without memory: the program's",
		"1 out of the order of submission: put in order", "2 without a run time: left out", "1 with a run time of 0: left out",
		"1 without a GPU: left out", "1 without a time of submission: left out", "1 without a number of GPUs: taken as 1",
		"1 ran longer than requested: a rigid one's walltime is its run time",
	}
	if got := countsOf(l); !slices.Equal(got, counts) {
		t.Errorf("%q, want\n%q", got, counts)
	}
}

// What has no run time runs as the scenario says.
func TestRunTimes(t *testing.T) {
	times := func(r compose.RunTime) (out []time.Duration) {
		tr, dir := written(t, "swf", swfLog, func(tr *compose.Trace) { tr.RunTime = r })
		l, err := tr.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range arrivalsOf(t, l, 3) {
			out = append(out, a.Duration/time.Second)
		}
		return out
	}
	if got := times(compose.RunTime{Requested: true}); !slices.Equal(got, []time.Duration{30, 60, 90, 90}) {
		t.Errorf("as requested: %v", got)
	}
	if got := times(compose.RunTime{Drawn: synthetic.Fixed(7 * time.Second)}); !slices.Equal(got, []time.Duration{30, 60, 7, 7, 7, 90}) {
		t.Errorf("drawn: %v", got)
	}
}

// Durations that are drawn differ from seed to seed; the rest of the log does not.
func TestDrawnRunTimes(t *testing.T) {
	tr, dir := written(t, "swf", swfLog, func(tr *compose.Trace) {
		tr.RunTime = compose.RunTime{Drawn: synthetic.LogNormal{Median: time.Hour, Sigma: 1}}
	})
	l, err := tr.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	one, two := arrivalsOf(t, l, 1), arrivalsOf(t, l, 2)
	if !slices.Equal(one, arrivalsOf(t, l, 1)) {
		t.Error("a seed gives two logs")
	}
	for i := range one {
		if same := one[i].Duration == two[i].Duration; same != (i < 2 || i == 5) || one[i].Submit != two[i].Submit {
			t.Errorf("job %d: %+v and %+v", i, one[i], two[i])
		}
	}
}

func TestRequests(t *testing.T) {
	tr, dir := written(t, "azure", `TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.5,1000,50
2023-11-16 18:15:48.5,0,0
2023-11-16 18:15:49.0,200,1
`, func(tr *compose.Trace) {
		tr.RunTime = compose.RunTime{Prompt: time.Millisecond, Output: 100 * time.Millisecond}
	})
	l, err := tr.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []workload.Arrival{
		{Duration: 6 * time.Second, GPUs: 1, Queue: "default"},
		{Key: 1, Submit: quantity.Instant(2500 * time.Millisecond), Duration: 300 * time.Millisecond, GPUs: 1, Queue: "default"},
	}
	if got := arrivalsOf(t, l, 1); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if got := countsOf(l); len(got) != 3 || got[2] != "1 without a run time: left out" {
		t.Errorf("%q", got)
	}
}

// States give the jobs by which the numbers grow: here 3 small ones with 5 GPUs, then a large one with 16 while a small one
// ends; what is there at first is not offered.
func TestStates(t *testing.T) {
	tr, dir := written(t, "helios",
		`time,total_job_num,running_job_num,pending_job_num,total_gpujob_num,running_gpujob_num,pending_gpujob_num,total_gpu_num,running_gpu_num,pending_gpu_num,idle_gpu_num,gpu_utilization,running_gpu_num_noless_8,running_gpu_num_less_8,pending_gpu_num_noless_8,pending_gpu_num_less_8,total_gpu_num_noless_8,total_gpu_num_less_8,running_job_num_noless_8,running_job_num_less_8,pending_job_num_noless_8,pending_job_num_less_8,total_job_num_noless_8,total_job_num_less_8
2020-05-01 00:00:00,2,2,0,2,2,0,40,9,0,31,0.2,8,1,0,0,8,1,1,1,0,0,1,1
2020-05-01 00:01:00,5,3,2,5,3,2,40,10,4,30,0.2,8,2,0,4,8,6,1,2,0,2,1,4
2020-05-01 00:02:00,5,3,2,5,3,2,40,25,4,15,0.2,24,1,0,4,24,5,2,1,0,2,2,3
`, func(tr *compose.Trace) { tr.RunTime = compose.RunTime{Drawn: synthetic.Fixed(time.Hour)} })
	l, err := tr.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, a := range arrivalsOf(t, l, 1) {
		got = append(got, a.GPUs)
		if want := quantity.Instant(len(got)/4) * quantity.Instant(time.Minute); a.Submit != want || a.Queue != "trace" ||
			a.Duration != time.Hour {
			t.Errorf("job %d: %+v", len(got), a)
		}
	}
	if !slices.Equal(got, []int{1, 2, 2, 16}) {
		t.Errorf("GPUs %v, want 1, 2, 2 and 16", got)
	}
	if counts := countsOf(l); !slices.Equal(counts, []string{"3 trace (helios): records", "2 jobs there in the first state: left out",
		"4 jobs by which the states grew", "4 without a run time: drawn"}) {
		t.Errorf("%q", counts)
	}
}

// A log of which nothing is left says why; memory in bytes is not taken for KiB.
func TestLogsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		says string
	}{
		"nothing left": {"1 0 0 -1 1 -1 -1 1 -1 -1 1 7 2 -1 5 1 -1 -1\n", "1 without a run time: left out"},
		"memory in bytes": {"1 0 0 9 1 -1 1048576 1 -1 -1 1 7 2 -1 5 1 -1 -1\n2 0 0 9 1 -1 8589934592 1 -1 -1 1 7 2 -1 5 1 -1 -1\n",
			"trace:2: 1 values of memory can only be bytes"},
	} {
		tr, dir := written(t, "swf", c.text, func(tr *compose.Trace) { tr.FromFile = true })
		if _, err := tr.Read(dir); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tr, dir := written(t, "swf", swfLog, nil)
	tr.File = "other"
	if _, err := tr.Read(dir); errkind.Of(err) != errkind.NotFound || !strings.Contains(err.Error(), filepath.Join(dir, "other")) {
		t.Errorf("%v", err)
	}
}

// Jobs of a log keep what it says of them: a rigid one its walltime, every one its memory; what is cut is planned by steps.
func TestLogComposed(t *testing.T) {
	tr, dir := written(t, "swf", swfLog, func(tr *compose.Trace) { tr.Walltimes, tr.Memory = true, 3<<30 })
	l, err := tr.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	in := compose.Modelled().With(l)
	for _, share := range []float64{0, 1} {
		jobs, sum := all(t, in, compose.Options{Classes: classes(), Seed: 4, Multi: compose.Split, Atomizable: share})
		if len(jobs) != 4 || sum.Jobs != 4 {
			t.Fatalf("%d jobs, %+v", len(jobs), sum)
		}
		for i, want := range []time.Duration{30 * time.Second, 10 * time.Minute, 10 * time.Minute, 90 * time.Second} {
			j := &jobs[i]
			peak := slices.MaxFunc(j.Memory.Phases, func(a, b trp.Phase) int { return int(a.Mean - b.Mean) }).Mean
			if share == 1 {
				want = j.Work
			}
			if j.Declared != want || peak < 3<<30-1000 || peak > 3<<30 {
				t.Errorf("share %v, job %d: declared %v, want %v; peak %d", share, i, j.Declared, want, peak)
			}
		}
	}
	if about := compose.Assumptions(in, compose.Options{}); !strings.HasPrefix(about[0],
		"Arrivals are those of trace (jobs in the Standard") || !strings.Contains(about[1], "every job has a peak of 3072 MiB") {
		t.Errorf("%q", about[:2])
	}
}

// TestResampled: stretches for every seed but 0, without end.
func TestResampled(t *testing.T) {
	tr, dir := written(t, "swf", swfLog, func(tr *compose.Trace) { tr.Resample = true })
	l, err := tr.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	in := compose.Modelled().With(l)
	if !in.Ends(0) || in.Ends(1) {
		t.Errorf("seed 0 ends: %v, seed 1 ends: %v", in.Ends(0), in.Ends(1))
	}
	var a workload.Arrival
	from := l.Arrivals(1)
	for i := range 2000 {
		if more, err := from.Next(&a); !more || err != nil {
			t.Fatalf("ends after %d: %v", i, err)
		}
	}
}

func TestWhichFormatsHoldArrivals(t *testing.T) {
	var names []string
	for _, f := range formats.Formats() {
		if compose.HoldsArrivals(f) {
			names = append(names, f.Name)
		}
	}
	if want := []string{"philly", "swf", "swf-bytes", "openb", "azure", "mooncake", "helios", "genai", "batsim"}; !slices.Equal(names,
		want) {
		t.Errorf("%v, want %v", names, want)
	}
	if compose.HoldsArrivals(trace.Format{}) {
		t.Error("a format without records holds arrivals")
	}
}
