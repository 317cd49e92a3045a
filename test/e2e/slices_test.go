package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sliceView is what the tests read of a slice.
type sliceView struct{ ID, State, Reason, Job string }

func (d *daemon) slices() (list []sliceView) {
	d.t.Helper()
	if err := json.Unmarshal([]byte(d.must("slices", "-o", "json")), &list); err != nil {
		d.t.Fatal(err)
	}
	return list
}

// A provider takes the large slice: the subjob there is warned, what it checkpointed counts, the rest goes on elsewhere.
func TestReclaimedWorkGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi+64Mi")
	d.submit(spec("moves", "steps: {total: 50, perStep: 400ms, every: 1}", say+`trap 'exit 85' TERM
i=$SLUICE_FROM; while [ $i -lt $SLUICE_TO ]; do sleep 0.2; echo $i >> "$SLUICE_OUTPUT_DIR/units"; i=$((i+1))
	echo $i > "$SLUICE_CHECKPOINT_DIR/c"; say $i; done`, "grace: 500ms"))
	d.running("moves", 1)
	time.Sleep(500 * time.Millisecond)
	from := d.job("moves").History[0].Slice
	d.must("reserve", from, "--kind", "reclaim", "--start", "+1s", "--truncate")
	j := d.done("moves")
	d.once("moves", 50)
	if len(j.History) < 2 || j.History[1].Slice == from {
		t.Errorf("it did not go on elsewhere:\n%s", d.must("job", "moves"))
	}
	if first := j.History[0]; first.Outcome != "yielded" {
		t.Errorf("the subjob on the reclaimed slice: %s %s", first.Outcome, first.Detail)
	}
}

func TestPausedSlices(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi")
	slice := d.slices()[0].ID
	d.must("pause", slice, "--for", "1h")
	d.submit(spec("waits", "items: {total: 10, perItem: 1ms}", each(":")))
	if j := d.job("waits"); j.State != "PENDING" || j.Reason == "" {
		t.Errorf("%s: %q, want a reason to wait", j.State, j.Reason)
	}
	says(t, d.must("explain", "waits"), slice)
	d.must("resume", slice) // early
	d.done("waits")
	d.submit(spec("cut", "items: {total: 10, perItem: 2s, grid: 1}", each(`sleep 0.2; [ $i -lt 5 ] || `+d.opened("cut")), "grace: 200ms",
		"maxFailures: 1000"))
	d.until("it has done something", func() bool { return len(d.job("cut").History) > 0 && d.job("cut").Running == 1 })
	time.Sleep(700 * time.Millisecond)
	d.must("pause", slice, "--for", "1s")
	d.write("cut", "")
	d.done("cut")
	d.once("cut", 10)
}

func TestMaintenanceAndServingHours(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi")
	slice := d.slices()[0].ID
	id := strings.Fields(d.must("reserve", slice, "--kind", "serving", "--start", "+1500ms", "--for", "1s", "--every", "3s"))
	d.submit(spec("shrinks", "items: {total: 20, perItem: 150ms}", each("sleep 0.1"), "grace: 100ms", "startup: 100ms"))
	d.until("a window ended before the job", func() bool { j := d.job("shrinks"); return j.Subjobs >= 2 || j.State == "COMPLETED" })
	d.must("unreserve", id[len(id)-1]) // a busy machine may need longer than these windows to start a program
	j := d.done("shrinks")
	d.once("shrinks", 20)
	if j.Subjobs < 2 {
		t.Errorf("%d subjobs: the windows had no end\n%s", j.Subjobs, d.must("job", "shrinks"))
	}
	d.fails(1, []string{"has no reservation"}, "unreserve", id[len(id)-1])
	d.must("reserve", "--all", "--kind", "drain")
	_, errs, code := d.as([]byte(spec("drained", "items: {total: 20, perItem: 150ms}", each(":"))), "submit", "-f", "-", "--wait",
		"--timeout", "300ms")
	if code != 4 {
		t.Errorf("waiting behind a drain: exit %d: %s", code, errs)
	}
	says(t, d.must("explain", "drained"), "drain")
}

// A supervisor that is killed takes its tree along; nothing is left in the slice's way, and the work is done again.
func TestKilledSupervisor(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi")
	d.submit(spec("orphan", "items: {total: 10, perItem: 1s, grid: 1}", each("sleep 0.5"), "grace: 200ms"))
	d.running("orphan", 1)
	runs := d.data + "/runs"
	d.until("its supervisor is killed", func() bool {
		entries, _ := os.ReadDir(runs)
		for _, e := range entries {
			if data, err := os.ReadFile(runs + "/" + e.Name() + "/shim.json"); err == nil {
				var note struct{ PID int }
				if json.NewDecoder(bytes.NewReader(data)).Decode(&note) == nil && note.PID > 1 {
					return syscall.Kill(note.PID, syscall.SIGKILL) == nil
				}
			}
		}
		for pid := range supervisors(d.data) {
			return syscall.Kill(pid, syscall.SIGKILL) == nil
		}
		return false
	})
	d.done("orphan")
	d.once("orphan", 10)
	for _, s := range d.slices() {
		if s.State == "quarantined" {
			t.Errorf("slice %s: %s", s.ID, s.Reason)
		}
	}
}

// A program that kills its supervisor, or itself with SIGKILL, is no better than one that exits with a failure: its job has failed after
// maxFailures, and says by what.
func TestProgramsThatKill(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi+64Mi")
	d.submit(spec("itself", "steps: {total: 10, perStep: 1s, every: 1}",
		`echo now I go >&2; kill -KILL $$`, "maxFailures: 2", "grace: 200ms"))
	if j := d.over("itself"); j.State != "FAILED" || !strings.Contains(j.Reason, "2 times in a row") ||
		!strings.Contains(j.Reason, "which Sluice did not send") || !strings.Contains(j.Reason, "now I go") {
		t.Errorf("%s: %s", j.State, j.Reason)
	}
	d.submit(spec("others", "items: {total: 20, perItem: 1s, parallelism: 2}",
		`echo now it goes >&2; sleep 600`, "maxFailures: 2", "grace: 200ms"))
	began := regexp.MustCompile(`"PID":(\d+).*"At":[1-9]`)
	d.until("it has failed", func() bool { // in a namespace of its own it sees no supervisor: this does it in its place
		notes, _ := filepath.Glob(d.data + "/runs/*/shim.json")
		for _, path := range notes {
			data, _ := os.ReadFile(path)
			said, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "stderr.log"))
			if of := began.FindSubmatch(data); of != nil && len(said) > 0 {
				if pid, err := strconv.Atoi(string(of[1])); err == nil && supervisors(d.data)[pid] {
					_ = syscall.Kill(pid, syscall.SIGKILL) // it may be over
				}
			}
		}
		return d.job("others").State == "FAILED"
	})
	if j := d.over("others"); !strings.Contains(j.Reason, "2 times in a row") ||
		!strings.Contains(j.Reason, "the supervisor died") || !strings.Contains(j.Reason, "now it goes") {
		t.Errorf("%s: %s", j.State, j.Reason)
	}
}

// Supervisors wait for the next subjob, and end with their daemon, however that ends: one that has a subjob when that is over.
func TestNoProcessOutlivesItsDaemon(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi+64Mi")
	d.submit(spec("first", "items: {total: 4, perItem: 1ms, grid: 1}", each(":")), "--wait")
	for _, end := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		d.submit(spec(fmt.Sprintf("before-%d", end), "items: {total: 4, perItem: 1ms, grid: 1}", each(":")), "--wait")
		if len(supervisors(d.data)) == 0 {
			t.Error("no supervisor waits for the next subjob")
		}
		d.end(end)
		d.until("everything to end", func() bool { return len(mentions(d.data)) == 0 })
		d.start()
		name := fmt.Sprintf("during-%d", end)
		d.submit(spec(name, "items: {total: 1, perItem: 10s}", "sleep 5", "grace: 200ms"))
		d.running(name, 1)
		d.end(end)
		d.until("the subjob and its supervisor to end", func() bool { return len(mentions(d.data)) == 0 })
		d.start()
		d.done(name)
	}
}

// mentions are the processes that name a directory in their arguments or environment.
func mentions(dir string) (pids []string) {
	list, _ := os.ReadDir("/proc")
	for _, e := range list {
		args, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		env, _ := os.ReadFile("/proc/" + e.Name() + "/environ")
		if strings.Contains(string(args)+string(env), dir) {
			pids = append(pids, e.Name())
		}
	}
	return pids
}

// supervisors are the processes that supervise run directories below data, or wait for one. The init of a subjob shows the arguments of
// its supervisor.
func supervisors(data string) map[int]bool {
	found := map[int]bool{}
	list, _ := os.ReadDir("/proc")
	for _, e := range list {
		var pid int
		if _, err := fmt.Sscan(e.Name(), &pid); err != nil {
			continue
		}
		args, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		name, _ := os.ReadFile("/proc/" + e.Name() + "/comm")
		if parts := strings.Split(string(args), "\x00"); len(parts) > 2 && strings.HasSuffix(parts[0], "sluice-shim") &&
			strings.HasPrefix(parts[2], data+"/") && !strings.HasPrefix(string(name), "sluice-init") {
			found[pid] = true
		}
	}
	return found
}

// Memory that grows with progress: the job starts where it seemed to fit, is ended there, learns, and goes on where it
// does.
func TestMemoryOutgrowsTheSlice(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=24Mi+200Mi")
	// The first half needs little; the second about 60 MiB, though the profile says 16.
	grow := `if [ $i -ge 5 ]; then x=$(head -c 30000000 /dev/zero | tr '\0' 'x'); sleep 0.3; fi`
	d.submit(spec("grows", "items: {total: 10, perItem: 500ms, grid: 1}", each(grow), "memory: 16Mi"))
	// keeps the large one busy at first
	d.submit(spec("blocks", "items: {total: 4, perItem: 600ms, grid: 4}", each("sleep 0.3"), "memory: 150Mi"))
	j := d.done("grows")
	d.once("grows", 10)
	last := j.History[len(j.History)-1]
	if !strings.Contains(last.Slice, "200Mi") {
		t.Errorf("the last subjob ran on %s\n%s", last.Slice, d.must("job", "grows"))
	}
	killed := false
	for _, s := range j.History {
		killed = killed || s.Outcome == "memory" || strings.Contains(s.Outcome, "memory")
	}
	if killed && j.MemoryScale <= 1000 {
		t.Errorf("a memory kill did not raise the profile: scale %d", j.MemoryScale)
	}
	d.done("blocks")
}
