// Package examples_test runs the examples by the subjob's contract, cut into pieces, one of them ended early, and demands
// that each check accepts the result and refuses a damaged one.
package examples_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/config"
)

// example is one folder, run at a size that takes seconds.
type example struct {
	name string
	// total units of the small run, given to the program by env and to the check as its second argument.
	total int64
	size  string
	env   []string
	kind  job.Kind
	// cuts are where the pieces end.
	cuts []int64
	// damage is the file that is changed to see the check refuse.
	damage string
}

func examples() []example {
	return []example{
		{name: "items", kind: job.Items, total: 150, size: "150", env: []string{"PACE=0"}, cuts: []int64{7, 60, 150},
			damage: "counts-000007"},
		{name: "steps", kind: job.Steps, total: 200, size: "200", env: []string{"TOTAL_STEPS=200"}, cuts: []int64{100, 200},
			damage: "weights.json"},
		{name: "rigid", kind: job.Rigid, total: 1, size: "19997", env: []string{"PRIME=19997", "ROOT=1004"}, cuts: []int64{1},
			damage: "sorted"},
		{name: "growing", kind: job.Items, total: 40, size: "40", env: []string{"PACE=0"}, cuts: []int64{15, 40}, damage: "values-15"},
		{name: "agents/frames", kind: job.Items, total: 60, size: "60", env: []string{"PACE=0.01"}, cuts: []int64{10, 60},
			damage: "frames-10"},
		{name: "agents/chain", kind: job.Steps, total: 50, size: "50", env: []string{"TOTAL_STEPS=50", "FIRST=0.001"},
			cuts: []int64{20, 50}, damage: "result"},
	}
}

// spec reads and checks the example's job file.
func (e example) spec(t *testing.T) *job.Spec {
	t.Helper()
	file := filepath.Join(e.name, "job.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	spec, workdir, err := config.ParseJob(file, data)
	if err != nil {
		t.Fatal(err)
	}
	if workdir != "." || spec.Kind != e.kind {
		t.Fatalf("workdir %q, kind %v: want . and %v", workdir, spec.Kind, e.kind)
	}
	return spec
}

// bench is a place to run an example in.
type bench struct {
	t      *testing.T
	e      example
	spec   *job.Spec
	dir    string
	resume string
}

func newBench(t *testing.T, e example) *bench {
	t.Helper()
	spec := e.spec(t)
	if _, err := exec.LookPath(spec.Launch.Command[0]); err != nil {
		t.Skipf("%s is not installed: the example %s needs it", spec.Launch.Command[0], e.name)
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "work"), os.DirFS(e.name)); err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, e: e, spec: spec, dir: dir}
}

func (b *bench) path(names ...string) string {
	return filepath.Join(append([]string{b.dir}, names...)...)
}

// piece runs [from, to) and returns how far the program says it came. act, if not nil, is called while it runs. The
// output folder gets the name of what counts, as it does when it is committed.
func (b *bench) piece(from, to int64, act func(*exec.Cmd)) int64 {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	output, checkpoint, progress, notice := b.path("running"), b.path(fmt.Sprintf("checkpoint-%d", from)), b.path("progress.json"),
		b.path("notice.json")
	for _, dir := range []string{output, checkpoint, b.path("output")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.t.Fatal(err)
		}
	}
	_, _ = os.Remove(progress), os.Remove(notice)

	cmd := exec.CommandContext(ctx, b.spec.Launch.Command[0], b.spec.Launch.Command[1:]...)
	cmd.Dir = b.path("work")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Env = append(os.Environ(),
		"PYTHONDONTWRITEBYTECODE=1", "SLUICE_JOB="+b.e.name, "SLUICE_SUBJOB=1-1", fmt.Sprintf("SLUICE_FROM=%d", from),
		fmt.Sprintf("SLUICE_TO=%d", to),
		"SLUICE_DEADLINE="+time.Now().Add(time.Hour).Format(time.RFC3339Nano), "SLUICE_MEMORY_BYTES=1073741824",
		"SLUICE_PROGRESS_FILE="+progress, "SLUICE_NOTICE_FILE="+notice, "SLUICE_OUTPUT_DIR="+output, "SLUICE_CHECKPOINT_DIR="+checkpoint)
	if b.resume != "" {
		cmd.Env = append(cmd.Env, "SLUICE_RESUME_DIR="+b.resume)
	}
	cmd.Env = append(cmd.Env, b.e.env...)
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	if act != nil {
		act(cmd)
	}
	err := cmd.Wait()
	reached := to
	var said struct {
		Progress   int64
		Checkpoint bool
	}
	if data, readErr := os.ReadFile(progress); readErr == nil {
		if jsonErr := json.Unmarshal(data, &said); jsonErr != nil {
			b.t.Fatalf("progress file %q: %v", data, jsonErr)
		}
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == 85 && act != nil:
		reached = said.Progress
	case err != nil:
		b.t.Fatalf("[%d,%d): %v\n%s", from, to, err, stderr.String())
	case b.e.kind == job.Items && said.Progress != to, b.e.kind == job.Steps && to < b.e.total && !said.Checkpoint:
		b.t.Fatalf("[%d,%d): exit 0 with progress %+v", from, to, said)
	}
	if reached > from && b.e.kind == job.Steps {
		b.resume = checkpoint
	}
	if reached > from {
		if err := os.Rename(output, b.path("output", fmt.Sprintf("%012d-%012d", from, reached))); err != nil {
			b.t.Fatal(err)
		}
	} else if err := os.RemoveAll(output); err != nil {
		b.t.Fatal(err)
	}
	return reached
}

// check runs the example's check and returns what it says and whether it accepts.
func (b *bench) check() (string, bool) {
	b.t.Helper()
	out, err := exec.CommandContext(b.t.Context(), filepath.Join(b.e.name, "check.sh"), b.path("output"), b.e.size).CombinedOutput()
	return string(out), err == nil
}

func TestPiecesMakeTheWhole(t *testing.T) {
	for _, e := range examples() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, e)
			from := int64(0)
			for _, to := range e.cuts {
				if from > 0 && to == e.total {
					if said, ok := b.check(); ok || !strings.HasPrefix(said, "not ok: ") {
						t.Errorf("the check of an unfinished run says %q, %v", said, ok)
					}
				}
				b.piece(from, to, nil)
				from = to
			}
			if said, ok := b.check(); !ok || !strings.HasPrefix(said, "ok: ") {
				t.Fatalf("check: %s", said)
			}
			b.damage()
			if said, ok := b.check(); ok || !strings.HasPrefix(said, "not ok: ") {
				t.Errorf("the check of a damaged run says %q, %v", said, ok)
			}
		})
	}
}

// damage adds one to the last digit of the first line of the example's file.
func (b *bench) damage() {
	b.t.Helper()
	files, err := filepath.Glob(b.path("output", "*", b.e.damage))
	if err != nil || len(files) != 1 {
		b.t.Fatalf("files to damage: %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		b.t.Fatal(err)
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	at := bytes.LastIndexAny(line, "0123456789")
	data[at] = '0' + (data[at]-'0'+1)%10
	if err := os.WriteFile(files[0], data, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// TestEndedEarly tells the program in the middle, as its supervisor does at the deadline, to yield: it does, and the rest is done by
// others.
func TestEndedEarly(t *testing.T) {
	for _, e := range examples() {
		if e.kind == job.Rigid {
			continue // a rigid job has no middle
		}
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, e)
			first := b.piece(0, e.total, func(cmd *exec.Cmd) {
				for {
					_, err := os.Stat(b.path("progress.json"))
					if err == nil {
						break
					}
					time.Sleep(5 * time.Millisecond)
				}
				until := time.Now().Add(time.Minute).UTC().Format(time.RFC3339)
				said := fmt.Sprintf(`{"sequence":1,"kind":"yield","until":%q,"uptime":1e9,"why":"its lease ends"}`, until)
				if err := os.WriteFile(b.path("notice.new"), []byte(said), 0o600); err != nil {
					t.Error(err)
				}
				if err := os.Rename(b.path("notice.new"), b.path("notice.json")); err != nil {
					t.Error(err)
				}
				if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil {
					t.Error(err)
				}
			})
			if first <= 0 || first >= e.total {
				t.Fatalf("it came to %d of %d: want it to stop in between", first, e.total)
			}
			b.piece(first, e.total, nil)
			if said, ok := b.check(); !ok {
				t.Fatalf("check: %s", said)
			}
		})
	}
}

// TestStepsCarriesTheSDK keeps the copy in examples/steps the same as the SDK.
func TestStepsCarriesTheSDK(t *testing.T) {
	want, err := os.ReadFile(filepath.FromSlash("../sdk/python/sluice.py"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.FromSlash("steps/sluice.py"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("examples/steps/sluice.py differs from sdk/python/sluice.py: copy it again")
	}
}

// TestDemoJobs reads the demo's job files as submission does, and finds what they name.
func TestDemoJobs(t *testing.T) {
	for name, want := range map[string]int{"atoms.yaml": 4, "blocks.yaml": 7} {
		file := filepath.Join("demo", name)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		list, err := config.ParseJobs(file, data)
		if err != nil {
			t.Error(err)
		}
		if len(list) != want {
			t.Errorf("%s has %d jobs, want %d", file, len(list), want)
		}
		for _, j := range list {
			if _, err := os.Stat(filepath.Join("demo", j.Workdir, "check.sh")); err != nil {
				t.Errorf("%s, job %s: workdir %s: %v", file, j.Spec.Name, j.Workdir, err)
			}
			if name == "blocks.yaml" && j.Spec.Kind != job.Rigid {
				t.Errorf("%s, job %s is not rigid", file, j.Spec.Name)
			}
		}
	}
}
