package swf

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/edge/trace"
	"sluice.dev/sluice/internal/edge/trace/tracetest"
)

var suite = tracetest.Suite{
	Format: Format(),
	File:   "log.swf",
	Sample: `; Version: 2.2
;MaxProcs:240
; Note:  has: colons
; Empty:
;
; a sentence, it has: a colon
    1   0  10  31  30 31.5  2048  30  40  -1  1   7   2  -1 5  1 -1 -1
2 5 -1 7 -1 -1 -1 16 -1 1025 0 -1 3 -1 -1 -1 1 60
 	
	3	9	0	1	1	-1	-1	1	9	-1	-1	-1	-1	-1	-1	-1	-1	-1
`,
	Want: []trace.Record{
		{Kind: trace.Header, Line: 1, At: trace.Unknown, Header: trace.HeaderRecord{Key: "Version", Value: "2.2"}},
		{Kind: trace.Header, Line: 2, At: trace.Unknown, Header: trace.HeaderRecord{Key: "MaxProcs", Value: "240"}},
		{Kind: trace.Header, Line: 3, At: trace.Unknown, Header: trace.HeaderRecord{Key: "Note", Value: "has: colons"}},
		{Kind: trace.Header, Line: 4, At: trace.Unknown, Header: trace.HeaderRecord{Key: "Empty"}},
		{Kind: trace.Job, Line: 7, Job: trace.JobRecord{
			ID: "1", Queue: "5", User: "7", Start: 10 * time.Second, Duration: 31 * time.Second, Requested: 40 * time.Second,
			GPUs: 30, Milli: 1000, CPU: trace.Unknown, Memory: 60, Status: "1",
		}},
		{Kind: trace.Job, Line: 8, At: 5 * time.Second, Job: trace.JobRecord{
			ID: "2", Queue: "3", Start: trace.Unknown, Duration: 7 * time.Second, Requested: trace.Unknown,
			GPUs: 16, Milli: 1000, CPU: trace.Unknown, Memory: 17, Status: "0",
		}},
		{Kind: trace.Job, Line: 10, At: 9 * time.Second, Job: trace.JobRecord{
			ID: "3", Start: 9 * time.Second, Duration: time.Second, Requested: 9 * time.Second,
			GPUs: 1, Milli: 1000, CPU: trace.Unknown, Memory: trace.Unknown,
		}},
	},
	Broken: []tracetest.Broken{
		{Name: "wrong number", Old: "31.5", New: "31,5", Says: `average CPU time is "31,5"`},
		{Name: "another negative", Old: "1025", New: "-2", Says: `requested memory is "-2"`},
		{Name: "job without a number", Old: "2 5 -1", New: "-1 5 -1", Says: "job number"},
		{Name: "missing field", Old: " 60\n", New: "\n", Place: "8:47", Says: "the line has 17 fields, expected 18"},
		{Name: "surplus field", Old: " 60\n", New: " 60 x\n", Place: "8:51", Says: "the line has 19 fields, expected 18"},
		{Name: "control character", Old: "240", New: "2\x1b0", Says: "control characters"},
	},
}

func TestConforms(t *testing.T) { tracetest.Run(t, suite) }
func FuzzSwf(f *testing.F)      { tracetest.Fuzz(f, suite) }
func BenchmarkSwf(b *testing.B) { tracetest.Bench(b, suite) }

func TestPublishedLogs(t *testing.T) {
	for name, want := range map[string]struct {
		jobs, requested, neverRan int
		processors                string
	}{"hpc2n": {3170, 3170, 25, "240"}, "lublin_256": {10000, 0, 0, "256"}} {
		jobs, requested, neverRan, headers := 0, 0, 0, map[string]string{}
		tracetest.Each(t, Format(), "swf/"+name+".swf.gz", func(r *trace.Record) {
			if r.Kind == trace.Header {
				headers[r.Header.Key] = r.Header.Value
				return
			}
			jobs++
			if r.Job.Requested != trace.Unknown {
				requested++
			}
			if r.Job.Duration == trace.Unknown {
				neverRan++
			}
			if r.Job.GPUs < 1 || r.At < 0 {
				t.Fatalf("line %d: %+v", r.Line, r.Job)
			}
		})
		if jobs != want.jobs || requested != want.requested || neverRan != want.neverRan || headers["MaxNodes"] != want.processors {
			t.Errorf("%s: %d jobs, %d with a requested time, %d that never ran, headers %v", name, jobs, requested, neverRan, headers)
		}
	}
}
