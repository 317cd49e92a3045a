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
	"sluice.dev/sluice/internal/edge/executor/shim"
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

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestTerms(t *testing.T) {
	dir := shim.Dir(t.TempDir())
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	now := quantity.At(time.Now())
	l := shim.Lease{Range: job.Range{From: 0, To: 10}, End: now.Add(time.Minute), Anchor: shim.AnchorAt(now)}
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
		got, err := lookPath(&shim.Lease{Command: []string{c.name}, WorkDir: work, Env: []string{"PATH=/other", "PATH=" + c.path}})
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
