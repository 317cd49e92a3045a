package twin_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/civil"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/policy/fair"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/zone"
	"sluice.dev/sluice/internal/edge/archive"
	"sluice.dev/sluice/internal/edge/archive/bolt"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/local"
	"sluice.dev/sluice/internal/host"
	"sluice.dev/sluice/internal/host/datadir"
)

// olderData is a data directory of a format before without its files: snapshot, records and from format 3 on the archive of a daemon
// under mechanism jasda that was killed while subjobs ran.
type olderData struct {
	dir, format string
	written     time.Time
	// jobs are how many were kept, want what some of them were, chain how many units of that one were committed.
	jobs  int
	want  map[job.ID]job.State
	chain int64
	// cancel are those that would never end.
	cancel []job.ID
	// every is how long after it a reservation repeats, 0 if none does.
	every time.Duration
}

func olderFormats() []olderData {
	return []olderData{
		{ // jobs in every state, a template, a queue, a reservation, and a job with an empty name, which that version accepted
			dir: "testdata/format-1", format: "sluice data 1", written: time.Date(2026, 11, 22, 4, 21, 40, 0, time.UTC), jobs: 16,
			want: map[job.ID]job.State{"done": job.Finished, "d8": job.Finished, "failed": job.Failed, "cancelled": job.Cancelled,
				"paused": job.Paused},
			chain: 15, cancel: []job.ID{"", "paused"},
		},
		{ // the same but for the name, and lives: a job that was requeued, one that was deleted
			dir: "testdata/format-2", format: "sluice data 2", written: time.Date(2026, 11, 22, 10, 48, 26, 0, time.UTC), jobs: 12,
			want: map[job.ID]job.State{
				"done": job.Finished, "d4": job.Finished, "failed": job.Failed, "cancelled": job.Cancelled, "paused": job.Paused,
				"again": job.Finished,
			},
			chain: 88, cancel: []job.ID{"paused"},
		},
		{ // the same, and specs with the names of their jobs, two of which waited and one had begun another life
			dir: "testdata/format-3", format: "sluice data 3", written: time.Date(2026, 11, 22, 13, 54, 42, 0, time.UTC), jobs: 12,
			want: map[job.ID]job.State{
				"done": job.Finished, "d3": job.Finished, "cancelled": job.Cancelled, "paused": job.Paused, "twice": job.Finished,
			},
			chain: 251, cancel: []job.ID{"paused"},
		},
		{ // leases that have no rank, in a queue of weight 2
			dir: "testdata/format-4", format: "sluice data 4", written: time.Date(2026, 11, 23, 5, 58, 9, 0, time.UTC), jobs: 14,
			want: map[job.ID]job.State{
				"done": job.Finished, "d3": job.Finished, "failed": job.Failed, "cancelled": job.Cancelled, "paused": job.Paused,
			},
			chain: 335, cancel: []job.ID{"paused"},
		},
		{ // leases that have a rank, and a demand without its mean and deviation
			dir: "testdata/format-5", format: "sluice data 5", written: time.Date(2026, 11, 23, 9, 40, 6, 0, time.UTC), jobs: 9,
			want: map[job.ID]job.State{
				"done": job.Finished, "d3": job.Finished, "failed": job.Failed, "cancelled": job.Cancelled, "paused": job.Paused,
			},
			chain: 13, cancel: []job.ID{"paused"},
		},
		{ // specs that can name no image
			dir: "testdata/format-6", format: "sluice data 6", written: time.Date(2026, 11, 24, 0, 44, 58, 0, time.UTC), jobs: 9,
			want: map[job.ID]job.State{
				"done": job.Finished, "d3": job.Finished, "failed": job.Failed, "cancelled": job.Cancelled, "paused": job.Paused,
			},
			chain: 73, cancel: []job.ID{"paused"},
		},
		{ // the last build before format 8
			dir: "testdata/format-7", format: "sluice data 7", written: time.Date(2026, 11, 28, 1, 21, 18, 0, time.UTC), jobs: 9,
			want: map[job.ID]job.State{
				"done": job.Finished, "d3": job.Finished, "failed": job.Failed, "cancelled": job.Cancelled, "paused": job.Paused,
				"waits": job.Finished,
			},
			chain: 103, cancel: []job.ID{"paused"},
		},
		{ // a reservation that repeats in fixed steps of time, without days or a zone of time
			dir: "testdata/format-8", format: "sluice data 8", written: time.Date(2026, 11, 28, 7, 9, 50, 0, time.UTC), jobs: 9,
			want: map[job.ID]job.State{
				"done": job.Finished, "d3": job.Finished, "failed": job.Failed, "cancelled": job.Cancelled, "paused": job.Paused,
			},
			chain: 93, cancel: []job.ID{"paused"}, every: 24 * time.Hour,
		},
		{ // the last without addresses of nodes and of members of gangs
			dir: "testdata/format-9", format: "sluice data 9", written: time.Date(2026, 11, 30, 0, 48, 30, 0, time.UTC), jobs: 9,
			want: map[job.ID]job.State{
				"done": job.Finished, "d3": job.Finished, "failed": job.Failed, "cancelled": job.Cancelled, "paused": job.Paused,
			},
			chain: 143, cancel: []job.ID{"paused"},
		},
		{ // the last whose divisible jobs all declare a time
			dir: "testdata/format-10", format: "sluice data 10", written: time.Date(2026, 11, 30, 18, 51, 36, 0, time.UTC), jobs: 9,
			want: map[job.ID]job.State{
				"done": job.Finished, "d3": job.Finished, "failed": job.Failed, "cancelled": job.Cancelled, "paused": job.Paused,
			},
			chain: 133, cancel: []job.ID{"paused"},
		},
	}
}

// older is a live daemon on a copy of such a directory, with the names and the configuration that it had.
func older(t *testing.T, o olderData) *live {
	l := newLive(t)
	if err := os.CopyFS(l.dir, os.DirFS(o.dir)); err != nil {
		t.Fatal(err)
	}
	var filed *filing.Config
	if _, err := os.Stat(filepath.Join(o.dir, datadir.ArchiveDir)); err == nil {
		filed = &filing.Config{Keep: time.Minute}
	}
	make, err := arrangement.Alone(
		gate.Config{Zones: gate.Alone("local"), External: true, Archive: filed},
		zone.Config{ID: "local", Policy: fair.Policy{}, Market: &auction.Config{}, Archive: filed},
		node.Config{ID: "vm", Zone: "local"},
	).Build()
	if err != nil {
		t.Fatal(err)
	}
	l.build = make
	l.options = func(o *host.Options) {
		o.Machine, o.NoTape = "vm", true
		var list fixed
		for i, s := range machine("") {
			s.ID, s.Profile = job.SliceID([]string{"vm/gpu0/256Mi@0", "vm/gpu0/128Mi@1"}[i]), []string{"256Mi", "128Mi"}[i]
			s.Speed = 1000
			list = append(list, s)
		}
		o.Inventory = list
		if filed != nil {
			o.Archive = func(dir string, must bool) (archive.Archive, error) { return bolt.Open(dir, must) }
		}
		o.Journal = func(dir string) (journal.Journal, error) {
			j, err := local.Open(dir, local.Options{})
			return &tap{j, l.took}, err
		}
	}
	return l
}

// TestTheFormatBeforeOpens: what an older version wrote is read, nothing of it is lost, and its jobs go on.
func TestTheFormatBeforeOpens(t *testing.T) {
	for _, o := range olderFormats() {
		t.Run(o.format, func(t *testing.T) { opens(t, o) })
	}
}

// repeat looks for the reservation that repeats: by elapsed time, as the older version had it.
func (o *olderData) repeat(t *testing.T, l *live) {
	t.Helper()
	list, err := l.host.Slices(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var found []time.Duration
	for _, s := range list {
		for _, r := range s.Reservations {
			if r.Every != 0 && r.Calendar == (civil.Calendar{}) {
				found = append(found, r.Every)
			}
		}
	}
	if o.every != 0 && !slices.Contains(found, o.every) {
		t.Errorf("no reservation repeats every %v: %v", o.every, found)
	}
}

func opens(t *testing.T, o olderData) {
	l := older(t, o)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(o.written.Add(time.Minute)))
		if err := l.open(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := l.stop(); err != nil {
				t.Error(err)
			}
		}()
		if data, err := os.ReadFile(filepath.Join(l.dir, "FORMAT")); err != nil || strings.TrimSpace(string(data)) == o.format {
			t.Errorf("the directory is still marked as the older version's: %q, %v", data, err)
		}
		ctx := context.Background()
		time.Sleep(5 * time.Second) // until the node has said again what it had put in its place
		all, err := l.jobs(ctx)
		if err != nil || len(all) != o.jobs {
			t.Fatalf("%d jobs were read, want %d: %v", len(all), o.jobs, err)
		}
		for _, j := range all {
			if state, ok := o.want[j.Name]; ok && j.State != state {
				t.Errorf("%s is %v, was %v", j.Name, j.State, state)
			}
			if j.Name == "chain" && j.Progress < o.chain {
				t.Errorf("%d steps of chain were committed, %d are left", o.chain, j.Progress)
			}
			if j.Name == "done" && j.Subjobs != 1 {
				t.Errorf("done ran in one subjob, %d are left", j.Subjobs)
			}
		}
		o.repeat(t, l)
		for _, id := range o.cancel {
			if err := l.host.Cancel(ctx, "cancel-"+string(id), id); err != nil {
				t.Errorf("cancel %q: %v", id, err)
			}
		}
		if !l.finished(len(all), 24*time.Hour) {
			all, _ = l.jobs(ctx)
			for _, j := range all {
				t.Logf("%q is %v: %s", j.Name, j.State, j.Reason)
			}
			t.Fatal("not every job of the older version came to its end")
		}
	})
	released := map[job.ID]bool{}
	for _, f := range l.facts {
		if f.Kind == protocol.Released {
			released[f.Job] = true
		}
	}
	for _, id := range []job.ID{"running", "chain"} {
		if !released[id] {
			t.Errorf("the subjob of %s that ran under the older version was never settled", id)
		}
	}
}

// TestADamagedOlderJournalStaysOlder: a directory that is refused is left to the version that wrote it.
func TestADamagedOlderJournalStaysOlder(t *testing.T) {
	o := olderFormats()[1]
	l := older(t, o)
	segments, err := filepath.Glob(filepath.Join(l.dir, "journal", "*.seg"))
	if err != nil || len(segments) != 1 {
		t.Fatal(segments, err)
	}
	b, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(segments[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.open(); err == nil {
		_ = l.stop()
		t.Fatal("a damaged journal was accepted")
	}
	data, err := os.ReadFile(filepath.Join(l.dir, "FORMAT"))
	if err != nil || string(data) != o.format+"\n" {
		t.Errorf("a directory that was refused is marked as taken over: %q, %v", data, err)
	}
}
