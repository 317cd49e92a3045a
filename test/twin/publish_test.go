package twin_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/host"
)

// slow is an executor that takes its time to put output in its place.
type slow struct {
	executor.Executor
	after time.Duration
	gone  chan struct{}
	tasks sync.WaitGroup
}

func (s *slow) Do(m protocol.Message, witness journal.Position) {
	if m.Kind != protocol.Settle {
		s.Executor.Do(m, witness)
		return
	}
	s.tasks.Go(func() {
		select {
		case <-time.After(s.after):
			s.Executor.Do(m, witness)
		case <-s.gone:
		}
	})
}

func (s *slow) Close() error {
	close(s.gone)
	s.tasks.Wait()
	return s.Executor.Close()
}

// TestWhoeverIsToldFindsIt: whatever range is shown as committed, and all of a job that is COMPLETED, lies in its place by
// then, however long that takes and also where the daemon is started again meanwhile.
func TestWhoeverIsToldFindsIt(t *testing.T) {
	l := newLive(t)
	l.options = func(o *host.Options) {
		o.NoTape = true
		with := o.Executor
		o.Executor = func(e host.Env) (executor.Executor, host.Files, error) {
			x, f, err := with(e)
			return &slow{Executor: x, after: 7 * time.Second, gone: make(chan struct{})}, f, err
		}
	}
	synctest.Test(t, func(t *testing.T) {
		if err := l.open(); err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		jobs := small(t)
		for _, a := range jobs {
			if _, err := l.host.Submit(ctx, a.request(), a.spec, nil); err != nil {
				t.Fatal(err)
			}
		}
		shown, over := 0, map[job.ID]quantity.Instant{}
		for i := 0; len(over) < len(jobs) && i < 20_000; i++ {
			if i == 300 || i == 900 {
				if err := l.stop(); err != nil {
					t.Fatal(err)
				}
				if err := l.open(); err != nil {
					t.Fatal(err)
				}
			}
			for _, a := range jobs {
				j, err := l.host.Job(ctx, a.spec.Name)
				if err != nil {
					t.Fatal(err)
				}
				there := l.fake.Settlements()
				n := int64(0)
				for _, s := range j.History {
					if s.Committed.Empty() {
						continue
					}
					shown++
					n += s.Committed.Len()
					if got := there[s.Token]; !got.Committed || got.Range != s.Committed {
						t.Fatalf("%s: %v of subjob %v is shown as committed, and what is in its place is %v (%v)", j.Name, s.Committed,
							s.Token, got.Range, got.Committed)
					}
				}
				if n != j.Progress {
					t.Fatalf("%s: progress is %d, its subjobs committed %d", j.Name, j.Progress, n)
				}
				if j.State.Final() {
					over[j.Name] = j.Ended
					if j.State != job.Finished || n != j.Total {
						t.Fatalf("%s is %v with %d of %d: %s", j.Name, j.State, n, j.Total, j.Reason)
					}
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		if len(over) < len(jobs) || shown == 0 {
			t.Errorf("%d of %d jobs are over, %d committed subjobs were seen", len(over), len(jobs), shown)
		}
		if err := l.stop(); err != nil {
			t.Error(err)
		}
	})
	checkOnce(t, l.facts, small(t))
}
