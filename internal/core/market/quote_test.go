package market

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy/deadline"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
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

// TestAKeptAnswerPressesMoreAndMore: a quote that is kept weighs by the slack that there is when it is weighed, as a bid that is made then
// does, and nothing of that once its deadline is out of reach.
func TestAKeptAnswerPressesMoreAndMore(t *testing.T) {
	c := Config{Weights: score.Weights{System: score.System{Urgency: score.One}}}.WithDefaults()
	now := quantity.Instant(1e15)
	w := newFakeWorld(FloorConfig{Policy: deadline.Policy{}, Market: &c, Horizon: time.Hour, MinWindow: time.Second, Retry: time.Second},
		false)
	w.offer("s", 10, 1000, protocol.Gap{Start: now, End: quantity.Never})
	s := benchSpec(t, 1)
	s.Total, s.Deadline = 100, now.Add(100*time.Hour)
	w.submit(fakeJob{spec: s, submitted: now, paused: true})
	w.step(now)
	j, sold := w.jobs[0], w.slices[0]
	j.indexed = true
	last := int64(0)
	for _, at := range []quantity.Instant{now, now.Add(50 * time.Hour), now.Add(90 * time.Hour), now.Add(98 * time.Hour),
		s.Deadline.Add(-4 * time.Minute), s.Deadline.Add(-time.Second)} {
		o, win := offer{slice: sold}, window{start: at, end: quantity.Never}
		w.f.sit()
		q := w.f.quoteOf(at, j, &o, &win)
		w.f.read(at, q)
		_, total, _ := w.f.weigh(&reckoning{now: at, offer: &o}, q, 0)
		w.f.bids = w.f.bids[:0]
		w.f.propose(at, 0, j, &o, &win, false)
		if len(w.f.bids) == 0 || w.f.bids[0].total != total {
			t.Fatalf("%v before its deadline the answer is worth %d, one that is made then %+v", s.Deadline.Sub(at), total, w.f.bids)
		}
		if want := score.Urgency(w.f.laxity(j, sold.class, at)); total != want {
			t.Errorf("%v before its deadline it is worth %d, want %d", s.Deadline.Sub(at), total, want)
		}
		if reach := s.Deadline.Sub(at) > time.Second; reach && total <= last || !reach && total != 0 {
			t.Errorf("%v before its deadline it is worth %d, and %d before", s.Deadline.Sub(at), total, last)
		}
		last = total
		w.f.rise()
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
