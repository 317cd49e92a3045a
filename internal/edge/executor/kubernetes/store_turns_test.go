//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/store"
)

// stuck is a store that answers nothing until it is let go, and counts who is at it.
type stuck struct {
	store.Lender
	let chan struct{}

	mu       sync.Mutex
	now, top int
	calls    int
}

func (s *stuck) enter(ctx context.Context) error {
	s.mu.Lock()
	s.calls++
	s.now++
	s.top = max(s.top, s.now)
	s.mu.Unlock()
	defer func() { s.mu.Lock(); s.now--; s.mu.Unlock() }()
	select {
	case <-s.let:
		return nil
	case <-ctx.Done():
		return errkind.Errorf(errkind.Unavailable, "%w", ctx.Err())
	}
}

func (s *stuck) counts() (now, top, calls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, s.top, s.calls
}

func (s *stuck) Peek(ctx context.Context, place string, most int64) ([]byte, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	return s.Lender.Peek(ctx, place, most)
}

func (s *stuck) ReadName(ctx context.Context, name string) (store.Named, error) {
	if err := s.enter(ctx); err != nil {
		return store.Named{}, err
	}
	return s.Lender.ReadName(ctx, name)
}

func (s *stuck) Drop(ctx context.Context, place string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	return s.Lender.Drop(ctx, place)
}

func (s *stuck) Names(ctx context.Context, folder string, each func(store.Named) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	return s.Lender.Names(ctx, folder, each)
}

func holdUp(t *testing.T, e *Executor) *stuck {
	t.Helper()
	s := &stuck{Lender: e.shelf.lender, let: make(chan struct{})}
	e.shelf.lender, e.o.Store = s, s
	return s
}

// eventually waits for what must come.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// TestNoMoreThanSomeAreAtTheStore, whatever for: looks, results and what is put away.
func TestNoMoreThanSomeAreAtTheStore(t *testing.T) {
	first := asked(t, counted)
	e := first.e
	s := holdUp(t, e)
	var all sync.WaitGroup
	for i := range 5 * storeCalls {
		rec := *first.rec
		rec.Token = job.Token{Epoch: 1, Seq: uint64(i + 1)}
		r := newRun(e, rec)
		switch i % 3 {
		case 0:
			all.Go(func() { e.shelf.peek(t.Context(), r.rec) })
		case 1:
			r.said = &pod.Said{Output: &pod.Left{Digest: store.Digest(strings.Repeat("a", 64)), Size: 1}}
			all.Go(func() { _ = r.e.shelf.stow(t.Context(), r.rec, r.said) })
		default:
			v := view{gone: true,
				want: wanted{settle: &protocol.Message{Token: r.rec.Token,
					Body: &protocol.Settlement{Committed: true, Range: r.rec.Range}}}}
			all.Go(func() { _ = r.clear(&v) })
		}
	}
	eventually(t, "as many as may are at it", func() bool { now, _, _ := s.counts(); return now == storeCalls })
	close(s.let)
	all.Wait()
	if _, top, calls := s.counts(); top != storeCalls || calls < 5*storeCalls {
		t.Errorf("%d were at it at once, in %d calls; want %d", top, calls, storeCalls)
	}
}

// TestAStoreThatIsStuckHoldsUpNoEnd: whoever has left nothing is told to have ended, and whoever looks gives up; only who has something to
// store waits, and says so.
func TestAStoreThatIsStuckHoldsUpNoEnd(t *testing.T) {
	first := asked(t, counted)
	e := first.e
	holdUp(t, e)
	for range storeCalls { // all turns are taken
		e.shelf.turns <- struct{}{}
	}
	e.o.Report = 10 * time.Millisecond
	var storing atomic.Int64
	told := make(chan *job.Result, 10)
	answers := func(m protocol.Message) {
		switch b := m.Body.(type) {
		case *protocol.Observation:
			if b.Storing {
				storing.Add(1)
			}
		case *protocol.Conclusion:
			told <- b.Result
		}
	}
	e.box.Close()
	e.box = executor.NewOutbox(answers)
	nothing := newRun(e, *first.rec)
	nothing.said = nothing.end(job.Lost, "gone", nothing.rec.End)
	v := view{}
	if _, err := nothing.storeAndReport(&v); err != nil {
		t.Fatal(err)
	}
	select {
	case res := <-told:
		if res.Outcome != job.Lost {
			t.Errorf("%+v", res)
		}
	case <-time.After(time.Minute):
		t.Fatal("who has left nothing waits for the store")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, ok := e.shelf.peek(ctx, first.rec); ok {
		t.Error("a word was read without a turn")
	}
	some := newRun(e, *first.rec)
	some.said = &pod.Said{Output: &pod.Left{Digest: store.Digest(strings.Repeat("a", 64)), Size: 1}}
	go func() { _, _ = some.storeAndReport(&v) }()
	eventually(t, "its home hears that it is being stored", func() bool { return storing.Load() > 2 })
	before := storing.Load()
	late := newRun(e, *first.rec)
	go late.look(true)
	eventually(t, "so does that of one whose Pod still runs", func() bool { return storing.Load() > before+2 })
}

// TestFoundSubjobsAreNotAllLookedAtAtOnce: the first looks of many are spread out, by their tokens; who is over, or stores, is looked at
// all the same.
func TestFoundSubjobsAreNotAllLookedAtAtOnce(t *testing.T) {
	r := asked(t, counted)
	began := r.rec.End.Add(-time.Minute)
	v := view{want: wanted{order: r.pod.ordered}, pod: &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning,
		ContainerStatuses: []corev1.ContainerStatus{
			{Name: container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		}}}}
	r.heard.next = r.rec.End.Add(20 * time.Second)
	if r.listen(&v, began); r.heard.last != 0 {
		t.Error("it is looked at before its time")
	}
	if r.listen(&v, r.rec.End); r.heard.last != r.rec.End {
		t.Error("its lease is over, and nobody looks whether it stores what it has left")
	}
	const many = 40_000
	if apart := firstLook(many-1, many); apart > seldom || apart < seldom/2 {
		t.Errorf("the last of %d is looked at after %v, want no later than %v", many, apart, seldom)
	}
	if few := firstLook(9, 10); few > 100*time.Millisecond {
		t.Errorf("the last of ten is looked at after %v", few)
	}
}

// TestAPurgeIsOneThoughItIsAskedForAgain and again, while the store is away; one of another life is another.
func TestAPurgeIsOneThoughItIsAskedForAgain(t *testing.T) {
	e := asked(t, counted).e
	s := holdUp(t, e)
	purged := make(chan job.Generation, 100)
	e.box.Close()
	e.box = executor.NewOutbox(func(m protocol.Message) {
		if m.Kind == protocol.Purged {
			purged <- m.Generation
		}
	})
	for range 10 {
		e.Do(protocol.Message{Kind: protocol.Purge, Job: "train"}, journal.Position{})
		e.Do(protocol.Message{Kind: protocol.Purge, Job: "train", Generation: 2}, journal.Position{})
	}
	eventually(t, "both are under way", func() bool { now, _, _ := s.counts(); return now == 2 })
	time.Sleep(100 * time.Millisecond) // long enough for those that should not be
	if now, _, _ := s.counts(); now != 2 {
		t.Errorf("%d purges are under way", now)
	}
	close(s.let)
	got := map[job.Generation]int{<-purged: 1}
	got[<-purged]++
	eventually(t, "they are over", func() bool { e.mu.Lock(); defer e.mu.Unlock(); return len(e.purging) == 0 })
	e.Do(protocol.Message{Kind: protocol.Purge, Job: "train"}, journal.Position{})
	got[<-purged]++
	if got[0] != 2 || got[2] != 1 {
		t.Errorf("purged %v", got)
	}
}

// TestWhatIsRefusedForLongEnds: rights, a class or an account that are missing may be about to come; a slice is not held for them for
// long, and it is no job's failure.
func TestWhatIsRefusedForLongEnds(t *testing.T) {
	for _, text := range []string{
		`User "system:serviceaccount:sluice:sluice" cannot create resource "pods" in API group "" in the namespace "team"`,
		"no PriorityClass with name sluice-leftover was found",
		`error looking up service account team/default: serviceaccount "default" not found`,
	} {
		r, now := asked(t, counted), quantity.Instant(1_000_000_000)
		err := apierrors.NewForbidden(corev1.Resource("pods"), "x", errors.New(text))
		if why, _ := r.refused(err, now); why != "" {
			t.Errorf("refused at once: %s", why)
		}
		if why, _ := r.refused(errors.New("connection refused"), now.Add(patience/2)); why != "" {
			t.Errorf("no answer is a refusal: %s", why)
		}
		why, kind := r.refused(err, now.Add(patience))
		if !strings.Contains(why, text) || kind != errkind.Exhausted {
			t.Errorf("after %v: %q (%v)", patience, why, kind)
		}
		if r.giveUp(kind, why); r.blame.Outcome != job.NodeFailed {
			t.Errorf("%+v: it is the job's failure", r.blame)
		}
	}
}
