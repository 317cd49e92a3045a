package philly

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/tracetest"
)

var suite = tracetest.Suite{
	Format: Format(),
	File:   "jobs.csv",
	Sample: `timestamp,duration,num_gpus,gpu_time,cluster
1970-01-02 00:00:01,60.5,4,242.0,aaa
2017-02-28 23:59:59,7,1,7,bbb
`,
	Want: []trace.Record{
		{Kind: trace.Job, Line: 2, At: 24*time.Hour + time.Second, Job: philly("aaa", 60500*time.Millisecond, 4)},
		{Kind: trace.Job, Line: 3, At: time.Duration(time.Date(2017, 2, 28, 23, 59, 59, 0, time.UTC).UnixNano()),
			Job: philly("bbb", 7*time.Second, 1)},
	},
	Broken: []tracetest.Broken{
		{Name: "wrong number", Old: "60.5,", New: "60,5,", Place: "2:34", Says: "the line has 6 fields, expected 5"},
		{Name: "no number", Old: "60.5", New: "6o.5", Says: `duration is "6o.5", expected seconds`},
		{Name: "negative", Old: "60.5", New: "-1", Says: `duration is "-1"`},
		{Name: "no such day", Old: "2017-02-28", New: "2017-02-29", Says: `timestamp is "2017-02-29 23:59:59"`},
		{Name: "missing column", Old: "timestamp,duration,", New: "timestamp,", Place: "1:1", Says: "the header lacks duration"},
		{Name: "unknown column", Old: "gpu_time,cluster", New: "gpu_time,cluster,x", Place: "1:46",
			Says: `column "x" is not part of this format`},
		{Name: "double column", Old: "gpu_time,cluster", New: "gpu_time,cluster,cluster", Place: "1:46",
			Says: `column "cluster" is there twice`},
		{Name: "short line", Old: ",bbb", New: "", Says: "the line has 4 fields, expected 5"},
		{Name: "wrong product", Old: "242.0", New: "243.0", Says: "duration times num_gpus"},
		{Name: "no queue", Old: "bbb", New: "", Says: `cluster is "", expected a text`},
	},
}

func philly(queue string, ran time.Duration, gpus int64) trace.JobRecord {
	j := trace.UnknownJob()
	j.Queue, j.Duration, j.GPUs, j.Milli = queue, ran, gpus, 1000
	return j
}

func TestConforms(t *testing.T)    { tracetest.Run(t, suite) }
func FuzzPhilly(f *testing.F)      { tracetest.Fuzz(f, suite) }
func BenchmarkPhilly(b *testing.B) { tracetest.Bench(b, suite) }

// The published facts of the slice: 52,849 jobs, 95.0% of them on one GPU, median 1,486 s, mean gap 94 s.
func TestPublishedJobs(t *testing.T) {
	one, half := 0, 0
	var first, last time.Duration
	n := tracetest.Each(t, Format(), "philly/philly_sep-oct.csv.gz", func(r *trace.Record) {
		if first == 0 {
			first = r.At
		}
		if r.At < last {
			t.Fatalf("line %d is earlier than the one before", r.Line)
		}
		last = r.At
		if r.Job.GPUs == 1 {
			one++
		}
		if r.Job.Duration <= 1486*time.Second {
			half++
		}
	})
	if n != 52849 {
		t.Errorf("%d jobs", n)
	}
	if share := 1000 * one / n; share < 949 || share > 951 {
		t.Errorf("%d of 1000 jobs have one GPU", share)
	}
	if share := 1000 * half / n; share < 499 || share > 501 {
		t.Errorf("%d of 1000 jobs ran up to 1486 s", share)
	}
	if gap := (last - first) / time.Duration(n-1); gap.Round(time.Second) != 94*time.Second {
		t.Errorf("the mean gap is %v", gap)
	}
}
