package market

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestAKeptAnswerEndsWhereItsDeadlinePresses: what a job answered while it had time is not its answer when it has not, though nothing
// of it has changed.
func TestAKeptAnswerEndsWhereItsDeadlinePresses(t *testing.T) {
	c := Config{}.WithDefaults()
	now := quantity.Instant(1e15)
	w := newFakeWorld(FloorConfig{Policy: fifo.Policy{}, Market: &c, Horizon: time.Hour, MinWindow: time.Second, Retry: time.Second}, false)
	w.offer("s", 10, 1000, protocol.Gap{Start: now, End: quantity.Never})
	s := benchSpec(t, 1)
	s.Total, s.Deadline, s.Worth = 100, now.Add(10*time.Hour), job.Worth{Laxity: 1000}
	w.submit(fakeJob{spec: s, submitted: now, paused: true})
	w.step(now)
	j, sold := w.jobs[0], w.slices[0]
	declared := func(at quantity.Instant) int64 {
		t.Helper()
		w.f.sit()
		defer w.f.rise()
		q := w.f.quoteOf(at, j, &offer{slice: sold, window: 0}, &window{start: at, end: quantity.Never})
		if len(q.terms) == 0 {
			t.Fatalf("it offers nothing: %+v", q.refusal)
		}
		return q.terms[0].declared
	}
	j.indexed = true
	first := declared(now)
	if j.quotes == nil {
		t.Fatal("its answer is not kept")
	}
	if again := declared(j.quotes.until); again != first {
		t.Errorf("it declares %d, and %d at the last instant at which that holds", first, again)
	}
	if late := declared(s.Deadline.Add(-10 * time.Minute)); late <= first {
		t.Errorf("with ten hours left it declares %d, with ten minutes %d", first, late)
	}
}

// TestTheAnswersAskedForLastStay: of those that the book looks at the one gives way that was asked for longest ago, and its job does
// not have it any more.
func TestTheAnswersAskedForLastStay(t *testing.T) {
	const most = 4
	b, jobs := book{}, make([]*Job, most+1)
	enter := func(i int, sitting uint64) bool {
		q := b.blank()
		q.job, q.sitting = jobs[i], sitting
		if !b.keep(q, most) {
			return false
		}
		q.next, jobs[i].quotes = jobs[i].quotes, q
		return true
	}
	for i := range jobs {
		s := benchSpec(t, i)
		jobs[i] = &Job{Demand: &fakeJob{spec: s}}
	}
	for i := range most {
		enter(i, []uint64{7, 9, 3, 8}[i])
	}
	if !enter(most, 9) {
		t.Fatal("nobody gives way")
	}
	for i, j := range jobs {
		if gone := j.quotes == nil; gone != (i == 2) {
			t.Errorf("job %d, asked for in sitting %v: its answer is gone is %v", i, []uint64{7, 9, 3, 8, 9}[i], gone)
		}
	}
	if len(b.quotes) != most || len(b.blanks) != 1 {
		t.Errorf("it keeps %d and has room for %d more", len(b.quotes), len(b.blanks))
	}
	for i, q := range b.quotes {
		if q.at != i {
			t.Error(fmt.Sprint("quote ", i, " is said to be at ", q.at))
		}
	}
	for i := range jobs {
		b.forget(jobs[i])
	}
	for i := range most {
		enter(i, 9)
	}
	if enter(most, 9) {
		t.Error("one that was asked for in the same sitting gives way")
	}
}
