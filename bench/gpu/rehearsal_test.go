package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// timed are the trials that need a machine which is not too busy. They are rehearsed by make gpu-rehearsal alone.
const timed = "training,host"

// command runs a program that a test needs.
func command(t *testing.T, dir string, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// stage is a bundle, and the pretended driver beside it.
type stage struct{ bundle, driver string }

// build builds both. They don't lie below /tmp, of which a subjob has its own.
func build(t *testing.T) stage {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("subjobs run on Linux")
	}
	for _, name := range []string{"gcc", "python3"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%v: the pretended driver is in C, the trials are in Python", err)
		}
	}
	base, err := os.MkdirTemp("/var/tmp", "sluice-gpu-test-") //nolint:usetesting // that of t lies below /tmp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	t.Setenv("TMPDIR", base)
	s := stage{filepath.Join(base, "bundle"), filepath.Join(base, "driver")}
	for _, program := range []struct{ name, cgo, tags string }{{"sluice", "1", "nvml"}, {"sluice-shim", "0", ""}} {
		command(t, "../..", []string{"CGO_ENABLED=" + program.cgo, "CGO_CFLAGS=-O2 -g -Wno-deprecated-declarations"}, "go", "build",
			"-trimpath", "-ldflags", "-s -w", "-tags", program.tags, "-o", filepath.Join(base, program.name), "./cmd/"+program.name)
		put(t, filepath.Join(s.bundle, program.name+packed), pack(t, read(t, filepath.Join(base, program.name))))
	}
	programs, err := filepath.Glob("programs/*.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(programs, "../../sdk/python/sluice.py") {
		put(t, filepath.Join(s.bundle, "programs", filepath.Base(path)), read(t, path))
	}
	header, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(s.driver, "lib"), 0o755); err != nil {
		t.Fatal(err)
	}
	command(t, ".", nil, "gcc", "-Wall", "-Werror", "-shared", "-fPIC", "-O1", "-DNVML_NO_UNVERSIONED_FUNC_DEFS",
		"-I"+filepath.Join(strings.TrimSpace(string(header)), "pkg", "nvml"),
		"-o", filepath.Join(s.driver, "lib", "libnvidia-ml.so.1"), "testdata/nvml/libnvidia-ml.c")
	put(t, filepath.Join(s.driver, "bin", "nvidia-smi"), read(t, "testdata/nvml/nvidia-smi"))
	put(t, filepath.Join(s.driver, "claims", "total"), fmt.Appendf(nil, "%d\n", 2<<30))
	return s
}

// rehearse runs trials of a bundle with its pretended driver.
func (s stage) rehearse(t *testing.T, only []string) (int, string, error) {
	t.Helper()
	for _, name := range []string{"LD_LIBRARY_PATH", "PATH", "GPU_TRIAL_CLAIMS"} {
		t.Setenv(name, os.Getenv(name)) // run sets them, for good
	}
	var out bytes.Buffer
	code, err := run(t.Context(), &settings{bundle: s.bundle, out: filepath.Join(s.driver, "out"), pretended: s.driver,
		budget: 8 * time.Minute, only: only, pace: rehearsed()}, &out)
	t.Log(out.String())
	return code, out.String(), err
}

// The trials hold, with the real daemon, its real inventory and a pretended driver. It is the trials that are tried here, not a GPU.
func TestARehearsal(t *testing.T) {
	s := build(t)
	var only []string
	for _, name := range names() {
		if os.Getenv("SLUICE_GPU_REHEARSAL") == "all" || !strings.Contains(timed, name) {
			only = append(only, name)
		}
	}
	code, out, err := s.rehearse(t, only)
	if code != held || err != nil {
		t.Errorf("exit status %d, %v", code, err)
	}
	if !strings.Contains(out, "no GPU is tried") || strings.Count(out, " held (") != len(only) {
		t.Errorf("want %d trials that held, and that it says what it is", len(only))
	}
	r, err := readResults(filepath.Join(s.driver, "out", "results.json"))
	if err != nil || !r.Rehearsal || len(r.Trials) != len(only) {
		t.Errorf("results %+v, %v", r, err)
	}

	// A trial that does not hold keeps none from being run, and is named.
	t.Setenv("NAME", "Another GPU")
	code, out, err = s.rehearse(t, []string{"isolation", "inventory", "power"})
	if code != heldNot || err == nil || !strings.HasSuffix(err.Error(), "did not hold: inventory") {
		t.Errorf("nvidia-smi has another name: exit status %d, %v", code, err)
	}
	if strings.Count(out, " held (") != 2 || !strings.Contains(out, `"Pretended GPU", nvidia-smi has "Another GPU"`) {
		t.Error("want that the others hold, and why this one did not")
	}

	s.plant(t)

	// Somebody is on the device: nothing is tried.
	t.Setenv("GPU_TRIAL_CLAIMS", filepath.Join(s.driver, "claims"))
	claim := exec.Command("python3", "-c", "import device, sys; d = device.open_device(); print('there', flush=True); sys.stdin.read()")
	claim.Dir = filepath.Join(s.bundle, "programs")
	stdin, err1 := claim.StdinPipe()
	stdout, err2 := claim.StdoutPipe()
	if err1 != nil || err2 != nil || claim.Start() != nil {
		t.Fatalf("a process on the device: %v, %v", err1, err2)
	}
	if _, err := stdout.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	code, _, err = s.rehearse(t, []string{"isolation"})
	if code != heldNot || err == nil || !strings.Contains(err.Error(), "are on the GPU") {
		t.Errorf("somebody is on the device: exit status %d, %v", code, err)
	}
	stdin.Close()
	claim.Wait()
}

// plant breaks programs in a copy of the bundle, so that what they show is not there: their trials must not hold.
func (s stage) plant(t *testing.T) {
	t.Helper()
	broken := stage{s.bundle + "-broken", s.driver}
	if err := os.CopyFS(broken.bundle, os.DirFS(s.bundle)); err != nil {
		t.Fatal(err)
	}
	faults := []struct{ trial, program, code, instead, why string }{
		{"memory", "hold.py", `int(os.environ["SIZE"])`, `int(os.environ["SIZE"]) // 2`, "the observed peak is"},
		{"outgrow", "outgrow.py", "kept.append(gpu.take(piece))", `raise ValueError("another fault")`,
			"memory: the subjob ended as FAILED"},
		{"training", "train.py", "net = job.resume(net.load)", "pass", "the weights of the cut run are"},
	}
	var only []string
	for _, f := range faults {
		if f.trial == "training" && os.Getenv("SLUICE_GPU_REHEARSAL") != "all" {
			continue
		}
		only = append(only, f.trial)
		path := filepath.Join(broken.bundle, "programs", f.program)
		was := string(read(t, path))
		if !strings.Contains(was, f.code) {
			t.Fatalf("%s has no %q to break", f.program, f.code)
		}
		put(t, path, []byte(strings.Replace(was, f.code, f.instead, 1)))
	}
	code, out, err := broken.rehearse(t, only)
	if code != heldNot || err == nil || !strings.HasSuffix(err.Error(), "did not hold: "+strings.Join(only, ", ")) {
		t.Errorf("broken programs: exit status %d, %v; want that %v do not hold", code, err, only)
	}
	for _, f := range faults[:len(only)] {
		if !strings.Contains(out, f.why) {
			t.Errorf("%s: it does not say %q", f.trial, f.why)
		}
	}
}

// stub is an interpreter that does the same whatever it is given.
func stub(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "python3")
	put(t, path, []byte("#!/bin/sh\n"+script+"\n"))
	return path
}

func tryWith(t *testing.T, python string) (int, string, error) {
	t.Helper()
	bundle := t.TempDir()
	put(t, filepath.Join(bundle, "programs", "witness.py"), nil)
	var out bytes.Buffer
	code, err := run(t.Context(), &settings{bundle: bundle, python: python, out: filepath.Join(bundle, "out"), budget: time.Minute,
		pace: full()}, &out)
	return code, out.String(), err
}

func TestWithoutAGPU(t *testing.T) {
	code, out, err := tryWith(t, stub(t, "echo no NVIDIA driver here >&2; exit 3"))
	if code != 3 || err != nil || !strings.HasPrefix(out, "no GPU: ") || !strings.Contains(out, "no NVIDIA driver here") {
		t.Errorf("exit status %d, %v, %q; want 3, and that it says no GPU, and why", code, err, out)
	}
	// With a driver it is no such case, whatever else is wrong.
	for what, script := range map[string]string{
		"a witness that fails": "echo it broke >&2; exit 1",
		"no PyTorch": `case $1 in witness.py) echo '{"driver": "1", "gpus": [{"uuid": "GPU-1"}]}' ;; ` +
			`*) echo '{"trouble": "no PyTorch: it is not there"}' ;; esac`,
		"nonsense": "echo nonsense",
	} {
		if code, _, err := tryWith(t, stub(t, script)); code != heldNot || err == nil {
			t.Errorf("%s: exit status %d, %v; want 1 with why", what, code, err)
		}
	}
	if _, _, err := tryWith(t, stub(t, "exit 0")); err == nil {
		t.Error("a witness that says nothing is believed")
	}
}

// The program that looks for a GPU, as it is, where there is none.
func TestTheWitnessWithoutADriver(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	if _, err := os.Stat("/dev/nvidiactl"); err == nil {
		t.Skip("there is a driver")
	}
	cmd := exec.CommandContext(context.Background(), "python3", "witness.py", "--list")
	cmd.Dir = "programs"
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != noGPU || !strings.Contains(string(out), "NVIDIA driver") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestOnly(t *testing.T) {
	some, err := wanted([]string{"memory", " isolation"})
	if err != nil || len(some) != 2 || some[0].name != "isolation" {
		t.Errorf("%v, %v", some, err)
	}
	if _, err = wanted([]string{"memory", "mems"}); err == nil || !strings.Contains(err.Error(), `"mems"`) {
		t.Errorf("an unknown trial: %v", err)
	}
	var all time.Duration
	for _, t := range trials() {
		all += t.limit
	}
	if all < 9*time.Minute {
		t.Errorf("the limits sum up to %v: none would be cut by the budget, which then bounds nothing", all)
	}
}
