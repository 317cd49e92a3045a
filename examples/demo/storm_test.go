package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/edge/config"
)

// TestMain lets the program under test be the test's own: a job of the storm is what it runs as then.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == holding {
		if err := hold(os.Args[2:]); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func memoryOf(level string, capacity, used int64) *pb.Airlock {
	return &pb.Airlock{Level: level, Kind: "tree", Why: "signals", Memory: &pb.MemoryReading{CapacityBytes: capacity, UsedBytes: used}}
}

// TestForecast: a machine gets a storm that it bears, in lines that are in order, with a tenth of its memory left alone; or it is said why not.
func TestForecast(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		name string
		a    *pb.Airlock
		want string // why there is none; empty: there is one
	}{
		{"a laptop", memoryOf("freeze-only", 16*gib, 6*gib), ""},
		{"a small container", memoryOf("full", 4*gib, gib), ""},
		{"a server", memoryOf("full", 120*gib, 100*gib), ""},
		{"a large server", memoryOf("full", 1024*gib, 100*gib), "a thousandth of this machine's memory"},
		{"a full laptop", memoryOf("full", 16*gib, 13*gib), "a storm is to leave a tenth"},
		{"a tiny container", memoryOf("full", gib, gib/4), "a storm is to leave a tenth"},
		{"one that can only look on", memoryOf("observe", 16*gib, gib), "observe: signals"},
		{"off", memoryOf("off", 0, 0), "off: signals"},
		{"one that says nothing", &pb.Airlock{Level: "full"}, "is not known"},
	} {
		w, err := forecast(c.a)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.name, err, c.want)
			}
			continue
		}
		if err != nil || w.calm >= w.severe || w.severe >= w.emergency || w.emergency > 900 {
			t.Errorf("%s: %+v, %v", c.name, w, err)
			continue
		}
		d, err := config.ParseDaemon("daemon.yml", []byte(w.file()))
		if err != nil || d.Airlock.Lines.Severe != w.severe || d.Airlock.Lines.Calm != w.calm || d.Airlock.Lines.Emergency != w.emergency || !d.Subjobs.SharedTmp {
			t.Errorf("%s: its file is\n%s%+v, %v", c.name, w.file(), d.Airlock, err)
		}
		jobs, err := config.ParseJobs("jobs", []byte(w.jobs("/bin/a program")))
		if err != nil || len(jobs) != 3 || jobs[0].Spec.Divisible() || !jobs[1].Spec.Divisible() || !jobs[2].Spec.Divisible() || jobs[0].Spec.Launch.Command[0] != "/bin/a program" {
			t.Errorf("%s: the jobs are %+v, %v", c.name, jobs, err)
		}
		// All three pass the severe line, also where it was rounded up, and none of them the emergency line; the two that leak have room below the calm one.
		above := func(line int64) int64 { return line*c.a.Memory.CapacityBytes/1000 - c.a.Memory.UsedBytes }
		all, leaks := w.bytes(trainHas+2*sweepHas), w.bytes(2*sweepHas)
		if all <= above(w.severe) || all+3*own >= above(w.emergency) || leaks+2*own >= above(w.calm) {
			t.Errorf("%s: %d MiB in all, %d leak, and the lines are %d, %d and %d MiB above what is in use", c.name, all/mib, leaks/mib, above(w.calm)/mib, above(w.severe)/mib, above(w.emergency)/mib)
		}
	}
}

// TestSight: what was seen is drawn as it was, on one screen however long it took, and what came of it is said.
func TestSight(t *testing.T) {
	job := func(name string, running int32, over bool) *pb.Job {
		state := pb.Job_RUNNING
		if over {
			state = pb.Job_COMPLETED
		}
		return &pb.Job{Name: name, Running: running, Final: over, State: state}
	}
	before := memoryOf("full", 1000<<20, 100<<20)
	lock := func(used int64, stands ...*pb.Stand) *pb.Airlock {
		a := memoryOf("full", 1000<<20, used<<20)
		a.SevereBytes, a.Stands, a.Counts = 200<<20, stands, &pb.AirlockCounts{Suspended: 1, Recovered: 1}
		return a
	}
	s := &sight{rows: map[string][]byte{}}
	s.take(before, lock(95), []*pb.Job{job("train", 1, false), job("sweep", 1, false), job("scratch", 0, false)})
	s.take(before, lock(155), []*pb.Job{job("train", 1, false), job("sweep", 1, false), job("scratch", 1, false)})
	s.take(before, lock(205, &pb.Stand{Job: "scratch", State: pb.Stand_SUSPENDED}, &pb.Stand{Job: "sweep", State: pb.Stand_YIELDING}), []*pb.Job{job("train", 1, false), job("sweep", 1, false), job("scratch", 1, false)})
	if s.over {
		t.Error("it is over")
	}
	s.take(before, lock(100), []*pb.Job{job("train", 0, true), job("sweep", 0, true), job("scratch", 0, true)})
	var out bytes.Buffer
	s.draw(&out)
	for _, want := range []string{"  memory   05#0\n", "  train    ===\n", "  sweep    ==y\n", "  scratch  .=s\n", "A character for each 250ms."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	out.Reset()
	if err := s.conclude(&out); err != nil || !s.over || !strings.Contains(out.String(), "All three are complete: 1 stood still, 1 went on") || !strings.Contains(out.String(), "Nothing was done to train") {
		t.Errorf("%v\n%s", err, out.String())
	}
	s.last.Counts = nil
	out.Reset()
	if err := s.conclude(&out); err != nil || !strings.Contains(out.String(), "Nothing had to stand still") {
		t.Errorf("%v\n%s", err, out.String())
	}
	s.bad = errors.New("job train is FAILED")
	if err := s.conclude(&out); err == nil || !strings.Contains(err.Error(), "train is FAILED") {
		t.Errorf("%v", err)
	}
	for range 400 {
		s.take(before, lock(180), []*pb.Job{job("train", 1, false), job("sweep", 1, false), job("scratch", 1, false)})
	}
	if err := s.conclude(&out); err == nil || !strings.Contains(err.Error(), "80 MiB more in use than at its start") {
		t.Errorf("%v", err)
	}
	out.Reset()
	s.draw(&out)
	for line := range strings.Lines(out.String()) {
		if len(line) > 150 {
			t.Errorf("%d characters in %q", len(line), line)
		}
	}
}

// TestHold: a job of the storm does its units in order, says so, and yields when it is told to end.
func TestHold(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	begin := func(from, to, pace string) (*exec.Cmd, string) {
		dir := t.TempDir()
		cmd := exec.Command(self, holding, "100000", "250000", pace)
		cmd.Env = append(os.Environ(), "SLUICE_FROM="+from, "SLUICE_TO="+to, "SLUICE_OUTPUT_DIR="+dir, "SLUICE_PROGRESS_FILE="+filepath.Join(dir, "progress"))
		return cmd, dir
	}
	cmd, dir := begin("2", "5", "1ms")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	done, err := os.ReadFile(filepath.Join(dir, "progress"))
	if err != nil || string(done) != `{"progress": 5, "checkpoint": false}` {
		t.Errorf("%s, %v", done, err)
	}
	if last, err := os.ReadFile(filepath.Join(dir, "unit-0004")); err != nil || string(last) != "3\n" {
		t.Errorf("it holds %q parts in the end, %v: want three, up to its most", last, err)
	}
	cmd, dir = begin("0", "2000", "10ms")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for { // it listens from before its first unit on
		if _, err := os.Stat(filepath.Join(dir, "progress")); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 85 {
		t.Errorf("told to end it ends with %v", err)
	}
	if err := exec.Command(self, holding, "1", "x").Run(); err == nil {
		t.Error("it begins with too little said")
	}
}

// TestAStormThatFails says so, and is an error.
func TestAStormThatFails(t *testing.T) {
	t.Chdir(t.TempDir())
	var out bytes.Buffer
	if err := storm(t.Context(), &out, filepath.Join(t.TempDir(), "storm")); err == nil ||
		!strings.Contains(out.String(), "It did not end well: ") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
