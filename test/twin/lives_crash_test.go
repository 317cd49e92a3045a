package twin_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/host"
)

// TestKilledAtEveryAppendOfManyLives stops the daemon at each append of a day with a job that is requeued, one that is
// replaced and one that is deleted, each when it has left to the archive, just before and just after it is durable. Whoever called asks
// again under the same request.
func TestKilledAtEveryAppendOfManyLives(t *testing.T) {
	t.Parallel()
	appends := livesKilledAt(t, 0, false)
	if appends < 60 {
		t.Fatalf("only %d appends: the day shows nothing", appends)
	}
	for _, after := range []bool{false, true} {
		for k := 1; k <= appends; k++ {
			if livesKilledAt(t, k, after); t.Failed() {
				t.Fatalf("killed at append %d of %d, after it was durable: %v", k, appends, after)
			}
		}
	}
}

// insist calls until there is an answer, with the daemon started again where it has died.
func (l *live) insist(t *testing.T, what string, call func() error) {
	t.Helper()
	for range 10 {
		err := call()
		if err == nil {
			return
		}
		if errkind.Of(err) != errkind.Unavailable {
			t.Fatalf("%s: %v", what, err)
		}
		l.revive(t)
	}
	t.Fatalf("%s was never answered", what)
}

// ended waits until a job is over in a life.
func (l *live) ended(t *testing.T, name job.ID, want job.State) {
	t.Helper()
	for range 1000 {
		j, err := l.host.Job(context.Background(), name)
		switch {
		case errkind.Of(err) == errkind.Unavailable:
			l.revive(t)
		case err != nil:
			t.Fatalf("job %s: %v", name, err)
		case j.State == want:
			return
		case j.State.Final():
			t.Fatalf("job %s is %v: %s", name, j.State, j.Reason)
		}
		time.Sleep(time.Second)
	}
	t.Fatalf("job %s does not become %v", name, want)
}

func livesKilledAt(t *testing.T, k int, after bool) (appends int) {
	t.Helper()
	ctx := context.Background()
	l := newLive(t)
	l.journal = func(j journal.Journal) journal.Journal { return &failing{j, &appends, k, after} }
	l.archives(3 * time.Second)
	l.options = func(o *host.Options) { o.NoTape = true }
	synctest.Test(t, func(t *testing.T) {
		l.openKilled(t)
		submit := func(request string, s *job.Spec) {
			l.insist(t, request, func() error { _, err := l.host.Submit(ctx, request, s, nil); return err })
		}
		keep := spec(t, "keep", job.Items, 90, time.Second)
		keep.Parallelism = 1
		submit("keep", keep)
		submit("again", spec(t, "again", job.Items, 7, time.Second))
		time.Sleep(20 * time.Second)
		l.insist(t, "cancel", func() error { return l.host.Cancel(ctx, "cancel", "keep") })
		l.ended(t, "keep", job.Cancelled)
		time.Sleep(10 * time.Second) // until it has left
		l.insist(t, "requeue", func() error { _, err := l.host.Requeue(ctx, "requeue", "keep", 0); return err })
		l.ended(t, "again", job.Finished)
		time.Sleep(10 * time.Second)
		l.insist(t, "replace", func() error {
			err := l.host.SubmitAll(ctx, []host.Submission{{Request: "replace", Spec: spec(t, "again", job.Items, 5, time.Second),
				Replace: true}}, nil)[0].Err
			return err
		})
		submit("gone", spec(t, "gone", job.Items, 3, time.Second))
		l.ended(t, "keep", job.Finished)
		l.ended(t, "again", job.Finished)
		l.ended(t, "gone", job.Finished)
		time.Sleep(10 * time.Second)
		l.insist(t, "delete", func() error {
			err := l.host.Delete(ctx, "delete", "gone")
			if errkind.Of(err) == errkind.NotFound { // it was deleted, and the daemon that did it has died
				return nil
			}
			return err
		})
		time.Sleep(10 * time.Second)
		l.insist(t, "the end", func() error { _, err := l.jobs(ctx); return err })
		time.Sleep(10 * time.Second)
		jobs, err := l.jobs(ctx)
		if err != nil || len(jobs) != 2 {
			t.Errorf("jobs at the end: %d, %v", len(jobs), err)
		}
		for _, j := range jobs {
			if want := map[job.ID]int64{"keep": 90, "again": 5}[j.Name]; j.Progress != want {
				t.Errorf("job %s: %d units, want %d", j.Name, j.Progress, want)
			}
		}
		published := map[job.ID]job.Ranges{}
		for token, s := range l.fake.Settlements() {
			if s.Committed {
				if published[s.Job].Overlaps(s.Range) {
					t.Errorf("job %s: %v of %v is published beside another", s.Job, s.Range, token)
				}
				published[s.Job] = published[s.Job].Add(s.Range)
			}
		}
		if len(published) != 2 || published["keep"].Len() != 90 || published["again"].Len() != 5 {
			t.Errorf("published at the end: %v", published)
		}
		if err := l.stop(); err != nil && !errors.Is(err, errKilled) {
			t.Error(err)
		}
	})
	if size, err := l.kept.Size(); err != nil || size.Jobs != 2 || size.Homes != 2 {
		t.Errorf("the archive has %d jobs and %d homes at the end: %v", size.Jobs, size.Homes, err)
	}
	lives, back, forgotten := map[job.ID]job.Ranges{}, 0, 0
	for _, f := range l.logged(t) {
		switch f.Kind {
		case protocol.JobAccepted, protocol.HomeKept:
			if recalled(&f) {
				back++
			}
		case protocol.JobForgotten:
			if f.Body.(*protocol.Forgetting).Archived {
				forgotten++
			}
		case protocol.HomeTaken:
			lives[f.Job] = nil
		case protocol.Committed:
			done := f.Body.(*protocol.ClaimEnd).Range
			if lives[f.Job].Overlaps(done) {
				t.Errorf("job %s: %v is committed twice", f.Job, done)
			}
			lives[f.Job] = lives[f.Job].Add(done)
		}
	}
	if k == 0 && (back != 2 || forgotten != 2) { // killed, it may be called before it has left
		t.Errorf("%d parts came back from the archive and %d jobs were forgotten there: the day shows nothing", back, forgotten)
	}
	return appends
}
