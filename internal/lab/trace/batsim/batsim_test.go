package batsim

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/tracetest"
)

var suite = tracetest.Suite{
	Format: Format(),
	File:   "out_jobs.csv",
	Sample: `job_id,hacky_job_id,workload_name,submission_time,requested_number_of_resources,requested_time,success,starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,consumed_energy,allocated_resources
0,0,w,0.000000,1,150.000000,1,0.000000,88.500000,88.500000,-0.000000,88.500000,1.000000,10.500000,0
1,10,w,4.700001,3,400.000000,0,5.000002,265.800001,270.800004,0.300001,266.100002,1.001129,20.000000,1-2 5
`,
	Want: []trace.Record{
		{Kind: trace.Job, Line: 2, Job: trace.JobRecord{
			ID: "0", Queue: "w", Duration: 88500 * time.Millisecond, Requested: 150 * time.Second,
			GPUs: 1, Milli: 1000, CPU: trace.Unknown, Memory: trace.Unknown, Status: "1",
		}},
		{Kind: trace.Job, Line: 3, At: 4700001 * time.Microsecond, Job: trace.JobRecord{
			ID: "1", Queue: "w", Duration: 265800001 * time.Microsecond, Requested: 400 * time.Second, Start: 5000002 * time.Microsecond,
			GPUs: 3, Milli: 1000, CPU: trace.Unknown, Memory: trace.Unknown, Status: "0",
		}},
	},
	Broken: []tracetest.Broken{
		{Name: "wrong number", Old: "4.700001", New: "4,700001", Place: "3:102", Says: "the line has 16 fields"},
		{Name: "no number", Old: "265.800001", New: "265.8e0", Says: "execution_time"},
		{Name: "missing column", Old: ",starting_time", New: "", Place: "1:1",
			Says: "the header lacks starting_time; expected that of Batsim's PREFIX_jobs.csv"},
		{Name: "started early", Old: "5.000002", New: "4.600002", Says: "not before submission_time"},
		{Name: "wrong end", Old: "270.800004", New: "270.800006", Says: "starting_time and execution_time together"},
		{Name: "unused number", Old: "1.001129", New: "nan", Says: "stretch"},
	},
}

func TestConforms(t *testing.T)    { tracetest.Run(t, suite) }
func FuzzBatsim(f *testing.F)      { tracetest.Fuzz(f, suite) }
func BenchmarkBatsim(b *testing.B) { tracetest.Bench(b, suite) }

// The published facts: 801 jobs, mean wait 9.52 s under EASY and 9.85 s under conservative backfilling, and no more than
// 32 hosts at any time.
func TestPublishedRuns(t *testing.T) {
	for name, want := range map[string]time.Duration{"easy": 9520 * time.Millisecond, "conservative": 9850 * time.Millisecond} {
		var wait, busy, last time.Duration
		n := tracetest.Each(t, Format(), "backfill_ref/medium_late_"+name+"_out_jobs.csv.gz", func(r *trace.Record) {
			wait += r.Job.Start - r.At
			busy += r.Job.Duration * time.Duration(r.Job.GPUs)
			last = max(last, r.Job.Start+r.Job.Duration)
		})
		if mean := wait / time.Duration(n); n != 801 || mean.Round(10*time.Millisecond) != want {
			t.Errorf("%s: %d jobs wait %v on average", name, n, mean)
		}
		if use := 1000 * busy / (32 * last); use != 497 && use != 498 {
			t.Errorf("%s: %d of 1000 in use until %v", name, use, last)
		}
	}
}
