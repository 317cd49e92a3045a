package main

import (
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

// script runs lines with the functions of demo.sh, in the folder dir.
func script(t *testing.T, dir, stdin, lines string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed: the demo needs it")
	}
	file, err := filepath.Abs("demo.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-c", ". "+file+"\n"+lines)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func jobs(t *testing.T, name, text string) []*job.Spec {
	t.Helper()
	list, err := config.ParseJobs(name, []byte(text))
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, text)
	}
	var specs []*job.Spec
	for _, j := range list {
		specs = append(specs, j.Spec)
	}
	return specs
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPace: on a slow machine all times of all files are longer by the same, and nothing else is another.
func TestPace(t *testing.T) {
	for _, name := range []string{"atoms.yaml", "blocks.yaml", "bids.yaml"} {
		text := read(t, name)
		stretched, err := script(t, ".", text, "slow=2.5; stretch")
		if err != nil {
			t.Fatalf("%v\n%s", err, stretched)
		}
		asIs, long := jobs(t, name, text), jobs(t, name, stretched)
		if len(long) != len(asIs) {
			t.Fatalf("%s: %d jobs of %d", name, len(long), len(asIs))
		}
		for i, b := range long {
			a := asIs[i]
			for what, of := range map[string][2]time.Duration{
				"walltime": {a.Walltime, b.Walltime}, "unit": {a.PerUnit, b.PerUnit}, "restore": {a.Restore, b.Restore},
				"checkpoint": {a.Checkpoint, b.Checkpoint}, "grace": {a.Launch.Grace, b.Launch.Grace},
			} {
				if of[1] != (of[0]*5/2 + time.Millisecond - 1).Truncate(time.Millisecond) {
					t.Errorf("%s of %s: %s is %v, want %v", name, a.Name, what, of[1], of[0]*5/2)
				}
			}
			if a.Total != b.Total || a.Grid != b.Grid || strings.Join(a.Launch.Command, " ") != strings.Join(b.Launch.Command, " ") {
				t.Errorf("%s: the work of %s is another", name, a.Name)
			}
		}
	}
}

// TestPaceOf: a quarter more than was measured, in quarters; as written on a machine that is about as fast.
func TestPaceOf(t *testing.T) {
	for measured, want := range map[string]string{"0.5": "1", "1.25": "1", "1.3": "1.75", "3": "3.75", "1000": "4"} {
		if got, err := script(t, ".", "0.1\n"+measured+"\n", "pace_of"); err != nil || strings.TrimSpace(got) != want {
			t.Errorf("%s times: pace %q, want %s (%v)", measured, got, want, err)
		}
	}
}

// TestJobFiles: without python3 the rest is still a job file, and the sizes to check are those that are run.
func TestJobFiles(t *testing.T) {
	text := read(t, "demo.sh")
	for name, want := range map[string]int{"atoms.yaml": 3, "blocks.yaml": 6} {
		rest, err := script(t, ".", read(t, name), "python=; without")
		if err != nil {
			t.Fatalf("%v\n%s", err, rest)
		}
		list := jobs(t, name, rest)
		if len(list) != want {
			t.Errorf("%s: %d jobs without train, want %d", name, len(list), want)
		}
		for _, j := range list {
			if j.Name == "train" {
				t.Errorf("%s still has train", name)
			}
		}
		if whole, err := script(t, ".", read(t, name), "python=1; without"); err != nil || whole != read(t, name) {
			t.Errorf("%s with python3: %v\n%s", name, err, whole)
		}
		for _, size := range []string{"5000", "1000", "999983", "320"} {
			if !strings.Contains(read(t, name), size) || !strings.Contains(text, " "+size) {
				t.Errorf("%s does not name the size %s, or demo.sh does not", name, size)
			}
		}
	}
	for _, j := range jobs(t, "bids.yaml", read(t, "bids.yaml")) {
		if want := fmt.Sprintf("%s %d", j.Name, j.Total); !strings.Contains(text, want) || j.External != (string(j.Name) == auctioned) {
			t.Errorf("%s (external: %v) is to be checked as %q", j.Name, j.External, want)
		}
	}
}

// TestPlaceIsHeldOnce: two demos at once work in two folders, and what an earlier one left is gone.
func TestPlaceIsHeldOnce(t *testing.T) {
	got, err := script(t, t.TempDir(), "", `
place; echo $dir; touch $dir/old; (place; echo $dir)
exec {lock}>&-; place; echo $dir; ls $dir`)
	if err != nil || got != ".demo/demo\n.demo/demo-2\n.demo/demo\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestBlockOutputs gives each block the name that the check of the work wants.
func TestBlockOutputs(t *testing.T) {
	got, err := script(t, t.TempDir(), "", `
for job in count-words-1 count-words-2 count-words-3 count-words-4 train growing big-sort; do mkdir -p b/data/output/$job/000-001; done
outputs blocks b; cd b/output; ls -x count-words train growing big-sort/`)
	want := "big-sort/: 000-001 count-words: 0-1250 1250-2500 2500-3750 3750-5000 growing: 0-320 train: 0-1000"
	if fields := strings.Join(strings.Fields(got), " "); err != nil || fields != want {
		t.Errorf("%q, %v", fields, err)
	}
}

// TestShow: where nothing can be drawn again it is a line now and then; at a terminal one line. And who failed is named.
func TestShow(t *testing.T) {
	const list = `jobs='a RUNNING false 5 10 2
b PENDING false 0 1 0
c COMPLETED true 1 1 0
d FAILED true 2 2 0 exit 3'
since() { echo $now; }
`
	got, err := script(t, ".", "", list+`live=; next=0; for now in 0 7 14 15 16 31; do show "1 of 3" 4 x ""; done; failed; over || echo no`)
	want := ""
	for _, at := range []string{"  0s", " 15s", " 31s"} {
		want += "1 of 3 " + at + " [#######.....]  62%  2 of 4 jobs done, 2 slices busy\n"
	}
	if want += "job d is FAILED: exit 3\nno\n"; err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	if got, err = script(t, ".", "", list+`live=1; now=8; show "1 of 3" 4 x "the daemon is killed"`); err != nil ||
		strings.Contains(got, "\n") ||
		!strings.HasPrefix(got, "\r\x1b[K1 of 3") || !strings.HasSuffix(got, "62%  the daemon is killed") {
		t.Errorf("on a terminal it is one line, drawn in place: %q, %v", got, err)
	}
}

// TestWeather: a machine gets a storm that it bears, in lines that are in order, with a tenth of its memory left alone; or it is said why
// not.
func TestWeather(t *testing.T) {
	const mib, gib = int64(1) << 20, int64(1) << 30
	for _, c := range []struct {
		name           string
		level          string
		capacity, used int64
		want           string // why there is none; empty: there is one
	}{
		{"a laptop", "freeze-only", 16 * gib, 6 * gib, ""},
		{"a small container", "full", 4 * gib, gib, ""},
		{"a server", "full", 120 * gib, 100 * gib, ""},
		{"a large server", "full", 1024 * gib, 100 * gib, "a thousandth of this machine's memory"},
		{"a full laptop", "full", 16 * gib, 13 * gib, "a storm is to leave a tenth"},
		{"a tiny container", "full", gib, gib / 4, "a storm is to leave a tenth"},
		{"one that can only look on", "observe", 16 * gib, gib, "observe: signals"},
		{"off", "off", 0, 0, "off: signals"},
		{"one that says nothing", "full", 0, 0, "is not known"},
	} {
		said, err := script(t, ".", "", fmt.Sprintf("weather %s signals %d %d", c.level, c.capacity, c.used))
		if c.want != "" {
			if err == nil || !strings.Contains(said, c.want) {
				t.Errorf("%s: %q, %v, want %q", c.name, said, err, c.want)
			}
			continue
		}
		var unit int64
		var calm, severe, brink float64
		if _, scanned := fmt.Sscan(said, &unit, &calm, &severe, &brink); err != nil || scanned != nil || calm >= severe ||
			severe >= brink || brink > .9 {
			t.Errorf("%s: %q, %v", c.name, said, err)
			continue
		}
		text := fmt.Sprintf("airlock: {calm: %.3f, severe: %.3f, emergency: %.3f, memory: off}\n", calm, severe, brink)
		if _, err := config.ParseDaemon("daemon.yml", []byte(text)); err != nil {
			t.Errorf("%s: its file is\n%s%v", c.name, text, err)
		}
		// All three pass the severe line, also where it was rounded up, and none of them the emergency line; the two that leak have room
		// below the calm one.
		above := func(line float64) int64 { return int64(line*1000+.5)*c.capacity/1000 - c.used }
		all, leaks, own := unit*15/2, unit*9/2, 32*mib
		if all <= above(severe) || all+3*own >= above(brink) || leaks+2*own >= above(calm) {
			t.Errorf("%s: %d MiB in all, %d leak, and the lines are %d, %d and %d MiB above what is in use", c.name, all/mib, leaks/mib,
				above(calm)/mib,
				above(severe)/mib, above(brink)/mib)
		}
	}
}

// TestConcludeStorm: what came of a storm is said, and a job that failed, or a storm that goes on, ends this part.
func TestConcludeStorm(t *testing.T) {
	seen := func(suspended int) string {
		return fmt.Sprintf("seen='\"suspended\": %d,\n\"recovered\": 1,\n\"readdressed\": 0,\n\"reclaimed\": 0,\n'\ndeclare -A "+
			"row=([train]='===')\n", suspended)
	}
	const done = "jobs='train COMPLETED true 1 1 0'\n"
	for _, c := range []struct{ name, lines, want string }{
		{"a storm", seen(1) + done, "All three are complete. Suspended: 1, resumed: 1, asked to yield: 0, ended: 0. Nothing was done to train."},
		{"none", strings.Replace(seen(0), `"recovered": 1`, `"recovered": 0`, 1) + done, "Nothing had to be suspended"},
		{"one that train felt", strings.Replace(seen(1), "===", "=s=", 1) + done, "ended: 0.\n"},
		{"a job that failed", seen(1) + "jobs='train FAILED true 1 1 0 exit 3'\n", "the storm: job train is FAILED: exit 3"},
		{"a job that waits", seen(1) + "stalled=1 jobs='sweep PENDING false 0 1 0 no slice is usable'\n",
			"although there is room: sweep waits: no slice is usable"},
		{"one that goes on", seen(1) + "grown=83886080 jobs='train RUNNING false 0 1 1'\n", "80 MiB more in use than at its start"},
	} {
		got, err := script(t, ".", "", c.lines+"conclude_storm")
		if bad := strings.Contains(c.name, "job") || strings.Contains(c.name, "goes on"); (err != nil) != bad ||
			!strings.Contains(got, c.want) {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

// TestHold: a job of the storm does its units in order, says so, and yields when it is told to end.
func TestHold(t *testing.T) {
	begin := func(from, to, pace string) (*exec.Cmd, string) {
		dir := t.TempDir()
		cmd := exec.Command("bash", "hold.sh", "2000000", "5000000", pace)
		cmd.Env = append(os.Environ(), "SLUICE_FROM="+from, "SLUICE_TO="+to, "SLUICE_OUTPUT_DIR="+dir, "SLUICE_PROGRESS_FILE="+
			filepath.Join(dir, "progress"))
		return cmd, dir
	}
	cmd, dir := begin("2", "5", "0.001")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if done := read(t, filepath.Join(dir, "progress")); done != `{"progress": 5, "checkpoint": false}`+"\n" {
		t.Errorf("it says %q", done)
	}
	if last := read(t, filepath.Join(dir, "unit-0004")); last != "5\n" {
		t.Errorf("it holds %q parts in the end: want five, up to its most", last)
	}
	cmd, dir = begin("0", "2000", "0.01")
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
}

// TestOutsideTheClone says where to run it.
func TestOutsideTheClone(t *testing.T) {
	file, err := filepath.Abs("demo.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", file)
	cmd.Dir = t.TempDir()
	if said, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(said), "root of the clone") {
		t.Errorf("%v\n%s", err, said)
	}
}
