package swf

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/tracetest"
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
		{Name: "negative submission", Old: "2 5 -1", New: "2 -5 -1", Place: "8:3", Says: `submit time is "-5"`},
		{Name: "no number behind the sign", Old: "1025", New: "-x", Place: "8:26", Says: `requested memory is "x"`},
		{Name: "more memory than a machine can have", Old: "1025", New: "2199023255553", Says: "memory and processors"},
		{Name: "job without a number", Old: "2 5 -1", New: "-1 5 -1", Says: "job number"},
		{Name: "missing field", Old: " 60\n", New: "\n", Place: "8:47", Says: "the line has 17 fields, expected 18"},
		{Name: "control character", Old: "240", New: "2\x1b0", Says: "control characters"},
	},
}

func TestConforms(t *testing.T) { tracetest.Run(t, suite) }
func FuzzSwf(f *testing.F)      { tracetest.Fuzz(f, suite) }
func BenchmarkSwf(b *testing.B) { tracetest.Bench(b, suite) }

// TestTreatments is SWF as people have it: each departure is taken as its name says, and counted.
func TestTreatments(t *testing.T) {
	const head = "; Version: 2.2\n"
	for name, c := range map[string]struct {
		line string
		want func(j *trace.JobRecord)
		says []string
	}{
		"nothing":      {"1 0 2 30 4 -1 2048 -1 60 -1 1 7 2 -1 5 1 -1 -1", func(*trace.JobRecord) {}, nil},
		"extra fields": {"1 0 2 30 4 -1 2048 -1 60 -1 1 7 2 -1 5 1 -1 -1 17 x", func(*trace.JobRecord) {}, []string{surplusFields}},
		"negative zeros": {"1 -0.0 2 30 4 -0 2048 -1 60 -1 1 7 2 -1 5 1 -1 -0.00", func(*trace.JobRecord) {},
			[]string{negativeZero, negativeZero, negativeZero}},
		"ran backwards": {"1 0 2 -19 4 -1 2048 -1 60 -1 1 7 2 -1 5 1 -1 -1", func(j *trace.JobRecord) { j.Duration = trace.Unknown },
			[]string{"negative run time: taken as unknown"}},
		"began before": {"1 0 -7.5 30 4 -1 2048 -1 60 -1 1 7 2 -1 5 1 -1 -1", func(j *trace.JobRecord) { j.Start = trace.Unknown },
			[]string{"negative wait time: taken as unknown"}},
		"floating unknown": {"1 0 2 30 4 -1.0 2048 -1.00 60 -1.0 1 7 2 -1 5 1 -1 -1", func(*trace.JobRecord) {},
			[]string{writtenUnknown, writtenUnknown, writtenUnknown}},
		"floating counts": {"1 0 2.0 30.0 4.0 -1 2048.0 -1 60 -1 1.0 7.0 2 -1 5.00 1 -1 -1", func(*trace.JobRecord) {},
			[]string{writtenFraction, writtenFraction, writtenFraction, writtenFraction, writtenFraction}},
		"memory in bytes": {"1 0 2 30 4 -1 3221225472 -1 60 -1 1 7 2 -1 5 1 -1 -1", func(j *trace.JobRecord) { j.Memory = 4 * 3072 },
			[]string{MemoryInBytes}},
		"negative memory": {"1 0 2 30 4 -1 2048 -1 60 -2 1 7 2 -1 5 1 -1 -1", func(*trace.JobRecord) {},
			[]string{"negative requested memory: taken as unknown"}},
	} {
		reader := Format().Open(strings.NewReader(head+c.line+"\n"), "log.swf")
		var r trace.Record
		for range 2 {
			if err := reader.Next(&r); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		want := trace.UnknownJob()
		want.ID, want.Queue, want.User, want.Status = "1", "5", "7", "1"
		want.Start, want.Duration, want.Requested, want.GPUs, want.Milli, want.Memory = 2*time.Second, 30*time.Second, time.Minute, 4, 1000,
			8
		c.want(&want)
		if !reflect.DeepEqual(r.Job, want) || r.At != 0 {
			t.Errorf("%s: at %v %+v, want %+v", name, r.At, r.Job, want)
		}
		var says []string
		for _, x := range reader.Treated() {
			if x.First != 2 {
				t.Errorf("%s: %q is first seen in line %d", name, x.Name, x.First)
			}
			for range x.Count {
				says = append(says, x.Name)
			}
		}
		if !slices.Equal(says, c.says) {
			t.Errorf("%s: treated %q, want %q", name, says, c.says)
		}
	}
}

// TestInBytes: a log that is known to have bytes has them from the first value on.
func TestInBytes(t *testing.T) {
	reader := InBytes().Open(strings.NewReader("1 0 2 30 4 -1 1048577 -1 60 -1 1 7 2 -1 5 1 -1 -1\n"), "log.swf")
	var r trace.Record
	if err := reader.Next(&r); err != nil || r.Job.Memory != 5 || len(reader.Treated()) > 0 {
		t.Errorf("4 processors with 1 MiB and a byte each are %d MiB, %v, treated %v", r.Job.Memory, err, reader.Treated())
	}
}

// TestComments: what people write into comments refuses no log.
func TestComments(t *testing.T) {
	for written, want := range map[string]struct {
		value   string
		treated int64
	}{
		"Universit\u00e4t": {"Universit\u00e4t", 0},
		"Universit\xe4t":   {"Universit\u00e4t", 1},
		"\x9b31m":          {"\ufffd31m", 1},
		"a\t\"quote\"":     {"a\t\"quote\"", 0},
	} {
		reader := Format().Open(strings.NewReader("; free text, "+written+"\n; Installation: "+written+"\n1 0 2 30 4 -1 2048 -1 60 -1 1 "+
			"7 2 -1 5 1 -1 -1\n"), "log.swf")
		var r trace.Record
		if err := reader.Next(&r); err != nil || r.Header != (trace.HeaderRecord{Key: "Installation", Value: want.value}) {
			t.Errorf("%q: %v, %+v", written, err, r.Header)
		}
		if err := reader.Next(&r); err != nil || r.Job.ID != "1" {
			t.Errorf("%q: behind it %v, %+v", written, err, r.Job)
		}
		var treated int64
		for _, x := range reader.Treated() {
			if treated += x.Count; x.Name != latin || x.First != 2 {
				t.Errorf("%q: %+v", written, x)
			}
		}
		if treated != want.treated {
			t.Errorf("%q: treated %d values, want %d", written, treated, want.treated)
		}
	}
}

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
