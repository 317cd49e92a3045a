package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/edge/command"
	face "sluice.dev/sluice/internal/face/cli"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/lab/cli"
	"sluice.dev/sluice/internal/lab/trace/tracetest"
)

// simulate runs the command without a daemon.
func simulate(ctx context.Context, args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = face.Run(ctx, face.Deps{Sim: cli.Command, Args: append([]string{"sim"}, args...),
		Options: session.Options{In: strings.NewReader(""), Out: &o, Err: &e, Getenv: func(string) string { return "" }}})
	return code, o.String(), e.String()
}

// fgdFolder is a folder of data made up for the test: four nodes, 40 pods, and published tables that no run can meet.
func fgdFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name, content string) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	put("openb/openb_node_list_gpu_node.csv.gz", "sn,cpu_milli,memory_mib,gpu,model\n"+
		"a,32000,65536,4,X\nb,32000,65536,4,X\nc,32000,65536,4,Y\nd,32000,65536,8,Y\n")
	pods := "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
	for i := range 40 {
		pods += fmt.Sprintf("p%d,1000,1024,1,%d\n", i, 100+i*20)
	}
	put("openb/openb_pod_list_default.csv.gz", pods)
	head, row := "workload,sc_policy,tune,seed", ""
	for c := range 131 {
		head += fmt.Sprintf(",%d", c)
		row += ",1.5"
	}
	for _, name := range []string{"allo", "frag_ratio"} {
		put("fgd_expected/analysis_"+name+"_discrete.csv.gz", head+"\nopenb_pod_list_default,06-FGD,1.3,42"+row+"\n")
	}
	return dir
}

func TestSimRunFGD(t *testing.T) {
	dir := fgdFolder(t)
	code, out, errs := simulate(t.Context(), "run", "fgd", "--data", dir, "--seeds", "2,5", "-o", "json")
	var runs []map[string]any
	if err := json.Unmarshal([]byte(out), &runs); code != 0 || err != nil || errs != "" {
		t.Fatalf("exit %d, %v: %s", code, err, errs)
	}
	if len(runs) != 12 || runs[1]["seed"] != 5.0 || runs[11]["policy"] != "fgd" || runs[0]["workload"] != "default" || len(runs[0]) != 4 {
		t.Errorf("%v", runs)
	}
	for _, r := range runs {
		if x := r["allocated"].(float64); x < 80 || x > 100 {
			t.Errorf("%v", r)
		}
	}
	if rc, again, _ := simulate(t.Context(), "run", "fgd", "--data", dir, "--seeds", "2,5", "-o", "json"); rc != 0 || again != out {
		t.Error("the same seeds give other bytes")
	}
	code, out, _ = simulate(t.Context(), "run", "fgd", "--data", dir, "--seeds", "1-2", "-o", "csv")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); code != 0 || len(lines) != 13 ||
		lines[0] != "workload,policy,seed,allocated" || !strings.HasPrefix(lines[1], "default,random,1,") {
		t.Errorf("exit %d: %s", code, out)
	}
	code, out, _ = simulate(t.Context(), "run", "fgd", "--data", dir, "--seeds", "1-2")
	if code != 0 || strings.Count(out, "\n") != 7 || !strings.Contains(out, "clustering  2") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// TestSimFGDOwnLists: a workload is any pod list that lies in the folder, gzipped or not.
func TestSimFGDOwnLists(t *testing.T) {
	dir := fgdFolder(t)
	for _, file := range []string{"openb_pod_list_mine.csv", "openb_pod_list_a.b.csv.gz", "openb_pod_list_.csv", "other.csv"} {
		if err := os.WriteFile(filepath.Join(dir, "openb", file),
			[]byte("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1000,1024,1,500\nq,1000,1024,1,700\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, out, errs := simulate(t.Context(), "run", "fgd", "--data", dir, "--workload", "mine", "--seeds", "1", "-o", "csv")
	if code != 0 || strings.Count(out, "mine,") != 6 {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	code, out, errs = simulate(t.Context(), "run", "fgd", "--data", dir, "--workload", "all", "--seeds", "1", "-o", "csv")
	if code != 0 || strings.Count(out, "mine,") != 6 || strings.Count(out, "a.b,") != 6 || strings.Count(out, "\n") != 19 ||
		!strings.HasPrefix(strings.SplitAfter(out, "\n")[1], "default,") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	code, _, errs = simulate(t.Context(), "run", "fgd", "--data", dir, "--workload", "other")
	if code != command.ExitUsage || !strings.Contains(errs, "openb_pod_list_other.csv.gz; it has default, a.b, mine, or write all") {
		t.Errorf("exit %d: %s", code, errs)
	}
	code, _, errs = simulate(t.Context(), "check", "fgd", "--data", dir, "--workload", "mine")
	if code != command.ExitUsage || !strings.Contains(errs, "no result of it; they have default") {
		t.Errorf("exit %d: %s", code, errs)
	}
	code, out, errs = simulate(t.Context(), "check", "fgd", "--data", dir, "--seeds", "1")
	if code != command.ExitFailed || !strings.Contains(out, "0 of 1 means") ||
		!strings.Contains(errs, "left out, for there is no published result: a.b, mine") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

func TestSimFGDInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, verb := range []string{"run", "check"} {
		code, _, errs := simulate(ctx, verb, "fgd", "--data", fgdFolder(t), "--workload", "default", "--seeds", "1-3")
		if code != command.ExitInterrupted || !strings.Contains(errs, "interrupted: 0 of 18 runs are done") {
			t.Errorf("%s: exit %d: %s", verb, code, errs)
		}
	}
}

func TestSimFGDArguments(t *testing.T) {
	dir, unpublished := fgdFolder(t), fgdFolder(t)
	if err := os.RemoveAll(filepath.Join(unpublished, "fgd_expected")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"run fgd", command.ExitUsage, "--data: want the folder"},
		{"check fgd", command.ExitUsage, "--data: want the folder"},
		{"run fgd --data " + dir + " --workload default,fault", command.ExitUsage, "--workload fault: "},
		{"run fgd --data " + dir + " --seeds 5-1", command.ExitUsage, "--seeds: "},
		{"run fgd --data " + dir + " -o wide", command.ExitUsage, "want one of table, json, csv"},
		{"run fgd --data " + dir + " more", command.ExitUsage, "more"},
		{"run fgd --data " + dir + " --workload gpuspec33", command.ExitUsage, "openb_pod_list_gpuspec33"},
		{"check fgd --data " + dir + " --workload gpuspec33", command.ExitUsage, "openb_pod_list_gpuspec33"},
		{"check fgd --data " + unpublished, command.ExitUsage, "fgd_expected"},
		{"run fgd --data " + filepath.Join(dir, "openb"), command.ExitUsage, "look for pod lists"},
	} {
		if code, _, errs := simulate(t.Context(), strings.Fields(c.args)...); code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit %d, want %d and %q: %s", c.args, code, c.code, c.want, errs)
		}
	}
}

func TestSimCheckFGDFails(t *testing.T) {
	dir := fgdFolder(t)
	code, out, errs := simulate(t.Context(), "check", "fgd", "--data", dir, "--workload", "default", "--seeds", "1-2")
	if code != command.ExitFailed || !strings.Contains(out, "FAIL") || !strings.Contains(out, "0 of 1 means") ||
		!strings.Contains(errs, "not reproduced") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	code, out, _ = simulate(t.Context(), "check", "fgd", "--data", dir, "--workload", "default", "--seeds", "1-2", "-o", "json")
	var v struct {
		OK    *bool            `json:"ok"`
		Means []map[string]any `json:"means"`
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != command.ExitFailed || v.OK == nil || *v.OK || len(v.Means) != 1 ||
		v.Means[0]["published"] != 1.5 {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
}

// TestSimCheckFGD is the real thing for one workload and few seeds.
func TestSimCheckFGD(t *testing.T) {
	data := filepath.Dir(tracetest.Data(t, "openb"))
	tracetest.Data(t, "fgd_expected")
	code, out, errs := simulate(t.Context(), "check", "fgd", "--data", data, "--workload", "default", "--seeds", "1-5")
	if code != 0 || !strings.Contains(out, "6 of 6 means are in their band, 6 of 6 pairs") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}
