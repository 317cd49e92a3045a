package host

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/executor"
)

// shelf is a Files that serves one directory.
type shelf struct {
	dir    string
	stored []job.ID
	pruned func(keep func(string) bool)
	// unpacked is told what is pruned of the unpacked.
	unpacked func(live func(string) bool)
	// gone are snapshots that somebody has removed.
	gone []string
	// since is when logs were begun to be kept.
	since time.Time
}

func (s *shelf) HasWorkdir(id string) (bool, error) { return !slices.Contains(s.gone, id), nil }

func (s *shelf) PutWorkdir(b []byte) (executor.Workdir, error) {
	if string(b) == "bad" {
		return executor.Workdir{}, errkind.Errorf(errkind.Invalid, "not a tar.gz")
	}
	return executor.Workdir{ID: "snap-" + string(b), Files: 3, Bytes: int64(len(b))}, nil
}

func (s *shelf) TakeWorkdir(id string) (executor.Workdir, error) {
	if slices.Contains(s.gone, id) {
		return executor.Workdir{}, errkind.Errorf(errkind.NotFound, "there is no object %s", id)
	}
	return executor.Workdir{ID: id, Files: 5, Bytes: 7}, nil
}

func (s *shelf) OpenLogs(_ job.ID, t job.Token) ([]io.ReadSeekCloser, error) {
	f, err := os.Open(filepath.Join(s.dir, t.String()))
	if err != nil {
		return nil, errkind.Errorf(errkind.NotFound, "%w", err)
	}
	return []io.ReadSeekCloser{f}, nil
}

func (s *shelf) LogsSince() time.Time { return s.since }

func (s *shelf) Outputs(job.ID) ([]status.Output, error) {
	return []status.Output{{Range: job.Range{From: 10, To: 20}}, {Range: job.Range{From: 0, To: 10}}}, nil
}
func (s *shelf) Stored(each func(job.ID) error) error {
	for _, j := range s.stored {
		if err := each(j); err != nil {
			return err
		}
	}
	return nil
}
func (s *shelf) PruneUnpacked(live func(string) bool) error {
	if s.unpacked != nil {
		s.unpacked(live)
	}
	return nil
}
func (s *shelf) PruneWorkdirs(keep func(string) bool) error {
	if s.pruned != nil {
		s.pruned(keep)
	}
	return nil
}

// running is a zone with one job, a, whose subjobs a test sets.
type running struct {
	toyZone
	mu   sync.Mutex
	subs []status.Subjob
	over bool
}

func (z *running) Job(_ quantity.Instant, id job.ID) (status.Job, bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	j := status.Job{Name: id, State: job.Running, History: slices.Clone(z.subs), Published: job.Ranges{{From: 0, To: 20}}}
	if z.over {
		j.State = job.Finished
	}
	return j, id == "a"
}

// set replaces the subjobs.
func (z *running) set(over bool, subs ...status.Subjob) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.subs, z.over = subs, over
}

// sub is a subjob that began at a second, and ended at another unless that is 0.
func sub(seq uint64, start, end int) status.Subjob {
	at := func(s int) quantity.Instant { return quantity.At(time.Unix(int64(s), 0)) }
	x := status.Subjob{Token: job.Token{Epoch: 1, Seq: seq}, Start: at(start), Running: end == 0}
	if end > 0 {
		x.End = at(end)
	}
	return x
}

func filesRig(t *testing.T) (*rig, *shelf, *running) {
	r, s, z := newRig(t), &shelf{dir: t.TempDir()}, &running{}
	z.set(false, sub(1, 5, 6), sub(2, 9, 0))
	r.actors = func() actor.Set {
		return actor.Alone("z", "n", &toyGate{toy{step: accept}}, z, &toyNode{})
	}
	r.options = func(o *Options) {
		o.Executor = func(Env) (executor.Executor, Files, error) { return r.executor, s, nil }
	}
	return r, s, z
}

func TestLogs(t *testing.T) {
	r, s, _ := filesRig(t)
	if err := os.WriteFile(filepath.Join(s.dir, "1-2"), []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.since = time.Unix(1<<33, 0)
	h, _ := r.start(t)
	var got []LogPiece
	tell := func(p LogPiece) error {
		p.Data = bytes.Clone(p.Data)
		got = append(got, p)
		return nil
	}
	if err := h.Logs(context.Background(), "a", job.Token{}, tell); err != nil || len(got) != 1 || got[0].Token.Seq != 2 ||
		string(got[0].Data) != "one\n" {
		t.Errorf("the latest: %+v, %v", got, err)
	}
	if err := h.Logs(context.Background(), "a", job.Token{Epoch: 1, Seq: 1}, tell); errkind.Of(err) != errkind.NotFound {
		t.Errorf("logs that are gone: %v", err)
	}
	s.since, got = time.Time{}, nil
	if err := h.Logs(context.Background(), "a", job.Token{Epoch: 1, Seq: 1}, tell); err != nil || got != nil {
		t.Errorf("logs of one that wrote nothing: %v, %v", got, err)
	}
	if err := h.Logs(context.Background(), "b", job.Token{}, tell); errkind.Of(err) != errkind.NotFound {
		t.Errorf("a job that is not there: %v", err)
	}
}

func TestOutputsInOrderOfProgress(t *testing.T) {
	r, _, _ := filesRig(t)
	h, _ := r.start(t)
	list, err := h.Outputs(context.Background(), "a")
	if err != nil || len(list) != 2 || list[0].Range.From != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestSnapshotsAndSweep: a work directory's name travels in the spec; at the next boot what nobody needs is removed.
func TestSnapshotsAndSweep(t *testing.T) {
	r, s, _ := filesRig(t)
	h, stop := r.start(t)
	mine := spec("a")
	if _, err := h.Submit(context.Background(), "", mine, []byte("tar")); err != nil {
		t.Fatal(err)
	}
	if mine.Launch.Workdir != "" {
		t.Error("the caller's spec was written to")
	}
	if got := h.daemon.set.Gates[0].Gate.(*toyGate).facts[0].Body.(*protocol.Acceptance).Spec.Launch; got.Workdir != "snap-tar" ||
		got.Files != 3 || got.Bytes != 3 {
		t.Errorf("the accepted spec names %q with %d files and %d bytes", got.Workdir, got.Files, got.Bytes)
	}
	if _, err := h.Submit(context.Background(), "", spec("b"), []byte("bad")); errkind.Of(err) != errkind.Invalid {
		t.Errorf("a bad snapshot: %v", err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r.executor.did = nil
	s.stored = []job.ID{"a", "ghost"}
	var kept []bool
	s.pruned = func(keep func(string) bool) { kept = []bool{keep("snap-tar"), keep("snap-old")} }
	h, _ = r.start(t)
	h.daemon.workdirs.Close()
	if !slices.Equal(kept, []bool{true, false}) {
		t.Errorf("kept %v, want the snapshot of a kept job and no other", kept)
	}
	var purged []job.ID
	for _, m := range r.executor.did {
		if m.Kind == protocol.Purge {
			purged = append(purged, m.Job)
		}
	}
	if !slices.Equal(purged, []job.ID{"ghost"}) {
		t.Errorf("purged %q, want the job that nobody knows", purged)
	}
}
