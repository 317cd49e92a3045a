package e2e

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// onSmallDisk puts the data directory onto a disk of its own with so many bytes.
func onSmallDisk(t *testing.T, size int) *daemon {
	t.Helper()
	d := newDaemon(t, three)
	if err := os.Mkdir(d.data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("sluice-e2e", d.data, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("skipped: a small disk can't be mounted here: %v", err)
	}
	t.Cleanup(func() {
		d.kill()
		endBelow(d.data)
		if err := syscall.Unmount(d.data, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", d.data, err)
		}
	})
	return d
}

// fill takes all the room there is and returns what gives it back.
func (d *daemon) fill() func() {
	d.t.Helper()
	path := filepath.Join(d.data, "filler")
	f, err := os.Create(path)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	for size := 64 << 10; size > 0; size /= 2 { // to the last byte
		for {
			if _, err := f.Write(make([]byte, size)); err != nil {
				break
			}
		}
	}
	return func() {
		if err := os.Remove(path); err != nil {
			d.t.Fatal(err)
		}
	}
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	d := onSmallDisk(t, 8<<20)
	d.start()
	d.submit(spec("early", "items: {total: 10, perItem: 1ms}", each(":")), "--wait")
	d.submit(spec("unwanted", "items: {total: 10, perItem: 1ms}", each(":")), "--wait")
	freed := filepath.Join(d.dir, "freed") // beside the disk
	d.submit(spec("runs", "items: {total: 30, perItem: 10s, grid: 30}",
		`until [ -e `+freed+` ]; do sleep 0.05; done; echo whole > "$SLUICE_OUTPUT_DIR/o"`))
	d.running("runs", 1)
	room := d.fill()
	var said string
	late := 0 // one that was accepted is known, whatever the disk says
	d.until("a submission is refused", func() bool {
		late++
		_, errs, code := d.as([]byte(spec(fmt.Sprint("late-", late), "items: {total: 10, perItem: 1ms}", each(":"), "env: {PADDING: "+
			strings.Repeat("x", 60000)+"}")), "submit", "-f", "-")
		said = errs
		return code != 0
	})
	says(t, said, "no space")
	d.until("about says it", func() bool { return strings.Contains(d.must("status"), "no space") })
	says(t, d.must("jobs"), "early", "runs") // it still answers
	d.until("a job can be deleted, which makes room", func() bool { _, _, code := d.sluice("delete", "unwanted"); return code == 0 })
	room()
	d.write("freed", "")
	if j := d.done("runs"); j.Subjobs != 1 {
		t.Errorf("%d subjobs, %d lost: what ran did not survive\n%s", j.Subjobs, j.Lost, d.must("job", "runs"))
	}
	d.until("about is content", func() bool { return !strings.Contains(d.must("status"), "no space") })
	d.submit(spec("after", "items: {total: 10, perItem: 1ms}", each(":")), "--wait")
	d.kill()
	d.start()
	for _, name := range []string{"early", "after"} {
		d.done(name)
		d.once(name, 10)
	}
}

// A daemon that is started on a full disk says so, or lives on the room left in its last block; both lose nothing.
func TestStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	d := onSmallDisk(t, 4<<20)
	d.start()
	d.submit(spec("early", "items: {total: 10, perItem: 1ms}", each(":")), "--wait")
	d.kill()
	room := d.fill()
	d.launch()
	d.until("the daemon says what is wrong", func() bool { return strings.Contains(d.log.String(), "no space left on device") })
	room()
	d.kill()
	d.start()
	d.done("early")
	d.once("early", 10)
	d.submit(spec("after", "items: {total: 10, perItem: 1ms}", each(":")), "--wait")
	d.once("after", 10)
}

// TestASubjobThatFillsTheDisk is the failure of its own job, which is named, and nobody else's: what runs beside it completes, what waits
// is sold its slices, and a daemon that is killed meanwhile comes up again.
func TestASubjobThatFillsTheDisk(t *testing.T) {
	t.Parallel()
	d := onSmallDisk(t, 24<<20)
	d.start()
	d.submit(spec("beside", "items: {total: 40, perItem: 500ms, grid: 10}",
		`for i in $(seq $SLUICE_FROM $((SLUICE_TO-1))); do head -c 20000 /dev/zero > $SLUICE_OUTPUT_DIR/$i || exit 1; sleep 0.2; done`))
	d.running("beside", 1)
	d.submit(spec("fills", "items: {total: 1, perItem: 1s}", `while :; do head -c 1000000 /dev/zero >> $SLUICE_OUTPUT_DIR/x; done`))
	d.until("it is ended for it", func() bool { return strings.Contains(d.must("job", "fills", "-o", "wide"), "limit") })
	d.kill()
	d.start()
	d.until("its job has failed", func() bool { return d.job("fills").State == "FAILED" })
	says(t, d.must("job", "fills"), "filled the file system "+d.data+" (tmpfs)")
	d.until("there is room", func() bool { return !strings.Contains(d.must("status"), "no space") })
	d.submit(spec("after", "items: {total: 10, perItem: 1ms}", each(":")), "--wait")
	d.once("after", 10)
	d.done("beside")
	if out := d.must("job", "beside", "-o", "wide"); strings.Contains(out, "  limit  ") || strings.Contains(out, "  exit  ") {
		t.Errorf("a failure was counted where it does not belong:\n%s", out)
	}
}

// TestAFullDiskSkipsNoLine: a map on a disk with little room waits for more, and has every line answered then.
func TestAFullDiskSkipsNoLine(t *testing.T) {
	t.Parallel()
	d := onSmallDisk(t, 24<<20)
	d.start()
	var input strings.Builder
	for i := range 40 {
		fmt.Fprintln(&input, i)
	}
	dir := work(t, map[string]string{"in.txt": input.String()})
	room := d.fill()
	if err := os.Truncate(filepath.Join(d.data, "filler"), d.size("filler")-700<<10); err != nil {
		t.Fatal(err)
	}
	args := []string{"--input", "in.txt", "--output", "out.txt", "--name", "m", "--", "sh", "-c",
		"while read l; do head -c 30000 /dev/zero | tr '\\0' x; echo $l; sleep 0.02; done"}
	if out, errs, code := d.maps(dir, append([]string{"-d"}, args...)...); code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	d.until("it waits for room", func() bool { return strings.Contains(d.must("status"), "short of room") })
	room()
	d.done("m")
	defer d.fill()() // who waits for it again needs no room
	d.until("nothing more is accepted", func() bool { return strings.Contains(d.must("status"), "the reserve is in use") })
	if _, errs, code := d.as([]byte(spec("late", "items: {total: 1, perItem: 1ms}", each(":"))), "submit", "-f", "-"); code == 0 {
		t.Errorf("a new job is accepted: %s", errs)
	}
	answers, m, _ := d.mustMap(dir, args...)
	if m.Answered != 40 || len(m.Skipped) != 0 || strings.Count(answers, "\n") != 40 {
		t.Errorf("%+v, with %d lines\n%s", m, strings.Count(answers, "\n"), d.must("job", "m", "-o", "wide"))
	}
}

// TestAWorkDirectoryThatDoesNotFit is its node's trouble: the job waits and says why, others that fit run, and it goes on by
// itself once there is room.
func TestAWorkDirectoryThatDoesNotFit(t *testing.T) {
	t.Parallel()
	d := onSmallDisk(t, 24<<20)
	d.start()
	work := filepath.Join(d.dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 6<<20)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "noise"), noise, 0o600); err != nil {
		t.Fatal(err)
	}
	file := d.write("work/job.yaml", spec("heavy", "items: {total: 10, perItem: 1ms, parallelism: 3}", each(":"), "workdir: ."))
	room := d.fill()
	defer func() {
		if room != nil {
			room()
		}
	}()
	// Room for the stored work directory and 3 MB, not for the unpacked one.
	if err := os.Truncate(filepath.Join(d.data, "filler"), d.size("filler")-9<<20); err != nil {
		t.Fatal(err)
	}
	d.until("it is accepted", func() bool { _, _, code := d.sluice("submit", file); return code == 0 })
	d.until("it says why it waits", func() bool {
		j := d.job("heavy")
		if j.State == "FAILED" {
			t.Fatalf("it failed for its node's trouble: %s", d.must("job", "heavy"))
		}
		return strings.Contains(d.must("jobs"), "no space left")
	})
	d.submit(spec("light", "items: {total: 10, perItem: 1ms}", each(":")), "--wait")
	room()
	room = nil
	d.done("heavy")
	d.once("heavy", 10)
	d.once("light", 10)
}

// TestNoJobFailsWhileTheDiskIsFull: three slices start one subjob after the other, and none can be prepared.
func TestNoJobFailsWhileTheDiskIsFull(t *testing.T) {
	t.Parallel()
	d := onSmallDisk(t, 8<<20)
	d.start()
	d.submit(spec("before", "items: {total: 10, perItem: 1ms}", each(":")), "--wait")
	for i := range 3 {
		d.submit(spec(fmt.Sprintf("j%d", i), "items: {total: 300, perItem: 10ms, grid: 10, parallelism: 2}", each("sleep 0.01")))
	}
	d.running("j0", 1)
	room := d.fill()
	d.until("something says so", func() bool { return strings.Contains(d.must("status"), "no space") })
	room()
	d.until("all is well", func() bool { return !strings.Contains(d.must("status"), "no space") })
	for i := range 3 {
		d.done(fmt.Sprintf("j%d", i))
		d.once(fmt.Sprintf("j%d", i), 300)
	}
}

// TestNoJobFailsForWantOfDescriptors: the daemon has none left to start a subjob with, says so, and goes on when it has.
func TestNoJobFailsForWantOfDescriptors(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	pid := d.cmd.Process.Pid
	var before unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		t.Skipf("skipped: the limit of another process can't be read here: %v", err)
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	few := unix.Rlimit{Cur: uint64(len(open)) + 4, Max: before.Max}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &few, nil); err != nil {
		t.Skipf("skipped: the limit of another process can't be set here: %v", err)
	}
	d.until("the jobs are accepted", func() bool {
		_, _, code := d.as([]byte(spec("a", "items: {total: 100, perItem: 10ms, parallelism: 3}", each(":"))+
			spec("b", "rigid: {walltime: 10s}", ":")), "submit", "-f", "-")
		return code == 0
	})
	d.until("it says why nothing starts", func() bool {
		out, _, _ := d.sluice("status")
		return strings.Contains(out, "too many open files")
	})
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil); err != nil {
		t.Fatal(err)
	}
	d.done("a")
	d.once("a", 100)
	d.done("b")
	d.until("about is content", func() bool { return !strings.Contains(d.must("status"), "too many open files") })
}

// size of a file below the data directory.
func (d *daemon) size(name string) int64 {
	d.t.Helper()
	info, err := os.Stat(filepath.Join(d.data, name))
	if err != nil {
		d.t.Fatal(err)
	}
	return info.Size()
}
