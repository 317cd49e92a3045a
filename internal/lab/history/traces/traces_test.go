package traces

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
	"sluice.dev/sluice/internal/lab/trace/tracetest"
)

func format(t fataler, name string) history.Format {
	t.Helper()
	for _, f := range Formats() {
		if f.Name == name {
			return f
		}
	}
	t.Fatal("no format ", name)
	return history.Format{}
}

type fataler interface {
	Helper()
	Fatal(...any)
}

func read(t fataler, name string, gpus int, files ...string) (*history.History, error) {
	t.Helper()
	b := history.NewBook(history.Options{GPUs: gpus})
	for i, content := range files {
		if err := format(t, name).Read(b, strings.NewReader(content), fmt.Sprintf("f%d.csv", i)); err != nil {
			t.Fatal(err)
		}
	}
	return b.Close()
}

// picture shows devices with their holds, in seconds since the trace's 0 or the epoch.
func picture(h *history.History, begin quantity.Instant) string {
	var out strings.Builder
	for i, holds := range h.Held {
		d := h.Devices[i]
		fmt.Fprintf(&out, "%s %s:", h.Nodes[d.Node].Name, h.Kinds[d.Kind].Name)
		for _, x := range holds {
			fmt.Fprintf(&out, " %d-%d", (x.From-begin)/quantity.Instant(time.Second), (x.To-begin)/quantity.Instant(time.Second))
		}
		out.WriteString("\n")
	}
	return out.String()
}

// samples are small files of each format, with what becomes of them.
var samples = map[string]struct {
	name, text, want string
	begin            quantity.Instant
	says             string
	gpus             int
}{
	"an archive's log": {
		name: "swf", begin: quantity.Instant(1000 * time.Second),
		says: "lowest numbered ones that are free, of as many as were held at once",
		text: "; Version: 2\n; UnixStartTime: 1000\n1 0 5 10 2 -1 -1 2 60 -1 1 1 1 -1 1 -1 -1 -1\n2 1 9 20 1 -1 -1 1 60 -1 0 1 1 -1 1 " +
			"-1 -1 -1\n3 30 0 -1 1 -1 -1 1 60 -1 5 1 1 -1 1 -1 -1 -1\n",
		want: "anywhere processor: 5-15\nanywhere processor: 5-15\nanywhere processor: 10-30\n",
	},
	"an archive's log with its machine": {
		name: "swf",
		text: "; MaxProcs: 3 (of 4)\n1 0 5 10 2 -1 -1 2 60 -1 1 1 1 -1 1 -1 -1 -1\n2 1 14 20 1 -1 -1 1 60 -1 1 1 1 -1 1 -1 -1 -1\n",
		want: "machine processor: 5-15 15-35\nmachine processor: 5-15\nmachine processor:\n",
	},
	"philly": {
		name: "philly", begin: quantity.At(time.Date(2017, 9, 4, 10, 0, 0, 0, time.UTC)),
		says: "played first come, first served", gpus: 2,
		text: "timestamp,duration,num_gpus,gpu_time,cluster\n2017-09-04 10:00:00,60,1,60,a\n2017-09-04 10:00:00,60,1,60,a\n" +
			"2017-09-04 10:00:30,30,2,60,b\n2017-09-04 10:00:50,10,1,10,b\n",
		want: "machine gpu: 0-60 60-90 90-100\nmachine gpu: 0-60 60-90\n",
	},
	"helios, jobs": {
		name: "helios", begin: quantity.At(time.Date(2020, 4, 1, 0, 0, 0, 0, time.UTC)),
		text: "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n" +
			"1,u,v,2,8,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:10,2020-04-01 00:01:10,60,10\n" +
			"2,u,v,1,8,1,FAILED,2020-04-01 00:01:00,2020-04-01 00:01:10,2020-04-01 00:02:10,60,10\n" +
			"3,u,v,0,8,1,COMPLETED,2020-04-01 00:01:00,2020-04-01 00:01:10,2020-04-01 00:02:10,60,10\n",
		want: "anywhere gpu: 10-70 70-130\nanywhere gpu: 10-70\n",
	},
	"openb": {
		name: "openb",
		text: "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n" +
			"a,1000,100,1,1000,T4,LS,Succeeded,0,100,10\nb,1000,100,1,460,,BE,Running,5,200,20\nc,1000,100,0,0,,BE,Pending,5,200,\n",
		want: "anywhere T4: 10-100\nanywhere gpu: 20-200\n",
	},
	"batsim": {
		name: "batsim",
		text: "job_id,workload_name,submission_time,requested_number_of_resources,requested_time,starting_time,execution_time," +
			"finish_time,success\n1,w,0,2,60,5,10,15,1\n2,w,1,1,60,15,10,25,1\n",
		want: "anywhere processor: 5-15 15-25\nanywhere processor: 5-15\n",
	},
}

// TestSamples: what becomes of a small file of each format, plain, compressed, and cut into two files with their lines in another order.
func TestSamples(t *testing.T) {
	for name, c := range samples {
		t.Run(name, func(t *testing.T) {
			for _, f := range Formats() {
				if is := f.Is([]byte(c.text), "x"); is != (f.Name == c.name) {
					t.Errorf("%s: is %v", f.Name, is)
				}
			}
			want, err := read(t, c.name, c.gpus, c.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := picture(want, c.begin); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
			if !strings.Contains(strings.Join(want.Assumptions, "\n"), c.says) {
				t.Errorf("assumed: %q", want.Assumptions)
			}
			var zipped bytes.Buffer
			w := gzip.NewWriter(&zipped)
			_, _ = io.WriteString(w, c.text)
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if got, err := read(t, c.name, c.gpus, zipped.String()); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("compressed: %v\n%+v\nwant\n%+v", err, got, want)
			}
			lines := strings.SplitAfter(strings.TrimSuffix(c.text, "\n"), "\n")
			lines[len(lines)-1] += "\n"
			heads := 1
			for heads < len(lines) && lines[heads][0] == ';' {
				heads++
			}
			head := strings.Join(lines[:heads], "")
			rapid.Check(t, func(t *rapid.T) {
				moved := rapid.Permutation(lines[heads:]).Draw(t, "order")
				at := rapid.IntRange(0, len(moved)).Draw(t, "split")
				got, err := read(t, c.name, c.gpus, head+strings.Join(moved[:at], ""), head+strings.Join(moved[at:], ""))
				if err != nil || !reflect.DeepEqual(plain(got), plain(want)) {
					t.Fatalf("%v\n%+v\nwant\n%+v", err, got, want)
				}
			})
		})
	}
}

// plain is a history without the lines that its examples name.
func plain(h *history.History) history.History {
	out := *h
	out.Oddities = nil
	for _, o := range h.Oddities {
		o.Places = nil
		out.Oddities = append(out.Oddities, o)
	}
	return out
}

// TestLevels: of counts minute by minute the fewest and longest gaps.
func TestLevels(t *testing.T) {
	const title = "time,running_job_num,pending_job_num,total_job_num,total_gpu_num,idle_gpu_num,gpu_utilization,running_gpujob_num," +
		"pending_gpujob_num,running_gpu_num,pending_gpu_num,running_job_num_noless_8,pending_job_num_noless_8,running_gpu_num_noless_8," +
		"pending_gpu_num_noless_8,running_job_num_less_8,pending_job_num_less_8,running_gpu_num_less_8,pending_gpu_num_less_8," +
		"total_gpujob_num,total_job_num_noless_8,total_job_num_less_8,total_gpu_num_noless_8,total_gpu_num_less_8\n"
	text := title
	for minute, held := range []int{1, 3, 2, 0, 1, 1} {
		text += fmt.Sprintf("2020-05-01 00:%02d:00,%d,0,%d,4,%d,0.5,%d,0,%d,0,0,0,0,0,%d,0,%d,0,%d,0,%d,0,"+
			"%d\n", minute, held, held, 4-held, held,
			held, held, held, held, held, held)
	}
	h, err := read(t, "helios", 0, text)
	if err != nil {
		t.Fatal(err)
	}
	begin := quantity.At(time.Date(2020, 5, 1, 0, 0, 0, 0, time.UTC))
	if got, want := picture(h, begin), "f0 gpu: 0-180 240-300\nf0 gpu: 60-120\nf0 gpu: 60-180\nf0 gpu:\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if !strings.Contains(strings.Join(h.Assumptions, "\n"), "minute by minute") {
		t.Errorf("%q", h.Assumptions)
	}
}

// TestNodes: a list of nodes beside the pods says how many devices there are, of which model.
func TestNodes(t *testing.T) {
	nodes := "sn,cpu_milli,memory_mib,gpu,model\nn1,1000,100,2,T4\nn2,1000,100,1,A10\nn3,1000,100,0,\n"
	for _, files := range [][]string{{nodes, samples["openb"].text}, {samples["openb"].text, nodes}} {
		h, err := read(t, "openb", 0, files...)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := picture(h, 0), "n1 T4: 10-100\nn1 T4:\nn2 A10: 20-200\n"; got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
}

// TestBadFiles: a trace is refused whole, as its reader does, and says where.
func TestBadFiles(t *testing.T) {
	_, err := read(t, "philly", 2, strings.Replace(samples["philly"].text, "60,1,60", "60,1,61", 1))
	if err == nil || !strings.Contains(err.Error(), "f0.csv:2:") {
		t.Error(err)
	}
}

// TestPublished reads the published traces, where they are there: nothing is held twice, and less than all is held.
func TestPublished(t *testing.T) {
	gpus := map[string]int{"philly": 800}
	for name, files := range map[string][]string{
		"swf": {"swf/hpc2n.swf.gz"}, "philly": {"philly/philly_sep-oct.csv.gz"},
		"helios": {"helios/Earth_vcpDC_cluster_sequence_vc.csv.gz"},
		"openb":  {"openb/openb_pod_list_default.csv.gz", "openb/openb_node_list_gpu_node.csv.gz"},
		"batsim": {"backfill_ref/medium_late_easy_out_jobs.csv.gz"},
	} {
		t.Run(name, func(t *testing.T) {
			b := history.NewBook(history.Options{GPUs: gpus[name]})
			for _, f := range files {
				file, err := os.Open(tracetest.Data(t, f))
				if err != nil {
					t.Fatal(err)
				}
				defer file.Close()
				if err := format(t, name).Read(b, file, f); err != nil {
					t.Fatal(err)
				}
			}
			h, err := b.Close()
			if err != nil {
				t.Fatal(err)
			}
			var idle, held time.Duration
			for i := range h.Devices {
				last := quantity.Instant(0)
				for _, x := range h.Held[i] {
					if x.From < last || x.To <= x.From {
						t.Fatalf("device %d: %+v behind %d", i, x, last)
					}
					last = x.To
					held += max(0, min(x.To, h.To).Sub(max(x.From, h.From)))
				}
				for g := range h.Idle(i, true) {
					idle += g.To.Sub(g.From)
				}
			}
			if all := h.To.Sub(h.From) * time.Duration(len(h.Devices)); len(h.Devices) < 1000 && idle+held != all || held == 0 ||
				idle == 0 {
				t.Errorf("%d devices, idle %v and held %v of %v", len(h.Devices), idle, held, all)
			}
			t.Logf("%d runs, %d devices, %.1f%% idle of %v; %+v %q", len(h.Runs), len(h.Devices),
				100*idle.Hours()/(idle.Hours()+held.Hours()), h.To.Sub(h.From), h.Oddities, h.Assumptions)
		})
	}
}

// FuzzRead: whatever a file has in it, a history or an error.
func FuzzRead(f *testing.F) {
	for _, c := range samples {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, x := range Formats() {
			if !x.Is(content, "x") {
				continue
			}
			b := history.NewBook(history.Options{})
			if err := x.Read(b, bytes.NewReader(content), "x"); err != nil {
				t.Fatal(err)
			}
			h, err := b.Close()
			if err != nil {
				continue
			}
			for i := range h.Devices {
				for g := range h.Idle(i, true) {
					if g.To <= g.From {
						t.Fatal(g)
					}
				}
			}
		}
	})
}
