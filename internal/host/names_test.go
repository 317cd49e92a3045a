package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/local"
	"sluice.dev/sluice/internal/host/datadir"
)

// called is a rig whose node writes one fact at each start, about a slice of its own, under the last of the names.
func (r *rig) called(names ...job.NodeID) {
	name := names[len(names)-1]
	booted := func(a *toy, _ quantity.Instant, in protocol.Message, out *protocol.Out) {
		if in.Kind == protocol.Inventory {
			a.fact(out, protocol.Fact{Kind: protocol.Booted, Slice: job.SliceID(name) + "/gpu0"})
		}
	}
	r.actors = func() actor.Set {
		return actor.Alone("z", name, &toyGate{toy{step: accept}}, &toyZone{}, &toyNode{toy: toy{step: booted}})
	}
	r.options = func(o *Options) { o.Names, o.Machine = names, name }
}

// slicesSeen are the slices that the node's facts name after a start, and how many facts there are.
func slicesSeen(h *Host) (seen []job.SliceID, n int) {
	for _, f := range h.daemon.set.Nodes[0].Node.(*toyNode).facts {
		if n++; !slices.Contains(seen, f.Slice) {
			seen = append(seen, f.Slice)
		}
	}
	return seen, n
}

// boot starts a host, waits until it has answered once, so that its first messages were taken, and stops it.
func (r *rig) boot(t *testing.T) {
	t.Helper()
	h, stop := r.start(t)
	if _, err := h.About(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// TestARenameIsWhole: wherever a start under a new name ends, the directory has the old name or the new one, and either way all that was
// stored is found under it.
func TestARenameIsWhole(t *testing.T) {
	kept := func(r *rig) string {
		data, err := os.ReadFile(filepath.Join(r.dir, "names"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	ends := errors.New("the machine loses its power")
	for _, c := range []struct {
		where string
		cut   func(r *rig)
		want  string
	}{
		{"before anything was read", func(r *rig) {
			open := r.options
			r.options = func(o *Options) {
				open(o)
				o.Journal = func(string) (journal.Journal, error) { return nil, ends }
			}
		}, "old\n"},
		{"before the name is kept", func(r *rig) {
			open := r.options
			r.options = func(o *Options) {
				open(o)
				o.Executor = func(Env) (executor.Executor, Files, error) { return nil, nil, ends }
			}
		}, "old\n"},
		{"while the file is written", func(r *rig) {
			if err := os.MkdirAll(filepath.Join(r.dir, "names.tmp", "x"), 0o700); err != nil { // nothing can be written there
				t.Fatal(err)
			}
		}, "old\n"},
		{"before the first fact under it", func(r *rig) {
			r.before = func([][]byte) error { return ends }
		}, "old\nnew\n"},
	} {
		t.Run(c.where, func(t *testing.T) {
			r := newRig(t)
			r.called("old")
			r.boot(t)
			r.called("old", "new")
			c.cut(r)
			h, err := r.open()
			if err == nil { // it ends with its first record
				err = h.Run(context.Background())
			}
			if err == nil {
				t.Fatal("it ended well")
			}
			if got := kept(r); got != c.want {
				t.Errorf("it keeps %q, want %q", got, c.want)
			}
			r.before = nil
			if err := os.RemoveAll(filepath.Join(r.dir, "names.tmp")); err != nil {
				t.Fatal(err)
			}
			for _, names := range [][]job.NodeID{{"old"}, {"old", "new"}, {"old", "new"}, {"new", "old"}} {
				if len(names) == 1 && c.want != "old\n" {
					continue // the directory has the other name
				}
				r.called(names...)
				h, err := r.open()
				if err != nil {
					t.Fatalf("as %v: %v", names, err)
				}
				want := names[len(names)-1] + "/gpu0"
				if seen, n := slicesSeen(h); n == 0 || len(seen) != 1 || seen[0] != job.SliceID(want) {
					t.Errorf("as %v %d facts name %v, want %s", names, n, seen, want)
				}
				if err := h.Close(); err != nil {
					t.Error(err)
				}
				r.boot(t)
			}
		})
	}
}

func TestKeptNames(t *testing.T) {
	open := func(dir string) (journal.Journal, error) { return local.Open(dir, local.Options{}) }
	r := newRig(t)
	ask := func(nodes int, want ...job.NodeID) {
		t.Helper()
		if got, err := datadir.KeptNames(r.dir, nodes, open); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v, want %v", got, err, want)
		}
	}
	ask(1) // nothing is there, and nothing is made
	if _, err := os.Stat(r.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory was made: %v", err)
	}
	r.called("gpu-7")
	r.boot(t)
	ask(1, "gpu-7")
	path := filepath.Join(r.dir, "names")
	if err := os.Remove(path); err != nil { // as a directory of before
		t.Fatal(err)
	}
	ask(1, "gpu-7")
	ask(2, "gpu") // whose first node it would be
	for _, bad := range []string{"", "\n", "a\n\nb\n", "a", "a/b\n", "a\r\n", "a\x00\n"} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := datadir.KeptNames(r.dir, 1, open); errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
	if err := os.WriteFile(path, []byte("Host_1 (old)\nb\n"), 0o600); err != nil { // hosts are called as they are
		t.Fatal(err)
	}
	ask(1, "Host_1 (old)", "b")
}
