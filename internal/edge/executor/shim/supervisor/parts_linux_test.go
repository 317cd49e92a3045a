package supervisor

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/volume"
)

// full is a disk that takes so many bytes.
type full int

func (f *full) Write(p []byte) (int, error) {
	n := min(len(p), int(*f))
	*f -= full(n)
	if n < len(p) {
		return n, errors.New("no space left")
	}
	return n, nil
}

func TestPour(t *testing.T) {
	for _, c := range []struct{ budget, room, size, kept int }{
		{100, 1000, 50, 50},
		{100, 1000, 100, 100},
		{100, 1000, 101, 100},
		{100_000, 1_000_000, 1_000_000, 100_000},
		{100_000, 70_000, 1_000_000, 70_000},
		{1, 10, 0, 0},
	} {
		var budget atomic.Int64
		budget.Store(int64(c.budget))
		disk := full(c.room)
		dropped := pour(&disk, io.LimitReader(zeros{}, int64(c.size)), &budget)
		if kept := c.room - int(disk); kept != c.kept || int(dropped) != c.size-c.kept {
			t.Errorf("%+v: kept %d, dropped %d", c, kept, dropped)
		}
	}
}

// TestALogWithoutRoomShowsAFullDisk: looks come twice a second at most, and later on a busy machine; a log that meets the full disk in
// between shows it too.
func TestALogWithoutRoomShowsAFullDisk(t *testing.T) {
	disk, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	var noRoom atomic.Int64
	var quota atomic.Bool
	f := logFile{file: disk, noRoom: &noRoom, quota: &quota}
	defer func() { _ = f.Close() }()
	if _, err := f.Write([]byte("x")); err == nil || noRoom.Load() == 0 || quota.Load() {
		t.Fatalf("a write to a full disk: %v, noted at %d", err, noRoom.Load())
	}
	for since, full := range map[time.Duration]bool{0: true, recently - time.Second: true, recently + time.Second: false} {
		var e shim.Ending
		(&diskWatch{}).over(&e, time.Now().Add(-since).UnixNano(), since == 0)
		if e.DiskFull != full || (e.Short.Limit == volume.HiddenQuota) != (since == 0) {
			t.Errorf("%v after the log met a full disk it is taken for full: %v", since, e.DiskFull)
		}
	}
	var e shim.Ending
	if (&diskWatch{}).over(&e, 0, false); e.DiskFull {
		t.Error("a disk that nothing found full is taken for full")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestNoTermsAreTakenForThoseBefore: two that follow each other at once, of which the second gets the number of the file that was read
// before.
func TestNoTermsAreTakenForThoseBefore(t *testing.T) {
	dir := shim.Dir(t.TempDir())
	l := shim.Lease{}
	tm := newTerms(&l)
	defer func() { tm.close() }()
	for i := range quantity.Instant(200) {
		for n := range quantity.Instant(2) {
			if err := dir.WriteControl(&shim.Control{End: 10*i + n + 1}); err != nil {
				t.Fatal(err)
			}
		}
		tm.read(dir, slog.New(slog.DiscardHandler))
		if tm.end != 10*i+2 {
			t.Fatalf("the end is %d after %d", tm.end, 10*i+2)
		}
	}
}

func TestTerms(t *testing.T) {
	dir := shim.Dir(t.TempDir())
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	now := quantity.At(time.Now())
	l := shim.Lease{Part: executor.Part{Range: job.Range{From: 0, To: 10}}, End: now.Add(time.Minute), Anchor: shim.AnchorAt(now)}
	tm := newTerms(&l)
	grace := 10 * time.Second
	if tm.term(grace) != l.End.Add(-grace) || tm.kill(grace) != l.End {
		t.Errorf("asked at %d, killed at %d; the lease ends at %d", tm.term(grace), tm.kill(grace), l.End)
	}
	control := func(c shim.Control) {
		t.Helper()
		c.Anchor = shim.AnchorAt(quantity.At(time.Now()))
		if err := dir.WriteControl(&c); err != nil {
			t.Fatal(err)
		}
		tm.read(dir, log)
	}
	tm.read(dir, log)
	control(shim.Control{End: now.Add(2 * time.Minute), Range: job.Range{From: 0, To: 20}})
	if tm.to != 20 || tm.kill(grace) != now.Add(2*time.Minute) {
		t.Errorf("extended: %+v", tm)
	}
	control(shim.Control{End: now.Add(time.Minute), Range: job.Range{From: 0, To: 10}, Stop: true})
	at := tm.stopAt
	if tm.to != 20 || tm.term(grace) != at || tm.kill(grace) != at.Add(grace) {
		t.Errorf("stopped: %+v; what was given once may be complete", tm)
	}
	control(shim.Control{End: now.Add(5 * time.Second), Stop: true})
	if tm.stopAt != at || tm.kill(grace) != now.Add(5*time.Second) {
		t.Errorf("a grace past the end: %+v", tm)
	}
	if said.Len() != 0 {
		t.Errorf("said %s", said.String())
	}
	before := tm.end
	if err := os.WriteFile(dir.Control(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir.Control(), dir.Control()+"x"); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(dir.Control()+"x", dir.Control()); err != nil {
		t.Fatal(err)
	}
	tm.seen = nil
	if tm.read(dir, log); tm.end != before || !strings.Contains(said.String(), "damaged") {
		t.Errorf("after a damaged file: end %d, said %q", tm.end, said.String())
	}
}

func TestLookPath(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	for _, p := range []string{filepath.Join(dir, "tool"), filepath.Join(work, "tool")} {
		if err := os.WriteFile(p, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, path, want string }{
		{"tool", dir, filepath.Join(dir, "tool")},
		{"tool", "/nowhere:" + dir, filepath.Join(dir, "tool")},
		{"tool", ".:" + dir, filepath.Join(dir, "tool")}, // not the one that lies in the work directory
		{"tool", "", ""},
		{"./tool", dir, filepath.Join(work, "tool")},
		{"/bin/x", dir, "/bin/x"},
	} {
		got, err := lookPath(&shim.Lease{Program: executor.Program{Command: []string{c.name}, WorkDir: work,
			Env: []string{"PATH=/other", "PATH=" + c.path}}})
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}

func TestMainRefusesWrongUse(t *testing.T) {
	for _, args := range [][]string{nil, {"x"}, {Supervise}, {Probe}, {"init", "x"}} {
		if code := Main(args); code != 2 {
			t.Errorf("%q: exit %d, want 2", args, code)
		}
	}
}

// TestTheEndIsToldBehindTheResult: who can't write a result tells no end, since whoever finds the run directory without one does, and may
// say otherwise; unless nobody can find it any more. An end that can't be told is an error, and the result is there.
func TestTheEndIsToldBehindTheResult(t *testing.T) {
	for name, c := range map[string]struct {
		// inTheWay is made a directory before the end, gone removed; away: the run directory is moved, and something else is in its place.
		inTheWay, gone           func(shim.Dir) string
		away, fails, told, found bool
	}{
		"all is well":                    {told: true, found: true},
		"a folder is in the way":         {inTheWay: shim.Dir.Result, told: true, found: true},
		"no result can be written":       {away: true, fails: true},
		"the run directory is removed":   {away: true, gone: shim.Dir.Note, fails: true, told: true},
		"the events file takes no lines": {inTheWay: func(d shim.Dir) string { return string(d) + ".events" }, fails: true, found: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := shim.Dir(filepath.Join(t.TempDir(), "1-1"))
			if err := os.Mkdir(string(dir), 0o700); err != nil {
				t.Fatal(err)
			}
			lock, err := dir.TryLock()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = lock.Close() }()
			if c.inTheWay != nil {
				if err := os.Mkdir(c.inTheWay(dir), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if c.gone != nil {
				if err := os.Remove(c.gone(dir)); err != nil {
					t.Fatal(err)
				}
			}
			if c.away {
				if err := errors.Join(os.Rename(string(dir), string(dir)+".away"), os.WriteFile(string(dir), nil, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			l := shim.Lease{Part: executor.Part{Token: job.Token{Epoch: 1, Seq: 1}}, Events: string(dir) + ".events"}
			s := &subjob{dir: dir, lock: lock, lease: l, note: shim.Note{At: 1}, log: slog.New(slog.DiscardHandler), terms: newTerms(&l),
				child: &child{}}
			if err := s.write(&job.Result{Outcome: job.Done}); (err != nil) != c.fails {
				t.Errorf("it says %v; fails %v", err, c.fails)
			}
			if _, err := dir.ReadResult(); (err == nil) != c.found {
				t.Errorf("the result: %v; found %v", err, c.found)
			}
			what, err := shim.LastEvent(l.Events, "1-1")
			if (what == "end") != c.told {
				t.Errorf("it was told %q (%v), told %v", what, err, c.told)
			}
		})
	}
}

// TestNewTermsAreToldByTheMachinesClock: of a node that goes by another's, as those at the start.
func TestNewTermsAreToldByTheMachinesClock(t *testing.T) {
	const ahead = time.Hour
	dir, now := shim.Dir(t.TempDir()), quantity.At(time.Unix(1_000_000, 0))
	anchor := shim.Anchor{Wall: now.Add(ahead), Boot: shim.Boottime(), Ahead: ahead}
	l := shim.Lease{Part: executor.Part{Range: job.Range{From: 0, To: 10}}, End: now.Add(ahead + time.Minute), Anchor: anchor}
	terms := newTerms(&l)
	defer terms.close()
	if err := dir.WriteControl(&shim.Control{End: now.Add(ahead + time.Hour), Range: l.Range, Anchor: anchor}); err != nil {
		t.Fatal(err)
	}
	terms.read(dir, slog.New(slog.DiscardHandler))
	want := shim.Deadline(now.Add(time.Hour))
	if said, err := os.ReadFile(dir.Terms()); err != nil || !strings.Contains(string(said), want) {
		t.Errorf("the lease file says %s, %v; want %s", said, err, want)
	}
}
