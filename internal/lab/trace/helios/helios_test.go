package helios

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
	File:   "data/Town_vcA_cluster_sequence_vc.csv.gz",
	Sample: `time,total_job_num,running_job_num,pending_job_num,total_gpujob_num,running_gpujob_num,pending_gpujob_num,total_gpu_num,running_gpu_num,pending_gpu_num,idle_gpu_num,gpu_utilization,running_gpu_num_noless_8,running_gpu_num_less_8,pending_gpu_num_noless_8,pending_gpu_num_less_8,total_gpu_num_noless_8,total_gpu_num_less_8,running_job_num_noless_8,running_job_num_less_8,pending_job_num_noless_8,pending_job_num_less_8,total_job_num_noless_8,total_job_num_less_8
1970-01-01 00:00:00,0,0,0,0,0,0,56,0,0,56,0.0,0,0,0,0,0,0,0,0,0,0,0,0
1970-01-01 00:01:00,9,6,3,8,5,3,56,53,21,3,0.946,48,5,16,5,64,10,3,2,2,1,5,3
`,
	Want: []trace.Record{
		{Kind: trace.State, Line: 2, State: trace.StateRecord{Cluster: "Town_vcA", GPUs: 56, Idle: 56}},
		{Kind: trace.State, Line: 3, At: time.Minute, State: trace.StateRecord{
			Cluster: "Town_vcA", GPUs: 56, Idle: 3, RunningJobs: 6, PendingJobs: 3,
			GPU:   trace.Load{RunningJobs: 5, PendingJobs: 3, RunningGPUs: 53, PendingGPUs: 21},
			Large: trace.Load{RunningJobs: 3, PendingJobs: 2, RunningGPUs: 48, PendingGPUs: 16},
			Small: trace.Load{RunningJobs: 2, PendingJobs: 1, RunningGPUs: 5, PendingGPUs: 5},
		}},
	},
	Broken: []tracetest.Broken{
		{Name: "wrong number", Old: "0.946", New: "94.6%", Says: "gpu_utilization"},
		{Name: "missing column", Old: ",idle_gpu_num", New: "", Place: "1:1", Says: "the header lacks idle_gpu_num"},
		{Name: "another total", Old: "56,53", New: "57,53", Says: "running and idle GPUs together"},
		{Name: "another total of jobs", Old: "9,6,3,8", New: "8,6,3,8", Says: "running and pending jobs together"},
		{Name: "another part", Old: "48,5,16", New: "48,6,16", Place: "3:36", Says: "eight GPUs or more"},
		{Name: "another sum of a part", Old: "64,10", New: "63,10", Says: "its running and pending part"},
	},
}

// jobs is the other kind of file.
var jobs = tracetest.Suite{
	Format: Format(),
	File:   "cluster_log.csv",
	Sample: `job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1,uA,vcA,8,16,1,COMPLETED,1970-01-01 00:01:00,1970-01-01 00:02:00,1970-01-01 00:05:30,210,60
2,uB,vcB,0,4,1,CANCELLED,1970-01-01 00:03:00,,,,
3,uB,vcB,1,4,1,FAILED,1970-01-01 00:04:00,1970-01-01 00:04:00,1970-01-01 00:04:09,9,0
`,
	Want: []trace.Record{
		{Kind: trace.Job, Line: 2, At: time.Minute, Job: trace.JobRecord{
			ID: "1", Queue: "vcA", User: "uA", Start: 2 * time.Minute, Duration: 210 * time.Second, Requested: trace.Unknown,
			GPUs: 8, Milli: 1000, CPU: 16_000, Memory: trace.Unknown, Status: "COMPLETED",
		}},
		{Kind: trace.Job, Line: 3, At: 3 * time.Minute, Job: trace.JobRecord{
			ID: "2", Queue: "vcB", User: "uB", Start: trace.Unknown, Duration: trace.Unknown, Requested: trace.Unknown,
			Milli: 1000, CPU: 4000, Memory: trace.Unknown, Status: "CANCELLED",
		}},
		{Kind: trace.Job, Line: 4, At: 4 * time.Minute, Job: trace.JobRecord{
			ID: "3", Queue: "vcB", User: "uB", Start: 4 * time.Minute, Duration: 9 * time.Second, Requested: trace.Unknown,
			GPUs: 1, Milli: 1000, CPU: 4000, Memory: trace.Unknown, Status: "FAILED",
		}},
	},
	Broken: []tracetest.Broken{
		{Name: "wrong number", Old: "210", New: "x", Says: "duration"},
		{Name: "missing column", Old: ",gpu_num", New: "", Place: "1:1", Says: "the header lacks gpu_num"},
		{Name: "wrong time", Old: "00:02:00", New: "at noon", Place: "2:47", Says: "start_time"},
		{Name: "a field too few", Old: ",9,0", New: ",9", Place: "4:84", Says: "the line has 11 fields, expected 12"},
	},
}

// TestTreatments is a log as people have it: no row of these kinds refuses it, and each is counted.
func TestTreatments(t *testing.T) {
	const submit = time.Minute
	for row, c := range map[string]struct {
		want func(r *trace.Record)
		says []string
	}{
		"1,uA,vcA,8,16,1,COMPLETED,1970-01-01 00:01:00,1970-01-01 00:02:00,1970-01-01 00:05:30,210,60": {func(*trace.Record) {}, nil},
		"1,uA,vcA,8.0,16.0,1.0,COMPLETED,1970-01-01 00:01:00,1970-01-01 00:02:00,1970-01-01 00:05:30,210.0,60": {func(*trace.Record) {},
			[]string{fraction, fraction, fraction}},
		"1,uA,vcA,8,16,1,CANCELLED,1970-01-01 00:01:00,None,1970-01-01 00:05:30,NaN,": {func(r *trace.Record) {
			r.Job.Start, r.Job.Duration, r.Job.Status = trace.Unknown, trace.Unknown, "CANCELLED"
		}, []string{noTime, noTime}},
		"1,uA,vcA,8,16,1,COMPLETED,1970-01-01 00:01:00,1970-01-01 00:00:59,1970-01-01 00:05:30,210,-1": {func(
			r *trace.Record) {
			r.Job.Start = trace.Unknown
		}, []string{early, negative}},
		"1,uA,vcA,8,16,1,COMPLETED,1970-01-01 00:01:00,1970-01-01 00:02:00,1970-01-01 00:01:50,-10,60": {func(
			r *trace.Record) {
			r.Job.Duration = trace.Unknown
		}, []string{negative}},
		"1,uA,vcA,8,16,1,COMPLETED,,1970-01-01 00:02:00,1970-01-01 00:05:30,210,60": {func(r *trace.Record) { r.At = trace.Unknown },
			[]string{noSubmission}},
		"1,,None,NaN,,1,Unknown,1970-01-01 00:01:00,1970-01-01 00:02:00,1970-01-01 00:05:30,210,60": {func(r *trace.Record) {
			r.Job.User, r.Job.Queue, r.Job.Status, r.Job.GPUs, r.Job.CPU = "", "", "", trace.Unknown, trace.Unknown
		}, []string{noName, noName, noName, noCount, noCount}},
	} {
		header, _, _ := strings.Cut(jobs.Sample, "\n")
		reader := Format().Open(strings.NewReader(header+"\n"+row+"\n"), jobs.File)
		var r trace.Record
		if err := reader.Next(&r); err != nil {
			t.Errorf("%s: %v", row, err)
			continue
		}
		want := trace.Record{Kind: trace.Job, Line: 2, At: submit, Job: trace.JobRecord{
			ID: "1", Queue: "vcA", User: "uA", Start: 2 * time.Minute, Duration: 210 * time.Second, Requested: trace.Unknown,
			GPUs: 8, Milli: 1000, CPU: 16_000, Memory: trace.Unknown, Status: "COMPLETED",
		}}
		c.want(&want)
		if !reflect.DeepEqual(r, want) {
			t.Errorf("%s: %+v, want %+v", row, r, want)
		}
		var says []string
		for _, x := range reader.Treated() {
			for range x.Count {
				says = append(says, x.Name)
			}
		}
		slices.Sort(says)
		slices.Sort(c.says)
		if !slices.Equal(says, c.says) {
			t.Errorf("%s: treated %q, want %q", row, says, c.says)
		}
	}
}

func TestJobsConform(t *testing.T) { tracetest.Run(t, jobs) }
func TestConforms(t *testing.T)    { tracetest.Run(t, suite) }
func FuzzHelios(f *testing.F)      { tracetest.Fuzz(f, suite) }
func BenchmarkHelios(b *testing.B) { tracetest.Bench(b, suite) }

// Occupancy, the share of minutes in which jobs wait, and in which GPUs idle meanwhile, as published for May 2020.
func TestPublishedStates(t *testing.T) {
	for vc, want := range map[string]struct {
		gpus                              int64
		occupancy, pending, idleMeanwhile int
	}{"vc6YE": {208, 903, 547, 457}, "vcpDC": {56, 910, 770, 444}, "vcTJs": {48, 730, 357, 35}} {
		var held, capacity int64
		pending, idle := 0, 0
		minute := time.Duration(time.Date(2020, 5, 1, 0, 0, 0, 0, time.UTC).UnixNano())
		n := tracetest.Each(t, Format(), "helios/Earth_"+vc+"_cluster_sequence_vc.csv.gz", func(r *trace.Record) {
			if r.At != minute || r.State.GPUs != want.gpus || r.State.Cluster != "Earth_"+vc {
				t.Fatalf("line %d: %v after May began, %+v", r.Line, r.At-minute, r.State)
			}
			minute += time.Minute
			held += r.State.GPU.RunningGPUs
			capacity += r.State.GPUs
			if r.State.GPU.PendingJobs > 0 {
				pending++
				if r.State.Idle > 0 {
					idle++
				}
			}
		})
		share := func(part, whole int) int { return (1000*part + whole/2) / whole }
		if n != 31*24*60 || share(int(held), int(capacity)) != want.occupancy || share(pending, n) != want.pending ||
			share(idle, n) != want.idleMeanwhile {
			t.Errorf("%s: %d minutes; of 1000: held %d, waiting %d, idle meanwhile %d", vc, n, share(int(held), int(capacity)),
				share(pending, n), share(idle, n))
		}
	}
}
