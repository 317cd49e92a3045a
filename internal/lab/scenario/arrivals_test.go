package scenario_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/play"
	formats "sluice.dev/sluice/internal/lab/trace/all"
)

// logs writes one small log of each format, 40 arrivals each, and returns the folder. The files are made up.
func logs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]*strings.Builder{
		"swf": {}, "swf-bytes": {}, "philly": {}, "openb": {}, "azure": {}, "mooncake": {}, "helios": {}, "genai": {}, "batsim": {},
	}
	line := func(name, format string, args ...any) { fmt.Fprintf(files[name], format+"\n", args...) }
	line("swf", "; Version: 2.2")
	line("philly", "timestamp,duration,num_gpus,gpu_time,cluster")
	line("openb", "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time")
	line("azure", "TIMESTAMP,ContextTokens,GeneratedTokens")
	line("helios", "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue")
	line(
		"genai", "gmt_create,predict_type,predict_status,exec_time_seconds,groupId,prompt_length,negative_prompt_length,num_images_per_prompt,num_inference_steps,checkpoint_model_version_id,num_lora")
	line(
		"batsim", "job_id,workload_name,submission_time,requested_number_of_resources,requested_time,success,starting_time,execution_time,finish_time")
	for i := range 40 {
		at, run := i*20, 30+i*37%90
		date := func(s int) string { return time.Unix(1_600_000_000+int64(s), 0).UTC().Format(time.DateTime) }
		line("swf", "%d %d -1 %d 1 -1 -1 1 %d -1 1 1 1 -1 1 1 -1 -1 17", i+1, at, run, 2*run)
		line("swf-bytes", "%d %d -1 %d 1 -1 3221225472 1 %d -1 1 1 1 -1 1 1 -1 -1", i+1, at, run, 2*run)
		line("philly", "%s,%d,1,%d,vc", date(at), run, run)
		line("openb", "p%d,1000,1024,1,%d,,LS,Running,%d,%d,%d", i, 100+i*20, at, at+run, at)
		line("azure", "%s,%d,%d", date(at), 100*i, 10+i)
		line("mooncake", `{"timestamp": %d, "input_length": %d, "output_length": %d, "hash_ids": [%d]}`, at*1000, 100*i, 10+i, i)
		line("helios", "%d,u,vcA,1,4,1,COMPLETED,%s,%s,%s,%d,0", i, date(at), date(at), date(at+run), run)
		line("genai", "%s,t2i,SUCCEED,%d,g,1,0,1,20,m,0", date(at), run)
		line("batsim", "%d,w,%d,1,%d,1,%d,%d,%d", i, at, 2*run, at, run, at+run)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func reader() scenario.Reader { return scenario.Reader{Formats: formats.Formats()} }

const onLog = `
scenario: log
cluster: {nodes: [{gpus: "sim:a100-80gb=2,layout=3g.40gb+2g.20gb+2x1g.10gb"}]}
workload: {compose: {arrivals: {format: %[1]s, file: %[1]s}, atomizable: 50%%, grain: 10s, restore: 1s, checkpoint: 1s}}
mechanism: {grace: 1s}
`

// TestEveryFormatUnderEveryMechanism: a log of any format is work for all of them, and each finishes all that is offered.
func TestEveryFormatUnderEveryMechanism(t *testing.T) {
	dir := logs(t)
	for _, format := range []string{"swf", "swf-bytes", "philly", "openb", "azure", "mooncake", "helios", "genai", "batsim"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			s, err := reader().Parse("log.yml", fmt.Appendf(nil, onLog, format))
			if err != nil {
				t.Fatal(err)
			}
			m, err := table().Find(s, []string{play.All})
			if err != nil {
				t.Fatal(err)
			}
			data := &play.Traces{Dir: dir}
			results, err := play.Run(t.Context(), play.Options{Scenario: s, Mechanisms: m, Data: data})
			if err != nil {
				t.Fatal(err)
			}
			if len(results) != len(m) || len(m) < 8 {
				t.Fatalf("%d results of %d mechanisms", len(results), len(m))
			}
			for _, r := range results {
				if r.Finished != 40 || r.Live != 0 || len(r.Broken) > 0 || math.IsNaN(r.Metrics.Get("waitMean")) {
					t.Errorf("%s: %d of 40 finished, %d left, broken %v", r.Mechanism, r.Finished, r.Live, r.Broken)
				}
			}
			account, err := play.Account(t.Context(), s, 1, data)
			if err != nil || len(account) < 2 || account[0] != "40 "+format+" ("+format+"): records" ||
				account[len(account)-1] != "40 jobs offered" {
				t.Errorf("%v, %q", err, account)
			}
			switch all := strings.Join(account, "\n"); format {
			case "swf":
				if !strings.Contains(all, "40 more than 18 fields: the rest left out (first in line 2)") {
					t.Error(all)
				}
			case "openb":
				if !strings.Contains(all, "40 with a share of a GPU: hold a whole slice") {
					t.Error(all)
				}
			}
		})
	}
}

// TestAccount: what is left out is counted, stream by stream where there are several.
func TestAccount(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "log"), []byte("1 0 0 60 1 -1 -1 1 -1 -1 1 1 1 -1 1 1 -1 -1\n2 1 0 60 2 -1 -1 2 -1 -1 1 1 "+
		"1 -1 1 1 -1 -1\n3 2 0 60 5 -1 -1 5 -1 -1 1 1 1 -1 1 1 -1 -1\n4 3 0 60 9 -1 -1 9 -1 -1 1 1 1 -1 1 1 -1 -1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for multi, want := range map[string]string{
		"drop": "4 log (swf): records|3 with several GPUs: left out|1 jobs offered",
		"gang": "4 log (swf): records|1 fit no slice: left out|1 hold more slices than any node has: sja and jasda place a job on one " +
			"node and never run them, nor what waits behind them|3 jobs offered",
	} {
		s, err := reader().Parse("log.yml", []byte("scenario: log\ncluster: {nodes: [{count: 2, gpus: \"sim:a100-80gb=4\"}]}\nworkload: "+
			"{compose: {arrivals: {format: swf, file: log}, multi: "+multi+"}}\n"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := play.Account(t.Context(), s, 1, &play.Traces{Dir: dir})
		if err != nil || strings.Join(got, "|") != want {
			t.Errorf("%s: %v, %q", multi, err, got)
		}
	}
	s, err := reader().Parse("two.yml", []byte("scenario: two\ncluster: {nodes: [{gpus: \"sim:a100-80gb=4\"}]}\nworkload: {synthetic: "+
		"{jobs: 5}, compose: [{arrivals: {format: swf, file: log}}, {arrivals: {format: swf, file: log}, multi: split, programs: "+
		"modelled}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := play.Account(t.Context(), s, 1, &play.Traces{Dir: dir})
	if err != nil || len(got) != 5 || got[0] != "stream 2: 4 log (swf): records" || got[1] != "stream 2: 3 with several GPUs: left out" ||
		got[4] != "stream 3: 17 jobs offered" {
		t.Errorf("%v, %q", err, got)
	}
	notes, err := play.Assumptions(s, &play.Traces{Dir: dir})
	if text := strings.Join(notes, "\n"); err != nil || !strings.Contains(text, "Arrivals are those of log") ||
		!strings.Contains(text, "what has no run time is left out; what does not say holds 1 of the file's processors") {
		t.Errorf("%v, %q", err, notes)
	}
}

// TestArrivalsAreRead: every key is taken, and what is wrong is said in its place.
func TestArrivalsAreRead(t *testing.T) {
	const head = "scenario: log\ncluster: {nodes: [{gpus: \"sim:a100-80gb=4\"}]}\nworkload:\n  compose:\n"
	s, err := reader().Parse("log.yml", []byte(head+"    {arrivals: {format: azure, file: a.csv, durations: {tokens: {output: 5ms}}, "+
		"gpus: 2, processorsPerGPU: 4, memory: 6Gi, walltimes: error, resample: true}, jobs: 5, programs: published}\n"))
	if err != nil {
		t.Fatal(err)
	}
	x := &s.Workload.Streams[0]
	if tr := x.Trace; tr.Format.Name != "azure" || tr.File != "a.csv" || tr.GPUs != 2 || tr.PerGPU != 4 || tr.Memory != 6<<30 ||
		tr.FromFile || tr.Walltimes || !tr.Resample ||
		tr.RunTime.Output != 5*time.Millisecond || tr.RunTime.Prompt != 100*time.Microsecond || !x.Measured || !s.Workload.NeedsData() {
		t.Errorf("%+v, %+v", x, tr)
	}
	for text, says := range map[string]string{
		"{arrivals: {format: swv, file: a}}":                                                  `log.yml:5:25: workload.compose.arrivals.format: is "swv", no format of arrivals; did you mean "swf"?`,
		"{arrivals: {format: miso, file: a}}":                                                 "no format of arrivals",
		"{arrivals: {format: swf}}":                                                           `"file" is missing`,
		"{arrivals: {file: a}}":                                                               `"format" is missing`,
		"{arrivals: {format: swf, file: a, durations: {tokens: {}}}}":                         "swf has no requests",
		"{arrivals: {format: azure, file: a, durations: {tokens: {prompt: 0s, output: 0s}}}}": "no time",
		"{arrivals: {format: swf, file: a, memory: host}}":                                    `memory: is "host"; want programs`,
		"{arrivals: {format: swf, file: a, memory: 4}}":                                       "memory",
		"{arrivals: {format: swf, file: a, durations: {fixed: 1s, uniform: [1s, 2s]}}}":       "gives 2 of fixed, uniform and lognormal",
		"{arrivals: {format: swf, file: a, resample: true}}":                                  "has no end",
		"{jobs: 3, programs: modelled}":                                                       "needs a file of arrivals",
	} {
		if _, err := reader().Parse("log.yml", []byte(head+"    "+text+"\n")); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, want := range map[string]string{"openb": "", "mooncake": "token", "helios": "drawn"} {
		s, err := reader().Parse("log.yml", []byte(head+"    {arrivals: {format: "+text+", file: a}}\n"))
		if err != nil {
			t.Fatal(err)
		}
		r := s.Workload.Streams[0].Trace.RunTime
		got := ""
		if r.Drawn != nil {
			got += "drawn"
		}
		if r.Output > 0 && r.Prompt > 0 {
			got += "token"
		}
		if got != want || s.Workload.NeedsData() {
			t.Errorf("%s: %+v", text, r)
		}
	}
}
