package auction

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/agents"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/markettest"
	"sluice.dev/sluice/internal/core/market/window"
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
	w := newWorld(fifo.Policy{}, c)
	w.offer("s", 10, 1000, protocol.Gap{Start: now, End: quantity.Never})
	s := markettest.Spec(t, 1)
	s.Total, s.Deadline, s.Worth = 100, now.Add(10*time.Hour), job.Worth{Laxity: 1000}
	w.submit(markettest.Job{Of: s, Came: now, Paused: true})
	w.step(now)
	j, sold := w.jobs[0], w.slices[0]
	declared := func(at quantity.Instant) int64 {
		t.Helper()
		w.x.quoter.begin()
		defer w.x.quoter.end()
		q := w.x.quoter.quote(at, j, &agents.Offer{Slice: sold}, window.Of(0, at, quantity.Never))
		if len(q.terms) == 0 {
			t.Fatalf("it offers nothing: %+v", q.refusal)
		}
		return q.terms[0].declared
	}
	first := declared(now)
	if recordOf(j).quotes == nil {
		t.Fatal("its answer is not kept")
	}
	if again := declared(recordOf(j).quotes.until); again != first {
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
	w := newWorld(deadline.Policy{}, c)
	w.offer("s", 10, 1000, protocol.Gap{Start: now, End: quantity.Never})
	s := markettest.Spec(t, 1)
	s.Total, s.Deadline = 100, now.Add(100*time.Hour)
	w.submit(markettest.Job{Of: s, Came: now, Paused: true})
	w.step(now)
	j, sold := w.jobs[0], w.slices[0]
	last := int64(0)
	for _, at := range []quantity.Instant{now, now.Add(50 * time.Hour), now.Add(90 * time.Hour), now.Add(98 * time.Hour),
		s.Deadline.Add(-4 * time.Minute), s.Deadline.Add(-time.Second)} {
		o, win := agents.Offer{Slice: sold}, window.Of(0, at, quantity.Never)
		w.x.quoter.begin()
		q := w.x.quoter.quote(at, j, &o, win)
		w.x.quoter.read(at, q)
		total := w.x.quoter.worth(at, q, 0, &o, false).total
		w.x.plan.bids = w.x.plan.bids[:0]
		w.x.enterRival(at, 0, j, &o, win, false)
		if len(w.x.plan.bids) == 0 || w.x.plan.bids[0].total != total {
			t.Fatalf("%v before its deadline the answer is worth %d, one that is made then %+v", s.Deadline.Sub(at), total, w.x.plan.bids)
		}
		if want := score.Urgency(w.parts.Est.Laxity(j, sold.Class(), at)); total != want {
			t.Errorf("%v before its deadline it is worth %d, want %d", s.Deadline.Sub(at), total, want)
		}
		if reach := s.Deadline.Sub(at) > time.Second; reach && total <= last || !reach && total != 0 {
			t.Errorf("%v before its deadline it is worth %d, and %d before", s.Deadline.Sub(at), total, last)
		}
		last = total
		w.x.quoter.end()
	}
}

// TestTheAnswersAskedForLastStay: of those that the book looks at the one gives way that was asked for longest ago, and its job does
// not have it any more.
func TestTheAnswersAskedForLastStay(t *testing.T) {
	const most = 4
	b, jobs := book{}, make([]*index.Job, most+1)
	enter := func(i int, clearing uint64) bool {
		q := b.blank()
		q.job, q.clearing = jobs[i], clearing
		if !b.keep(q, most) {
			return false
		}
		q.next, recordOf(jobs[i]).quotes = recordOf(jobs[i]).quotes, q
		return true
	}
	for i := range jobs {
		s := markettest.Spec(t, i)
		jobs[i] = &index.Job{Demand: &markettest.Job{Of: s}}
	}
	for i := range most {
		enter(i, []uint64{7, 9, 3, 8}[i])
	}
	if !enter(most, 9) {
		t.Fatal("nobody gives way")
	}
	for i, j := range jobs {
		if gone := recordOf(j).quotes == nil; gone != (i == 2) {
			t.Errorf("job %d, asked for in clearing %v: its answer is gone is %v", i, []uint64{7, 9, 3, 8, 9}[i], gone)
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
		t.Error("one that was asked for in the same clearing gives way")
	}
}
