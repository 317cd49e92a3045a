package host

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// As package workdirs has them.
const (
	pruneEvery         = time.Hour
	pruneUnpackedEvery = time.Minute
)

// TestALostJournalIsRefused: where outputs of jobs lie and the journal that knows them is gone, nothing is removed, at no start.
func TestALostJournalIsRefused(t *testing.T) {
	r, s, _ := filesRig(t)
	s.stored = []job.ID{"finished"}
	for range 2 {
		if _, err := r.open(); errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), "finished") {
			t.Fatalf("a directory without its journal: %v", err)
		}
	}
	if n := r.executor.count(); n != 0 {
		t.Errorf("%d effects, want none", n)
	}
	s.stored = nil
	_, stop := r.start(t)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// TestForgottenJobsLeaveNoSnapshots: a daemon that never restarts removes them too, but does not look all the time.
func TestForgottenJobsLeaveNoSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s, z := filesRig(t)
		// A job called forget-NAME makes the gate forget the job NAME.
		gate := func(a *toy, now quantity.Instant, in protocol.Message, out *protocol.Out) {
			if name, ok := strings.CutPrefix(string(in.Job), "forget-"); ok && in.Kind == protocol.Submit {
				a.fact(out, protocol.Fact{Kind: protocol.JobForgotten, Job: job.ID(name), Body: &protocol.Forgetting{}})
			}
			accept(a, now, in, out)
		}
		r.actors = func() actor.Set {
			return actor.Alone("z", "n", &toyGate{toy{step: gate}}, z, &toyNode{})
		}
		var mu sync.Mutex
		var kept [][]bool
		s.pruned = func(keep func(string) bool) {
			mu.Lock()
			defer mu.Unlock()
			kept = append(kept, []bool{keep("snap-a"), keep("snap-b"), keep("snap-c")})
		}
		h, stop := r.start(t)
		synctest.Wait()
		submit := func(name job.ID, tar string) {
			if _, err := h.Submit(context.Background(), "", spec(name), []byte(tar)); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"a", "b", "c"} {
			submit(job.ID(name), name)
		}
		submit("forget-a", "c")
		submit("forget-b", "c")
		time.Sleep(2 * pruneEvery)
		submit("d", "c")
		submit("e", "c")
		synctest.Wait()
		want := [][]bool{{false, false, false}, {false, true, true}, {false, false, true}} // at the start, at once, later
		if !slices.EqualFunc(kept, want, slices.Equal[[]bool]) {
			t.Errorf("kept %v, want %v", kept, want)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestAMissingWorkDirectoryIsNamedAtTheStart, but not for a job that is over.
func TestAMissingWorkDirectoryIsNamedAtTheStart(t *testing.T) {
	r, s, z := filesRig(t) // its zone knows job a
	h, stop := r.start(t)
	for _, name := range []job.ID{"a", "b", "c"} {
		if _, err := h.Submit(context.Background(), "", spec(name), []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	s.gone, z.over = []string{"snap-a", "snap-b"}, true
	var said strings.Builder
	files := r.options
	r.options = func(o *Options) { files(o); o.Log = slog.New(slog.NewTextHandler(&said, nil)) }
	_, stop = r.start(t)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "job=b snapshot=snap-b") {
		t.Errorf("the job without its work directory is not named:\n%s", said.String())
	}
	if strings.Contains(said.String(), "snap-a") || strings.Contains(said.String(), "snap-c") {
		t.Errorf("a job is named that is over, or has all it needs:\n%s", said.String())
	}
}

// TestEndedJobsLeaveNothingUnpacked: what is unpacked for a job goes with its end, long before its snapshot, unless another
// that lives needs it too; after a restart as well.
func TestEndedJobsLeaveNothingUnpacked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s, z := filesRig(t)
		// A job called close-NAME makes the gate close the job NAME, one called again-NAME requeue it.
		gate := func(a *toy, now quantity.Instant, in protocol.Message, out *protocol.Out) {
			if name, ok := strings.CutPrefix(string(in.Job), "close-"); ok && in.Kind == protocol.Submit {
				a.fact(out, protocol.Fact{Kind: protocol.JobClosed, Job: job.ID(name), Body: &protocol.Final{}})
			}
			if name, ok := strings.CutPrefix(string(in.Job), "again-"); ok && in.Kind == protocol.Submit {
				a.fact(out, protocol.Fact{Kind: protocol.JobRequeued, Job: job.ID(name), Generation: 2, Body: &protocol.Sequel{}})
			}
			accept(a, now, in, out)
		}
		r.actors = func() actor.Set {
			return actor.Alone("z", "n", &toyGate{toy{step: gate}}, z, &toyNode{})
		}
		var live [][]bool
		s.unpacked = func(lives func(string) bool) {
			live = append(live, []bool{lives("snap-a"), lives("snap-b")})
		}
		h, stop := r.start(t)
		submit := func(name job.ID, tar string) {
			if _, err := h.Submit(context.Background(), "", spec(name), []byte(tar)); err != nil {
				t.Fatal(err)
			}
		}
		submit("a", "a")
		submit("b", "b")
		submit("too", "b")
		time.Sleep(2 * pruneUnpackedEvery)
		submit("close-a", "c")
		submit("close-b", "c")
		time.Sleep(2 * pruneUnpackedEvery)
		submit("close-too", "c")
		submit("again-a", "c")
		time.Sleep(2 * pruneUnpackedEvery)
		submit("close-again-a", "c")
		if err := stop(); err != nil {
			t.Error(err)
		}
		_, stop = r.start(t)
		// at the start, a and b over, too over, a again, after a restart
		want := [][]bool{{false, false}, {false, true}, {false, false}, {true, false}, {true, false}}
		if !slices.EqualFunc(live, want, slices.Equal[[]bool]) {
			t.Errorf("unpacked for those who live: %v, want %v", live, want)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
