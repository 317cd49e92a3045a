package eviction

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/process/folders"
	"sluice.dev/sluice/internal/edge/executor/process/shelf"
	"sluice.dev/sluice/internal/edge/executor/process/workdirs"
)

// head is the head's store: the checkpoints that it has, unless it is away.
type head struct {
	has  map[job.Token]bool
	away bool
}

func (h *head) HasCheckpoint(_ context.Context, _ job.ID, t job.Token) (bool, error) {
	if h.away {
		return false, errkind.Errorf(errkind.Unavailable, "it is away")
	}
	return h.has[t], nil
}

func token(seq uint64) job.Token { return job.Token{Epoch: 1, Seq: seq} }

// machine is what a machine keeps, below a folder.
type machine struct {
	*testing.T
	dir   folders.Layout
	store head
	used  map[string]bool
	cache Cache
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{T: t, dir: folders.Layout(t.TempDir()), store: head{has: map[job.Token]bool{}}, used: map[string]bool{}}
	warn := func(path string, err error) { t.Errorf("%s: %v", path, err) }
	newShelf := func(kind string, depth int) *shelf.Shelf {
		return &shelf.Shelf{Root: m.dir.In(kind), Depth: depth, Most: 100, Bytes: 1 << 30, Warn: warn}
	}
	m.cache = Cache{Layout: m.dir, Lives: folders.NewLives(m.dir, 10, warn), Store: &m.store,
		Originals: workdirs.New(m.dir.In("originals")), Lost: newShelf("kept", 1), Logs: newShelf("logs", 2),
		InUse: func(job.ID) map[string]bool { return m.used }, Log: slog.New(slog.DiscardHandler)}
	m.file(m.cache.Originals.Dir(), "workdir", "x")
	for _, kind := range []string{"trash", "checkpoints", "output"} {
		m.must(os.MkdirAll(m.dir.In(kind), 0o700))
	}
	return m
}

func (m *machine) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// file writes one, and returns its path.
func (m *machine) file(parts ...string) string {
	m.Helper()
	path := filepath.Join(parts...)
	m.must(os.MkdirAll(filepath.Dir(path), 0o700))
	m.must(os.WriteFile(path, []byte("x"), 0o600))
	return path
}

// old makes a file look as if it had been written so long ago.
func (m *machine) old(path string, ago time.Duration) {
	m.Helper()
	at := time.Now().Add(-ago)
	m.must(os.Chtimes(path, at, at))
}

// want checks which of these are there.
func (m *machine) want(when string, want map[string]bool) {
	m.Helper()
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if _, err := os.Stat(path); (err == nil) != want[path] {
			m.Errorf("%s: %s is there: %v", when, path, !want[path])
		}
	}
	if left, err := os.ReadDir(m.dir.In("trash")); len(left) > 0 || err != nil {
		m.Errorf("%s: in the trash there are %v, %v", when, left, err)
	}
}

// TestWhatIsEvicted of all that a machine may keep of a job: what the store has no more or nobody has used for long, and where room is
// short all but what a running subjob begins from. What can't be asked for stays.
func TestWhatIsEvicted(t *testing.T) {
	for _, c := range []struct {
		name                                            string
		do                                              func(*Cache, context.Context)
		away                                            bool
		stored, gone, begun, output, lost, log, workdir bool // what stays
	}{
		{name: "from time to time", do: (*Cache).Tidy, stored: true, begun: true, lost: true, log: true, workdir: true},
		{name: "from time to time, the store away", do: (*Cache).Tidy, away: true, stored: true, gone: true, begun: true, output: true,
			lost: true, log: true, workdir: true},
		{name: "for room", do: (*Cache).MakeRoom, begun: true},
		{name: "for room, the store away", do: (*Cache).MakeRoom, away: true, stored: true, gone: true, begun: true, output: true},
	} {
		m := newMachine(t)
		m.store.has[token(1)], m.store.away = true, c.away
		m.used[m.dir.Checkpoint("j", token(3))] = true
		output := m.dir.Output("j", job.Range{From: 0, To: 10})
		m.file(folders.TokenFile(output))
		m.must(os.WriteFile(folders.TokenFile(output), []byte(token(1).String()), 0o600))
		logs := func(name string) string { return filepath.Join(m.dir.Logs("j"), name) }
		oldLog := m.file(logs("old"))
		m.old(oldLog, 8*24*time.Hour)
		want := map[string]bool{
			m.file(m.dir.Checkpoint("j", token(1)), "x"):      c.stored,
			m.file(m.dir.Checkpoint("j", token(2)), "x"):      c.gone,
			m.file(m.dir.Checkpoint("j", token(3)), "x"):      c.begun,
			m.file(output, "x"):                               c.output,
			m.file(m.dir.Kept("j", token(4)), "output"):       c.lost,
			m.file(logs("new")):                               c.log,
			oldLog:                                            false,
			filepath.Join(m.cache.Originals.Dir(), "workdir"): c.workdir,
		}
		c.do(&m.cache, t.Context())
		m.want(c.name, want)
	}
}
