package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRunAgain: a job that failed goes on where it was, through a kill of the daemon; one that is over makes way, and its output
// with it; one that is deleted leaves nothing.
func TestRunAgain(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi")
	d.must("queue", "set", "default", "--max-window", "2s")
	mended := filepath.Join(t.TempDir(), "mended")
	script := each(`[ $i -lt 10 ] || [ -e ` + mended + ` ] || exit 3; sleep 0.1`) // 3 s of a second life, to be asked about
	d.submit(spec("again", "items: {total: 40, perItem: 150ms, grid: 5}", script, "maxFailures: 2", "grace: 200ms"))
	if j := d.over("again"); j.State != "FAILED" || j.Progress == 0 || j.Progress == 40 {
		t.Fatalf("%s at %d of 40: the test shows nothing", j.State, j.Progress)
	}
	before := len(d.job("again").History)
	if err := os.WriteFile(mended, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	says(t, d.must("requeue", "again"), "again requeued")
	d.fails(1, []string{"not over"}, "requeue", "again")
	d.fails(1, []string{"not over", "cancel it first"}, "delete", "again")
	d.kill()
	d.start()
	d.done("again")
	d.once("again", 40)
	if len(d.job("again").History) <= before {
		t.Error("its second life has forgotten the first one's subjobs")
	}
	d.fails(1, []string{"COMPLETED", "--replace"}, "requeue", "again")
	d.fails(1, []string{"over already", "COMPLETED"}, "cancel", "again")

	other := spec("again", "items: {total: 10, perItem: 10ms, grid: 10}", each(":"), "grace: 200ms")
	file := d.write("other.yml", other)
	d.fails(1, []string{"other content", "COMPLETED", "--replace"}, "submit", file)
	says(t, d.must("submit", "--replace", "--wait", file), "again")
	d.once("again", 10)
	says(t, d.must("submit", file), "known already", "COMPLETED")

	d.must("delete", "again")
	if out := d.must("jobs", "-o", "name"); strings.Contains(out, "again") {
		t.Errorf("jobs: %s", out)
	}
	for _, folder := range []string{"output", "logs", "checkpoints"} {
		d.until(folder+" is empty", func() bool {
			left, err := os.ReadDir(filepath.Join(d.data, folder))
			return err == nil && len(left) == 0
		})
	}
	d.submit(other, "--wait")
	d.once("again", 10)
}

// TestPausingUnderARigidJob costs it all it has run: a script has to say that this is meant, and nobody waits for stdin.
func TestPausingUnderARigidJob(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi")
	d.submit(spec("gang", "rigid: {walltime: 10m}", "sleep 500", "grace: 200ms"))
	d.running("gang", 1)
	slice := d.slices()[0].ID
	d.fails(2, []string{"gang (rigid", "starts again from the beginning", "--yes"}, "pause", slice)
	if j := d.job("gang"); j.Running != 1 {
		t.Errorf("it was paused all the same: %+v", j)
	}
	d.must("pause", slice, "--yes")
	d.until("it is stopped", func() bool { return d.job("gang").Running == 0 })
}
