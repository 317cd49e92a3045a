package process_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/volume"
	"sluice.dev/sluice/internal/edge/volume/volumetest"
)

// diskSize is the size of a small disk, in bytes.
const diskSize = 24 << 20

// onSmallDisk puts the data directory on a file system of its own of diskSize bytes.
func onSmallDisk(t *testing.T) func(*process.Options) {
	return onDisk(t, fmt.Sprintf("size=%d", diskSize))
}

// onDisk puts the data directory on a tmpfs of its own with these mount options.
func onDisk(t *testing.T, options string) func(*process.Options) {
	return func(o *process.Options) {
		dir := t.TempDir()
		if err := syscall.Mount("sluice-test", dir, "tmpfs", 0, options); err != nil {
			t.Skipf("skipped: a small file system can't be mounted here: %v", err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
				t.Errorf("unmount %s: %v", dir, err)
			}
		})
		o.DataDir = dir
		must(os.Chmod(dir, 0o700))
	}
}

// ended waits for the end of a subjob and skips all other messages.
func (b *bench) ended(t job.Token) job.Result {
	b.Helper()
	for {
		select {
		case m := <-b.said:
			if m.Kind == protocol.Exited && m.Token == t {
				return *m.Body.(*protocol.Conclusion).Result
			}
		case <-time.After(patience):
			b.Fatalf("subjob %v does not end; events: %+v", t, b.events())
		}
	}
}

// wantDiskFreed fails unless the small disk is free again, but for the MiB that results and logs may take.
func (b *bench) wantDiskFreed() {
	b.Helper()
	s, err := volume.Look(b.o.DataDir)
	if err != nil || s.Free < diskSize-1<<20 {
		b.Errorf("%+v (%v): what filled the disk is still there", s, err)
	}
}

// wantCulprit checks the result of a subjob that filled the disk: it was ended for a limit, nothing of it counts, and the reason names the
// file system.
func (b *bench) wantCulprit(r job.Result) {
	b.Helper()
	if r.Outcome != job.LimitKilled || r.Progress != 0 || r.Checkpoint {
		b.Errorf("%v at %d, want the limit and nothing that counts: %s", r.Outcome, r.Progress, r.Detail)
	}
	for _, want := range []string{"filled the file system " + b.o.DataDir + " (tmpfs)", "Mi of the ", "that were free"} {
		if !strings.Contains(r.Detail, want) {
			b.Errorf("it says %q, want %q in it", r.Detail, want)
		}
	}
}

// TestWhoFillsTheDiskEndsForIt: whatever files a subjob fills its disk with, and however its program then ends, its outcome is that of a
// limit, and its files are removed.
func TestWhoFillsTheDiskEndsForIt(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"its output, and fails": `head -c 60000000 /dev/zero > $SLUICE_OUTPUT_DIR/x`,
		"its output, having done a part": `echo '{"progress":5}' > $SLUICE_PROGRESS_FILE
			cd $SLUICE_OUTPUT_DIR; head -c 60000000 /dev/zero > x`,
		"a checkpoint, and goes on":          `while :; do head -c 6000000 /dev/zero >> $SLUICE_CHECKPOINT_DIR/x; done`,
		"scratch, and waits":                 `head -c 60000000 /dev/zero > $TMPDIR/x; sleep 1000`,
		"the folder of its progress":         `head -c 60000000 /dev/zero > $(dirname $SLUICE_PROGRESS_FILE)/x; exit 1`,
		"a file in the place of its output":  `rmdir $SLUICE_OUTPUT_DIR; head -c 60000000 /dev/zero > $SLUICE_OUTPUT_DIR`,
		"what it says":                       `head -c 60000000 /dev/zero; sleep 1000`,
		"a file without a name, for a while": `cd $SLUICE_OUTPUT_DIR; exec 3>x; rm x; head -c 60000000 /dev/zero >&3; sleep 2; exit 1`,
		"where it was asked to end":          `trap '' TERM; head -c 60000000 /dev/zero > $SLUICE_OUTPUT_DIR/x; kill -TERM $$; sleep 1000`,
	} {
		t.Run(name, func(t *testing.T) {
			small := onSmallDisk(t)
			b := newBench(t, func(o *process.Options) {
				small(o)
				o.LogLimit = 64 << 20
			})
			b.do(lease(time.Minute, "sh", "-c", script))
			b.wantCulprit(b.ended(token))
			b.wantDiskFreed()
			if _, err := os.Stat(filepath.Join(string(b.dir()), "result.json")); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWhoTakesAllFilesEndsForIt: a file system without free inodes is full too.
func TestWhoTakesAllFilesEndsForIt(t *testing.T) {
	b := newBench(t, onDisk(t, "size=64m,nr_inodes=400"))
	b.do(lease(time.Minute, "sh", "-c", `cd $SLUICE_OUTPUT_DIR; i=0; while : > $i; do i=$((i+1)); done; exit 1`))
	if r := b.ended(token); r.Outcome != job.LimitKilled || !strings.Contains(r.Detail, "files that there was room for") {
		t.Errorf("%v: %q", r.Outcome, r.Detail)
	}
	if entries, err := os.ReadDir(b.dir().Output()); !os.IsNotExist(err) {
		t.Errorf("%d files are left (%v)", len(entries), err)
	}
}

// TestWhoEndsWellOnAFullDisk: the output of a subjob that succeeds counts, though the disk has no more room than for its result.
func TestWhoEndsWellOnAFullDisk(t *testing.T) {
	b := newBench(t, onSmallDisk(t))
	m := lease(time.Minute, "sh", "-c",
		`head -c 20000000 /dev/zero > $SLUICE_OUTPUT_DIR/x; until [ -e `+filepath.Join(b.o.DataDir, "full")+` ]; do sleep 0.01; done`)
	b.do(m)
	b.next(protocol.Started)
	b.await("its output", func() bool { return b.wrote(20_000_000) })
	release := b.fillDisk(false)
	if r := b.ended(token); r.Outcome != job.Done {
		t.Fatalf("%v: %s", r.Outcome, r.Detail)
	}
	release()
	b.commit(m)
}

// wrote reports whether the subjob has written n bytes of output.
func (b *bench) wrote(n int64) bool {
	info, err := os.Stat(filepath.Join(b.dir().Output(), "x"))
	return err == nil && info.Size() == n
}

// fillDisk fills the disk with a file that is no subjob's: to the last byte or, unless all, but for 32 KiB, which is room for a result.
// The function that it returns removes the file.
func (b *bench) fillDisk(all bool) (release func()) {
	b.Helper()
	path := filepath.Join(b.o.DataDir, "full")
	f, err := os.Create(path + ".new")
	must(err)
	for size := 64 << 10; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
	if !all {
		info, err := f.Stat()
		must(err)
		must(f.Truncate(info.Size() - 32<<10))
	}
	must(f.Close())
	must(os.Rename(path+".new", path))
	return func() { must(os.Remove(path)) }
}

// TestWhoFailsBesideAFullDiskIsExcused: a subjob that fails because another one filled the disk, even two seconds later, counts as its
// node's failure.
func TestWhoFailsBesideAFullDiskIsExcused(t *testing.T) {
	b := newBench(t, onSmallDisk(t))
	neighbour := lease(time.Minute, "sh", "-c",
		`while head -c 4096 /dev/zero >> $SLUICE_OUTPUT_DIR/o; do sleep 0.02; done; sleep 2; exit 3`)
	neighbour.Token.Seq = 2
	b.do(neighbour)
	b.next(protocol.Started)
	b.do(lease(time.Minute, "sh", "-c", `while :; do head -c 6000000 /dev/zero >> $SLUICE_OUTPUT_DIR/x; done`))
	b.wantCulprit(b.ended(token))
	if r := b.ended(neighbour.Token); r.Outcome != job.NodeFailed || !strings.Contains(r.Detail, "which others fill") ||
		!strings.Contains(r.Detail, "exit status 3") {
		t.Errorf("%v: %q, want the node's trouble", r.Outcome, r.Detail)
	}
}

// TestWhoBeganOnAShortDiskIsExcused: who fills a disk that was short of room when it began is ended and forfeits its files as any other
// is, but its node is to blame, which starts nothing until there is room.
func TestWhoBeganOnAShortDiskIsExcused(t *testing.T) {
	b := newBench(t, onSmallDisk(t))
	release := b.fillDisk(true)
	path := filepath.Join(b.o.DataDir, "full")
	info, err := os.Stat(path)
	must(err)
	must(os.Truncate(path, info.Size()-700<<10)) // a twentieth of the disk is 1.2 MiB
	b.do(lease(time.Minute, "sh", "-c", `head -c 60000000 /dev/zero > $SLUICE_OUTPUT_DIR/x`))
	b.next(protocol.Started)
	var r *job.Result
	var waits string
	for r == nil || waits == "" {
		select {
		case m := <-b.said:
			switch m.Kind {
			case protocol.Exited:
				r = m.Body.(*protocol.Conclusion).Result
			case protocol.Unhealthy:
				waits = m.Body.(*protocol.Condition).Text
			}
		case <-time.After(patience):
			t.Fatalf("it ended with %+v, the node is in trouble for %q", r, waits)
		}
	}
	if r.Outcome != job.NodeFailed || r.Progress != 0 || !strings.Contains(r.Detail, "once there is room") {
		t.Errorf("%v at %d: %s", r.Outcome, r.Progress, r.Detail)
	}
	if s, err := volume.Look(b.o.DataDir); err != nil || s.Free < 500<<10 {
		t.Errorf("%+v (%v): what it wrote is still there", s, err)
	}
	if !strings.Contains(waits, "short of room") {
		t.Errorf("the node waits for %q", waits)
	}
	release()
	if c := b.next(protocol.Unhealthy).Body.(*protocol.Condition); c.Unhealthy {
		t.Errorf("with room it is in trouble still: %s", c.Text)
	}
}

// TestTheLargestFillsTheDisk: of two subjobs that each took half of the bytes free at their start, the one with more is ended.
func TestTheLargestFillsTheDisk(t *testing.T) {
	b := newBench(t, onSmallDisk(t))
	b.do(lease(3*time.Minute, "sh", "-c", `head -c 13000000 /dev/zero > $SLUICE_OUTPUT_DIR/x; sleep 1000`))
	b.next(protocol.Started)
	b.await("its output", func() bool { return b.wrote(13_000_000) })
	second := lease(25*time.Second, "sh", "-c", `head -c 60000000 /dev/zero > $SLUICE_OUTPUT_DIR/x; sleep 1000`)
	second.Token.Seq = 2
	b.do(second)
	b.wantCulprit(b.ended(token))
	if r := b.ended(second.Token); r.Outcome == job.LimitKilled {
		t.Errorf("the smaller one is ended as well: %s", r.Detail)
	}
}

// TestWhoFillsTheDiskAndLosesItsSupervisor: where the supervisor is dead, the executor judges that the subjob filled the disk, at once or
// at its next start.
func TestWhoFillsTheDiskAndLosesItsSupervisor(t *testing.T) {
	t.Parallel()
	for name, daemon := range map[string]bool{"at once": true, "at the next start": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, onSmallDisk(t))
			b.do(lease(time.Minute, "sh", "-c", `head -c 15000000 /dev/zero > $SLUICE_OUTPUT_DIR/x; sleep 1000`))
			b.next(protocol.Started)
			b.await("its output", func() bool { return b.wrote(15_000_000) })
			note, err := b.dir().ReadNote()
			must(err)
			if !daemon {
				must(b.ex.Close())
			}
			must(syscall.Kill(note.PID, syscall.SIGSTOP)) // or it would end the subjob for the full disk itself
			release := b.fillDisk(true)
			kill(t, note.PID)
			if daemon {
				b.wantCulprit(b.ended(token))
			} else if found := b.open(); len(found) != 1 || found[0].Result == nil {
				t.Fatalf("found %+v, want one that is over", found)
			} else {
				b.wantCulprit(*found[0].Result)
			}
			release()
			b.wantDiskFreed()
		})
	}
}

// onQuota puts the data directory into a folder with a quota that its file system does not report.
func onQuota(t *testing.T) func(*process.Options) {
	dir := volumetest.Quota(t)
	return func(o *process.Options) {
		o.DataDir, o.LogLimit = dir, 64<<20
	}
}

// TestWhoFillsAQuotaEndsForIt: a quota that the file system does not report counts as a full disk once a write meets it. Whose files fill
// it ends for that limit, and loses them.
func TestWhoFillsAQuotaEndsForIt(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"its output, and fails":   `head -c 60000000 /dev/zero > $SLUICE_OUTPUT_DIR/x`,
		"scratch, and fails":      `head -c 60000000 /dev/zero > $TMPDIR/x; exit 3`,
		"what it says, and fails": `head -c 60000000 /dev/zero; exit 3`,
		"its output, and is done": `head -c 60000000 /dev/zero > $SLUICE_OUTPUT_DIR/x; exit 0`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, onQuota(t))
			b.do(lease(time.Minute, "sh", "-c", script))
			r := b.ended(token)
			if r.Outcome != job.LimitKilled || r.Progress != 0 || r.Checkpoint {
				t.Errorf("%v at %d, want the limit and nothing that counts: %s", r.Outcome, r.Progress, r.Detail)
			}
			for _, want := range []string{"filled a quota on the file system " + filepath.Dir(b.o.DataDir) + " (btrfs)", "Mi"} {
				if !strings.Contains(r.Detail, want) {
					t.Errorf("it says %q, want %q in it", r.Detail, want)
				}
			}
			if strings.Contains(r.Detail, "are free") {
				t.Errorf("it says what is free of the file system, which is not what is free of the quota: %q", r.Detail)
			}
			if err := os.WriteFile(filepath.Join(b.o.DataDir, "room"), make([]byte, 16<<20), 0o600); err != nil {
				t.Errorf("what filled the quota is still there: %v", err)
			}
		})
	}
}

// TestWhoFailsBesideAFullQuotaIsExcused: what fills the quota is not the subjob's.
func TestWhoFailsBesideAFullQuotaIsExcused(t *testing.T) {
	b := newBench(t, onQuota(t))
	b.do(lease(time.Minute, "sh", "-c", `head -c 2000000 /dev/zero > $SLUICE_OUTPUT_DIR/x
		until [ -e `+filepath.Join(b.o.DataDir, "full")+` ]; do sleep 0.01; done
		head -c 1000000 /dev/zero > $SLUICE_OUTPUT_DIR/y || exit 3`))
	b.next(protocol.Started)
	b.await("its output", func() bool { return b.wrote(2_000_000) })
	b.fillQuota()
	r := b.ended(token)
	if r.Outcome != job.NodeFailed || !strings.Contains(r.Detail, "exit status 3") ||
		!strings.Contains(r.Detail, "a quota on the file system") || strings.Contains(r.Detail, "are free") {
		t.Errorf("%v: %q, want the node's trouble, which is a quota", r.Outcome, r.Detail)
	}
}

// TestWhoFillsAQuotaAndLosesItsSupervisor: the executor judges it as the supervisor would have.
func TestWhoFillsAQuotaAndLosesItsSupervisor(t *testing.T) {
	b := newBench(t, onQuota(t))
	filled := filepath.Join(t.TempDir(), "filled")
	b.do(lease(time.Minute, "sh", "-c", `head -c 60000000 /dev/zero > $SLUICE_OUTPUT_DIR/x; : > `+filled+`; exec sleep 1000`))
	b.next(protocol.Started)
	b.await("the quota to be full", func() bool { _, err := os.Stat(filled); return err == nil })
	note, err := b.dir().ReadNote()
	must(err)
	kill(t, note.PID)
	if r := b.ended(token); r.Outcome != job.LimitKilled || !strings.Contains(r.Detail, "filled a quota on the file system") {
		t.Errorf("%v: %q, want the limit", r.Outcome, r.Detail)
	}
}

// fillQuota uses the quota up but for 48 KiB, which are room for a result.
func (b *bench) fillQuota() {
	b.Helper()
	spare, path := filepath.Join(b.o.DataDir, "spare"), filepath.Join(b.o.DataDir, "full")
	if err := os.WriteFile(spare, make([]byte, 48<<10), 0o600); err != nil {
		b.Fatal(err)
	}
	f, err := os.Create(path + ".new")
	if err != nil {
		b.Fatal(err)
	}
	for size := 64 << 10; size >= 4<<10; size /= 2 {
		for err = nil; err == nil; {
			if _, err = f.Write(make([]byte, size)); err == nil {
				err = f.Sync()
			}
		}
	}
	if err = errors.Join(f.Close(), os.Remove(spare), os.Rename(path+".new", path)); err != nil {
		b.Fatal(err)
	}
}
