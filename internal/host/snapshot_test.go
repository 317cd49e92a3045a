package host

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/host/datadir"
)

// submit has n jobs accepted, named from a number on.
func submit(t *testing.T, h *Host, from, n int) {
	t.Helper()
	for i := range n {
		if _, err := h.Submit(context.Background(), "", spec(job.ID(rune('A'+from+i))), nil); err != nil {
			t.Fatal(err)
		}
	}
}

// snapshotRig has a host take snapshots after every few records.
func snapshotRig(t *testing.T) *rig {
	r := newRig(t)
	r.before = func([][]byte) error { return nil }
	r.options = func(o *Options) { o.SnapshotRecords = 10 }
	return r
}

// since is how many records there are since the last snapshot, once nothing goes on any more.
func since(h *Host) uint64 {
	synctest.Wait()
	_, records := h.daemon.journal.Size()
	return records
}

// comesBack stops a host and wants the next one to be what it was.
func comesBack(t *testing.T, r *rig, h *Host, stop func() error) (*Host, func() error) {
	t.Helper()
	digest := h.daemon.set.Gates[0].Digest()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	h, stop = r.start(t)
	synctest.Wait()
	if got := h.daemon.set.Gates[0].Digest(); got != digest {
		t.Errorf("recovered digest %x, want %x", got, digest)
	}
	return h, stop
}

// comesBackOnce is comesBack, and then all is over.
func comesBackOnce(t *testing.T, r *rig, h *Host, stop func() error) {
	t.Helper()
	_, stop = comesBack(t, r, h, stop)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

func TestSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := snapshotRig(t)
		h, stop := r.start(t)
		submit(t, h, 0, 25)
		if n := since(h); n >= 25 {
			t.Errorf("%d records since the last snapshot: there was none", n)
		}
		comesBackOnce(t, r, h, stop)

		// A snapshot that would lose something is not used.
		good := r.actors
		r.actors = func() actor.Set {
			a := good()
			a.Gates[0].Gate.(*toyGate).forget = true
			return a
		}
		h, stop = r.start(t)
		submit(t, h, 30, 25)
		if n := since(h); n < 25 {
			t.Errorf("%d records since the last snapshot: a false one is used", n)
		}
		comesBackOnce(t, r, h, stop)
	})
}

// TestTheLoopGoesOnBesideASnapshot: while its writer waits for the disk, jobs are accepted; what was accepted meanwhile is
// not in the snapshot, and is there all the same.
func TestTheLoopGoesOnBesideASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := snapshotRig(t)
		disk := make(chan error)
		r.state = func() error { return <-disk }
		h, stop := r.start(t)
		submit(t, h, 0, 30)
		if n := since(h); n != 30 {
			t.Errorf("%d records since the last snapshot, and none is written yet", n)
		}
		close(disk)
		if n := since(h); n >= 30 {
			t.Errorf("%d records since the last snapshot, and one was begun in the middle of 30", n)
		}
		comesBackOnce(t, r, h, stop)
	})
}

// TestASnapshotThatFails for want of room is given up whole and tried again; the journal stays as it is, and the loop goes on.
func TestASnapshotThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := snapshotRig(t)
		full := true
		r.state = func() error {
			if full {
				return errFull()
			}
			return nil
		}
		h, stop := r.start(t)
		submit(t, h, 0, 30)
		if n := since(h); n != 30 {
			t.Errorf("%d records since the last snapshot, and the disk is full", n)
		}
		if list := names(t, filepath.Join(r.dir, datadir.JournalDir)); slices.Contains(list, "snapshot.tmp") {
			t.Errorf("a snapshot that was given up takes room: %q", list)
		}
		full = false
		submit(t, h, 40, 10)
		if n := since(h); n >= 30 {
			t.Errorf("%d records since the last snapshot, and there is room", n)
		}
		comesBackOnce(t, r, h, stop)
	})
}

// TestStopInTheMiddleOfASnapshot: it is given up, nothing of it stays, and the journal is what it was.
func TestStopInTheMiddleOfASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := snapshotRig(t)
		disk := make(chan error)
		r.state = func() error { return <-disk }
		h, stop := r.start(t)
		submit(t, h, 0, 30)
		synctest.Wait()
		ended := make(chan error)
		go func() { ended <- stop() }()
		synctest.Wait() // it waits for the writer
		disk <- nil
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if list := names(t, filepath.Join(r.dir, datadir.JournalDir)); slices.Contains(list, "snapshot.tmp") {
			t.Errorf("left over: %q", list)
		}
		r.state = nil
		h, _ = comesBack(t, r, h, stop)
		if !h.daemon.set.Gates[0].Gate.(*toyGate).has(job.ID('A' + 29)) {
			t.Error("the last job is lost")
		}
	})
}

// TestASnapshotMakesRoomForTheLog: where its own bytes are what fills the disk, it is given up, and no caller hears of it.
func TestASnapshotMakesRoomForTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := snapshotRig(t)
		refused := 0
		r.before = func([][]byte) error {
			if list := names(t, filepath.Join(r.dir, datadir.JournalDir)); slices.Contains(list, "snapshot.tmp") {
				refused++
				return errFull()
			}
			return nil
		}
		r.state = func() error { time.Sleep(time.Minute); return nil }
		h, stop := r.start(t)
		submit(t, h, 0, 30)
		if refused == 0 {
			t.Error("no snapshot was in the way: the test shows nothing")
		}
		comesBackOnce(t, r, h, stop)
	})
}
