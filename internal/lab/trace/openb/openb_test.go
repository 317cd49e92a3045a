package openb

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/tracetest"
)

var pods = tracetest.Suite{
	Format: Format(),
	File:   "pods.csv",
	Sample: `name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,4000,1024,1,460,,LS,Running,7,100,10
p1,500,64,0,0,,BE,Pending,9,90,
p2,32000,4096,8,1000,V100M16|A10,LS,Succeeded,20,21,20
`,
	Want: []trace.Record{
		{Kind: trace.Job, Line: 2, At: 7 * time.Second, Job: trace.JobRecord{
			ID: "p0", Queue: "LS", Duration: 90 * time.Second, Requested: trace.Unknown, Start: 10 * time.Second,
			GPUs: 1, Milli: 460, CPU: 4000, Memory: 1024, Status: "Running",
		}},
		{Kind: trace.Job, Line: 3, At: 9 * time.Second, Job: trace.JobRecord{
			ID: "p1", Queue: "BE", Duration: trace.Unknown, Requested: trace.Unknown, Start: trace.Unknown,
			CPU: 500, Memory: 64, Status: "Pending",
		}},
		{Kind: trace.Job, Line: 4, At: 20 * time.Second, Job: trace.JobRecord{
			ID: "p2", Queue: "LS", Duration: time.Second, Requested: trace.Unknown, Start: 20 * time.Second,
			GPUs: 8, Milli: 1000, CPU: 32000, Memory: 4096, Models: []string{"V100M16", "A10"}, Status: "Succeeded",
		}},
	},
	Broken: []tracetest.Broken{
		{Name: "wrong number", Old: "1024", New: "1e3", Says: `memory_mib is "1e3", expected a whole number`},
		{Name: "missing column", Old: ",memory_mib", New: "", Place: "1:1", Says: "the header lacks memory_mib"},
		{Name: "share of several GPUs", Old: "8,1000", New: "8,500", Place: "4:17", Says: "1000 with several"},
		{Name: "share without a GPU", Old: "64,0,0", New: "64,0,1", Place: "3:13", Says: "0 without a GPU"},
		{Name: "more than a GPU", Old: "460", New: "1001", Says: "1 to 1000 with one"},
		{Name: "no model", Old: "V100M16|A10", New: "V100M16|", Says: "models with | between them"},
		{Name: "scheduled early", Old: "10\n", New: "6\n", Says: "not before creation_time"},
		{Name: "deleted early", Old: "100,", New: "9,", Says: "not before scheduled_time"},
		{Name: "name", Old: "p1", New: `"p1"`, Says: "without quotes"},
	},
}

var bare = tracetest.Suite{
	Format: Format(),
	File:   "multi.csv",
	Sample: "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,4000,1024,2,1000\n",
	Want: []trace.Record{{Kind: trace.Job, Line: 2, At: trace.Unknown, Job: trace.JobRecord{
		ID: "p0", Duration: trace.Unknown, Requested: trace.Unknown, Start: trace.Unknown, GPUs: 2, Milli: 1000, CPU: 4000, Memory: 1024,
	}}},
	Broken: []tracetest.Broken{{Name: "wrong number", Old: "4000", New: "4000.0", Says: "cpu_milli"}},
}

var nodes = tracetest.Suite{
	Format: Format(),
	File:   "nodes.csv",
	Sample: "sn,cpu_milli,memory_mib,gpu,model\nn0,32000,262144,0,\nn1,64000,262144,2,P100\n",
	Want: []trace.Record{
		{Kind: trace.Node, Line: 2, At: trace.Unknown, Node: trace.NodeRecord{ID: "n0", CPU: 32000, Memory: 262144}},
		{Kind: trace.Node, Line: 3, At: trace.Unknown, Node: trace.NodeRecord{ID: "n1", Model: "P100", GPUs: 2, CPU: 64000,
			Memory: 262144}},
	},
	Broken: []tracetest.Broken{
		{Name: "wrong number", Old: "64000", New: "", Says: `cpu_milli is ""`},
		{Name: "missing column", Old: ",model", New: "", Place: "1:1", Says: "the header lacks model"},
		{Name: "GPUs of no model", Old: "P100", New: "", Says: "model is"},
	},
}

func TestPodsConform(t *testing.T)     { tracetest.Run(t, pods) }
func TestBarePodsConform(t *testing.T) { tracetest.Run(t, bare) }
func TestNodesConform(t *testing.T)    { tracetest.Run(t, nodes) }
func FuzzOpenbPods(f *testing.F)       { tracetest.Fuzz(f, pods) }
func FuzzOpenbNodes(f *testing.F)      { tracetest.Fuzz(f, nodes) }
func BenchmarkOpenb(b *testing.B)      { tracetest.Bench(b, pods) }

func TestPublishedNodes(t *testing.T) {
	for file, want := range map[string]struct{ nodes, gpus, cpu int64 }{
		"openb/openb_node_list_gpu_node.csv.gz": {1213, 6212, 107018_000},
		"openb/openb_node_list_all_node.csv.gz": {1523, 6212, 125514_000},
	} {
		var gpus, cpu int64
		n := tracetest.Each(t, Format(), file, func(r *trace.Record) { gpus += r.Node.GPUs; cpu += r.Node.CPU })
		if int64(n) != want.nodes || gpus != want.gpus || cpu != want.cpu {
			t.Errorf("%s: %d nodes, %d GPUs, %d milli CPU", file, n, gpus, cpu)
		}
	}
}

func TestPublishedPods(t *testing.T) {
	for file, want := range map[string]int{
		"cpu050": 7439, "cpu100": 7853, "cpu200": 8832, "default": 8152, "gpushare100": 8152, "gpushare40": 8152, "gpushare60": 8152,
		"gpuspec10": 8152, "gpuspec33": 8152, "multigpu20": 8324, "multigpu50": 9061,
	} {
		models := 0
		n := tracetest.Each(t, Format(), "openb/openb_pod_list_"+file+".csv.gz", func(r *trace.Record) {
			if len(r.Job.Models) > 0 {
				models++
			}
		})
		if n != want {
			t.Errorf("%s: %d pods, want %d", file, n, want)
		}
		if spec := file == "gpuspec10" || file == "gpuspec33"; spec != (models > 0) {
			t.Errorf("%s: %d pods with models", file, models)
		}
	}
}

// The default list: 98% of the cluster's capacity asked for, phases and GPU pods with times as counted for the reference.
func TestPublishedDefaultList(t *testing.T) {
	phases := map[string]int{}
	var milli, pods, timed, full, shared int64
	tracetest.Each(t, Format(), "openb/openb_pod_list_default.csv.gz", func(r *trace.Record) {
		phases[r.Job.Status]++
		milli += r.Job.GPUs * r.Job.Milli
		if r.Job.GPUs == 0 {
			return
		}
		pods++
		switch {
		case r.Job.Milli < 1000:
			shared++
		case r.Job.GPUs == 1:
			full++
		}
		if r.Job.Duration != trace.Unknown {
			timed++
		}
	})
	if phases["Running"] != 5193 || phases["Failed"] != 1870 || phases["Pending"] != 897 || phases["Succeeded"] != 192 || len(phases) != 4 {
		t.Errorf("phases %v", phases)
	}
	if share := 10000 * milli / 6_212_000; share != 9798 {
		t.Errorf("%d of 10000 of the cluster asked for", share)
	}
	if timed != 6203 || (1000*full+pods/2)/pods != 554 || (1000*shared+pods/2)/pods != 436 {
		t.Errorf("%d GPU pods, %d full, %d shared, %d with times", pods, full, shared, timed)
	}
}

// TestLifetime: a list that does not say when pods began has how long they were there, and says so.
func TestLifetime(t *testing.T) {
	reader := Format().Open(strings.NewReader("name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time\n"+
		"p0,1,1,1,1000,5,65\n"),
		"pods.csv")
	var r trace.Record
	if err := reader.Next(&r); err != nil || r.Job.Duration != time.Minute || r.Job.Start != trace.Unknown {
		t.Errorf("%v, %+v", err, r.Job)
	}
	if got := reader.Treated(); len(got) != 1 || got[0].Name != lifetime || got[0].Count != 1 {
		t.Errorf("%+v", got)
	}
}
