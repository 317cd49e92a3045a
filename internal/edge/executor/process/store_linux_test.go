package process_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/files"
	"sluice.dev/sluice/internal/edge/store/local"
	"sluice.dev/sluice/internal/edge/store/tree"
)

// newStore is one outside of the data directory.
func newStore(t *testing.T, before ...files.Before) *files.Dir {
	t.Helper()
	s, err := local.Open(filepath.Join(t.TempDir(), "store"), before...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// names of a store, with what they stand for.
func names(t *testing.T, s store.Store) map[string]store.Refs {
	t.Helper()
	all := map[string]store.Refs{}
	if err := s.Names(t.Context(), "", func(n store.Named) error {
		all[n.Name] = n.Refs
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAWorkDirectoryOfTheStore: a job may name a work directory that somebody has put into the store; it is kept for the job, and refused
// if it is none.
func TestAWorkDirectoryOfTheStore(t *testing.T) {
	s := newStore(t)
	b := newBench(t, func(o *process.Options) { o.Store, o.WorkdirLimit = s, 10_000 })
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "run.sh"), []byte("echo from the store\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	x, err := tree.Scan(dir)
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.Put(t.Context(), "", x)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := b.ex.TakeWorkdir(string(o.Digest))
	if err != nil || stored.ID != string(o.Digest) || stored.Files != 1 || stored.Bytes != 20 {
		t.Fatalf("%+v, %v", stored, err)
	}
	m := lease(time.Minute, "sh", "-c", "./run.sh || sh run.sh")
	m.Body.(*protocol.Work).Spec.Launch.Workdir = stored.ID
	b.run(m, job.Done)
	if out := shim.Tail(b.dir().Stdout(), 10, 1000); !strings.Contains(out, "from the store") {
		t.Errorf("the program said %q", out)
	}
	large, err := s.Put(t.Context(), "", bytes.NewReader(pack(t, tar.Header{Name: "f", Typeflag: tar.TypeReg, Size: 20_000})))
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.Put(t.Context(), "", strings.NewReader("no work directory"))
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]errkind.Kind{strings.Repeat("0", 64): errkind.NotFound, "x": errkind.Invalid,
		string(large.Digest): errkind.Exhausted, string(text.Digest): errkind.Invalid} {
		if _, err := b.ex.TakeWorkdir(id); errkind.Of(err) != want {
			t.Errorf("%s: %v, want kind %v", id, err, want)
		}
	}
}

// TestAWorkDirectoryCanBeWritten: also what was only to be read where it comes from.
func TestAWorkDirectoryCanBeWritten(t *testing.T) {
	b := newBench(t, nil)
	m := lease(time.Minute, "stat", "-c", "%a", "kept")
	m.Body.(*protocol.Work).Spec.Launch.Workdir = b.put(tar.Header{Name: "kept", Typeflag: tar.TypeReg, Mode: 0o444})
	b.run(m, job.Done)
	if out := shim.Tail(b.dir().Stdout(), 10, 1000); strings.TrimSpace(out) != "644" {
		t.Errorf("its rights are %q, want 644", out)
	}
}

// TestWorkDirectoriesOfBefore: what an older daemon has stored is used, and goes when nobody needs it.
func TestWorkDirectoriesOfBefore(t *testing.T) {
	b := newBench(t, nil)
	data := pack(t, tar.Header{Name: "old", Typeflag: tar.TypeReg})
	id, err := store.Sum(t.Context(), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(b.o.DataDir, "snapshots", string(id)+".tar.gz")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if there, err := b.ex.HasWorkdir(string(id)); err != nil || !there {
		t.Fatal(there, err)
	}
	m := lease(time.Minute, "cat", "old")
	m.Body.(*protocol.Work).Spec.Launch.Workdir = string(id)
	b.run(m, job.Done)
	ago := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(path, ago, ago); err != nil {
		t.Fatal(err)
	}
	for needed := range 2 {
		if err := b.ex.PruneWorkdirs(func(string) bool { return needed == 0 }); err != nil {
			t.Fatal(err)
		}
		if there, err := b.ex.HasWorkdir(string(id)); err != nil || there != (needed == 0) {
			t.Errorf("it is there: %v, %v", there, err)
		}
	}
}

// TestWorkDirectoriesOfBeforeTheKey: a job that waits while the daemon's file gets a store, or another, finds its work directory, which
// goes when nobody needs it.
func TestWorkDirectoriesOfBeforeTheKey(t *testing.T) {
	b := newBench(t, nil)
	id := b.put(tar.Header{Name: "old", Typeflag: tar.TypeReg})
	b.again(func(o *process.Options) { o.Store = newStore(t) })
	if there, err := b.ex.HasWorkdir(id); err != nil || !there {
		t.Error(there, err)
	}
	m := lease(time.Minute, "cat", "old")
	m.Body.(*protocol.Work).Spec.Launch.Workdir = id
	b.run(m, job.Done)
	ago := time.Now().Add(-2 * time.Hour)
	for _, pattern := range []string{"objects/*/" + id, filepath.Join("names", "work", "*", id+".json")} {
		list, err := filepath.Glob(filepath.Join(b.o.DataDir, "store", pattern))
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %v, %v", pattern, list, err)
		}
		if err := os.Chtimes(list[0], ago, ago); err != nil {
			t.Fatal(err)
		}
	}
	for needed := range 2 {
		if err := b.ex.PruneWorkdirs(func(string) bool { return needed == 0 }); err != nil {
			t.Fatal(err)
		}
		if there, err := b.ex.HasWorkdir(id); err != nil || there != (needed == 0) {
			t.Errorf("it is there: %v, %v", there, err)
		}
	}
}

// TestWhatNobodyNeedsLeavesTheStore: the name of a work directory goes when it is old and no job needs it, and then the object; what
// others have put there stays, and so does what is young.
func TestWhatNobodyNeedsLeavesTheStore(t *testing.T) {
	s := newStore(t)
	b := newBench(t, func(o *process.Options) { o.Store = s })
	old, young := b.put(tar.Header{Name: "old", Typeflag: tar.TypeReg}), b.put(tar.Header{Name: "young", Typeflag: tar.TypeReg})
	other, err := s.Put(t.Context(), "", strings.NewReader("another daemon's"))
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Name(t.Context(), s, "work/another/"+string(other.Digest), store.Refs{"work": other.Digest}); err != nil {
		t.Fatal(err)
	}
	ago := time.Now().Add(-2 * time.Hour)
	root := strings.TrimPrefix(s.String(), "local:")
	for _, pattern := range []string{"objects/*/" + old, filepath.Join("names", "work", "*", old+".json"), "objects/*/" +
		string(other.Digest), filepath.Join("names", "work", "another", "*")} {
		list, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %v, %v", pattern, list, err)
		}
		if err := os.Chtimes(list[0], ago, ago); err != nil {
			t.Fatal(err)
		}
	}
	needed := true
	for _, want := range []int{3, 2} {
		if err := b.ex.PruneWorkdirs(func(id string) bool { return needed && id == old }); err != nil {
			t.Fatal(err)
		}
		if all := names(t, s); len(all) != want {
			t.Errorf("%d names, want %d: %v", len(all), want, all)
		}
		needed = false
	}
	for id, want := range map[string]bool{old: false, young: true, string(other.Digest): true} {
		if there, err := b.ex.HasWorkdir(id); err != nil || there != want {
			t.Errorf("%s is there: %v, %v", id, there, err)
		}
	}
}

// mute is a store that does not answer.
type mute struct {
	store.Store
	answers atomic.Bool
}

func (s *mute) Now(ctx context.Context) (time.Time, error) {
	if !s.answers.Load() {
		return time.Time{}, errors.New("connection refused")
	}
	return s.Store.Now(ctx)
}

// TestAStoreThatIsAwayAtTheStart: the daemon begins all the same, and its node starts nothing until the store answers.
func TestAStoreThatIsAwayAtTheStart(t *testing.T) {
	s := &mute{Store: newStore(t)}
	b := newBench(t, func(o *process.Options) { o.Store, o.Keep, o.Away = s, true, errors.New("connection refused") })
	if a := b.next(protocol.Unhealthy).Body.(*protocol.Condition); !a.Unhealthy ||
		!strings.Contains(a.Text, "the store is away: connection refused") {
		t.Errorf("%+v", a)
	}
	s.answers.Store(true)
	if a := b.next(protocol.Unhealthy).Body.(*protocol.Condition); a.Unhealthy {
		t.Errorf("%+v", a)
	}
}
