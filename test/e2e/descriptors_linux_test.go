package e2e

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// limitFiles sets how many files the running daemon may have open and returns what it was. Those it has stay open.
func (d *daemon) limitFiles(n uint64) uint64 {
	d.t.Helper()
	var before unix.Rlimit
	if err := unix.Prlimit(d.cmd.Process.Pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		d.t.Fatal(err)
	}
	now := unix.Rlimit{Cur: n, Max: before.Max}
	if err := unix.Prlimit(d.cmd.Process.Pid, unix.RLIMIT_NOFILE, &now, nil); err != nil {
		d.t.Fatal(err)
	}
	return before.Cur
}

// A daemon that has no file descriptor left, when it writes a snapshot, begins a segment, reads a result and settles it,
// goes on when there are some: it neither stops nor counts that against the job.
func TestNoDescriptorLeft(t *testing.T) {
	t.Parallel()
	d := up(t, three, "--snapshot-records", "3")
	d.submit(spec("early", "items: {total: 10, perItem: 1ms}", each(":")), "--wait")
	d.submit(spec("runs", "items: {total: 30, perItem: 1s, grid: 30}", `sleep 8; echo whole > "$SLUICE_OUTPUT_DIR/o"`))
	d.running("runs", 1)
	before := d.limitFiles(3)
	said := len(d.log.String())
	d.until("the daemon misses descriptors", func() bool {
		select {
		case <-d.ended:
			t.Fatal("the daemon ended")
		default:
		}
		return strings.Contains(d.log.String()[said:], "finding out how a subjob ended; trying again")
	})
	d.limitFiles(before)
	if j := d.done("runs"); j.Subjobs != 1 || j.Lost != 0 {
		t.Errorf("%d subjobs, %d lost: the daemon's lack of descriptors counted against the job\n%s", j.Subjobs, j.Lost,
			d.must("job", "runs"))
	}
	d.submit(spec("after", "items: {total: 10, perItem: 1ms}", each(":")), "--wait")
	d.kill()
	d.start()
	for _, name := range []string{"early", "after"} {
		d.done(name)
		d.once(name, 10)
	}
}
