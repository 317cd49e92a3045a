package zone_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/federation/loan"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy/shortest"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// abroad is a gang of another zone's home, which speaks to the zone of a world.
type abroad struct {
	w     *world
	spec  *job.Spec
	from  string
	epoch uint32
	seq   uint64
	since quantity.Instant
	// heard is what the zone answered last; answers counts.
	heard   *protocol.Lending
	answers int
}

// foreign is a gang of zone y, which is answered in a world of zone z.
func foreign(w *world, spec *job.Spec) *abroad {
	a := &abroad{w: w, spec: spec, from: "y", epoch: 1, since: w.now}
	before := w.lose
	w.lose = func(m *protocol.Message) bool {
		if m.Kind == protocol.Lent && m.Job == spec.Name {
			a.heard = m.Body.(*protocol.Lending)
			a.answers++
			return true
		}
		return before != nil && before(m)
	}
	return a
}

// says has its home say something.
func (a *abroad) says(l protocol.Loan) {
	if l.Seq == 0 {
		a.seq++
		l.Seq = a.seq
	}
	if l.Slices > 0 {
		l.Spec, l.Submitted = a.spec, a.since
		if l.Length == 0 {
			l.Length = time.Minute
		}
	}
	a.w.step(protocol.Message{Kind: protocol.Borrow, From: protocol.Address{Role: protocol.Zone, ID: a.from},
		To: protocol.Address{Role: protocol.Zone, ID: "z"}, Job: a.spec.Name, Epoch: a.epoch, Body: &l})
}

// pass lets so much time go by.
func pass(w *world, d time.Duration) {
	for end := w.now.Add(d); w.now < end; {
		w.wake = min(w.wake, end)
		w.tick()
	}
}

// reserved counts the slices on which time is reserved for a job.
func (w *world) reserved(id job.ID) (n int) {
	for _, s := range w.slices {
		if slices.ContainsFunc(s.busy, func(r protocol.Reservation) bool { return r.Kind == protocol.ForRigid && r.Job == id }) {
			n++
		}
	}
	return n
}

// TestAGuestIsKeptForAWhile: as long as its home says so, and no longer; what it gives back is free at once.
func TestAGuestIsKeptForAWhile(t *testing.T) {
	w := newWorld(t, 512, 512, 512)
	a := foreign(w, ensemble(t, "far", time.Minute, 8))
	w.settle()
	for range 10 {
		a.says(protocol.Loan{Slices: 2, Keep: true, NotBefore: w.now.Add(5 * time.Minute)})
		pass(w, 3*time.Second)
		if !a.heard.Kept || len(a.heard.Slices) != 2 || w.reserved("far") != 2 {
			t.Fatalf("it is told %+v, and %d slices are reserved", a.heard, w.reserved("far"))
		}
	}
	pass(w, loan.Stands-5*time.Second)
	if n := w.reserved("far"); n != 2 {
		t.Errorf("%d slices are reserved, and its home has spoken a moment ago", n)
	}
	pass(w, 10*time.Second)
	if n := w.reserved("far"); n != 0 {
		t.Errorf("%d slices are reserved, and its home is silent", n)
	}
	a.says(protocol.Loan{Slices: 2, Keep: true})
	pass(w, time.Second)
	a.says(protocol.Loan{})
	pass(w, time.Second)
	if n := w.reserved("far"); n != 0 {
		t.Errorf("%d slices are reserved, and it has given them back", n)
	}
}

// ensemble is a gang that may lie in several zones.
func ensemble(t testing.TB, name string, walltime time.Duration, n int) *job.Spec {
	s := rigid(t, name, walltime, 400, n)
	s.Topology = job.SameCluster
	return s
}

// TestTheLatestWordOfAHomeCounts: what is said twice or late changes nothing, nor does another home, unless it came after this one.
func TestTheLatestWordOfAHomeCounts(t *testing.T) {
	w := newWorld(t, 512, 512, 512)
	a := foreign(w, ensemble(t, "far", time.Minute, 8))
	w.settle()
	a.says(protocol.Loan{Slices: 2, Keep: true})
	pass(w, time.Second)
	n := a.answers
	a.says(protocol.Loan{Seq: a.seq, Slices: 3, Keep: true})
	a.says(protocol.Loan{Seq: a.seq})
	a.from = "x"
	a.says(protocol.Loan{Slices: 3, Keep: true})
	pass(w, time.Second)
	if a.answers != n || w.reserved("far") != 2 {
		t.Errorf("it is answered %d times, and %d slices are reserved", a.answers-n, w.reserved("far"))
	}
	a.epoch, a.seq = 2, 0
	a.says(protocol.Loan{Slices: 1, Keep: true})
	pass(w, 2*time.Second)
	if a.answers != n+1 || w.reserved("far") != 1 {
		t.Errorf("its next home is answered %d times, and %d slices are reserved", a.answers-n, w.reserved("far"))
	}
}

// TestAnOfferKeepsNothing and says when the place could begin, and how many slices there are.
func TestAnOfferKeepsNothing(t *testing.T) {
	w := newWorld(t, 512, 512, 300)
	a := foreign(w, ensemble(t, "far", time.Minute, 8))
	w.submit(rigid(t, "own", 30*time.Second, 400, 1))
	w.settle()
	a.says(protocol.Loan{Slices: 2})
	if h := a.heard; h.Kept || h.Could != 2 || h.Start != w.now.Add(30*time.Second) || h.End.Sub(h.Start) != time.Minute ||
		len(h.Slices) > 0 || w.reserved("far") > 0 {
		t.Errorf("it is told %+v, and %d slices are reserved", h, w.reserved("far"))
	}
	a.says(protocol.Loan{Slices: 3})
	if h := a.heard; h.Start != 0 || h.Could != 2 || !strings.Contains(h.Why, "no more") {
		t.Errorf("it is told %+v", h)
	}
	later := w.now.Add(5 * time.Minute)
	a.says(protocol.Loan{Slices: 2, Keep: true, NotBefore: later})
	if h := a.heard; !h.Kept || h.Start != later || h.Earliest == 0 || h.Earliest >= later {
		t.Errorf("it is told %+v; want it to begin at %d", h, later)
	}
}

// TestWorkGoesOnInFrontOfAGuest, and none of it delays it.
func TestWorkGoesOnInFrontOfAGuest(t *testing.T) {
	w := newWorld(t, 512, 512)
	a := foreign(w, ensemble(t, "far", time.Minute, 8))
	w.settle()
	at := w.now.Add(time.Minute)
	said := func() { a.says(protocol.Loan{Slices: 2, Keep: true, NotBefore: at}) }
	said()
	w.submit(rigid(t, "fits", 50*time.Second, 400, 1), rigid(t, "long", 5*time.Minute, 400, 1))
	for w.now < at {
		pass(w, time.Second)
		said()
		if !a.heard.Kept || a.heard.Start != at {
			t.Fatalf("at %d it is told %+v", w.now, a.heard)
		}
	}
	finished(t, w, "fits")
	a.says(protocol.Loan{})
	w.until(10 * time.Minute)
	finished(t, w, "long")
}

// TestAGuestStandsInLine with the zone's own gangs: who came first has its place first.
func TestAGuestStandsInLine(t *testing.T) {
	for _, first := range []bool{true, false} {
		w := newWorld(t, 512, 512)
		w.config.Rigid = backfill.Discipline{Reserve: 1, Overtake: true, Gangs: true}
		w.z = w.make()
		w.submit(rigid(t, "runs", time.Minute, 400, 2))
		w.settle()
		a := foreign(w, ensemble(t, "far", time.Minute, 8))
		if !first {
			w.now++
		}
		w.submit(rigid(t, "own", time.Minute, 400, 2))
		if first {
			a.since = 0
		} else {
			a.since = w.now + 1
		}
		pass(w, time.Second)
		a.says(protocol.Loan{Slices: 2, Keep: true})
		if a.heard.Kept != first {
			t.Errorf("it came first: %v; it is told %+v", first, a.heard)
		}
	}
}

// TestAGuestIsWeighedLikeAnyGang where there is an order: what it is worth less than others is not kept, until it is late.
func TestAGuestIsWeighedLikeAnyGang(t *testing.T) {
	w := newWorld(t, 512, 512)
	w.config.Policy, w.config.Rigid = shortest.Policy{}, backfill.Discipline{Reserve: 1, Overtake: true, Gangs: true}
	w.z = w.make()
	for i := range 20 {
		w.submit(items(t, fmt.Sprint("short", i), 20, 400, 1))
	}
	w.settle()
	a := foreign(w, ensemble(t, "far", time.Hour, 8))
	a.says(protocol.Loan{Slices: 2, Length: time.Hour})
	if h := a.heard; h.Start != 0 || !strings.Contains(h.Why, "worth more") {
		t.Errorf("it is told %+v", h)
	}
	a.since -= quantity.Instant(1000 * time.Hour)
	a.says(protocol.Loan{Slices: 2, Length: time.Hour})
	if h := a.heard; h.Start == 0 {
		t.Errorf("it is late, and told %+v", h)
	}
}

// TestAZoneLendsToSoManyGangs and tells the next one so.
func TestAZoneLendsToSoManyGangs(t *testing.T) {
	w := newWorld(t, 512)
	w.settle()
	for i := range 70 {
		a := foreign(w, ensemble(t, fmt.Sprint("far", i), time.Minute, 8))
		a.says(protocol.Loan{Slices: 1})
		if full := i >= 64; full != (a.heard.Could == 0) || full != strings.Contains(a.heard.Why, "as many gangs") {
			t.Fatalf("gang %d is told %+v", i, a.heard)
		}
	}
}

// TestAZoneThatComesBackWithdrawsWhatItDoesNotKnow, and keeps it anew when it is asked again.
func TestAZoneThatComesBackWithdrawsWhatItDoesNotKnow(t *testing.T) {
	w := newWorld(t, 512, 512)
	a := foreign(w, ensemble(t, "far", time.Minute, 8))
	w.settle()
	at := w.now.Add(5 * time.Minute)
	a.says(protocol.Loan{Slices: 2, Keep: true, NotBefore: at})
	pass(w, time.Second)
	if w.reserved("far") != 2 {
		t.Fatal("nothing is reserved")
	}
	w.restart()
	pass(w, 5*time.Second)
	if n := w.reserved("far"); n != 0 {
		t.Errorf("%d slices are reserved for a gang that nobody speaks of", n)
	}
	a.says(protocol.Loan{Slices: 2, Keep: true, NotBefore: at})
	pass(w, 2*time.Second)
	if w.reserved("far") != 2 || !a.heard.Kept {
		t.Errorf("%d slices are reserved, it is told %+v", w.reserved("far"), a.heard)
	}
}

// TestWhatIsNoLoanIsNotTaken as one.
func TestWhatIsNoLoanIsNotTaken(t *testing.T) {
	w := newWorld(t, 512)
	w.settle()
	a := foreign(w, ensemble(t, "far", time.Minute, 8))
	send := func(name job.ID, l protocol.Loan) {
		w.step(protocol.Message{Kind: protocol.Borrow, From: protocol.Address{Role: protocol.Zone, ID: "y"}, Job: name, Epoch: 1, Body: &l})
	}
	send("far", protocol.Loan{Seq: 1, Slices: 1, Length: time.Minute})
	send("far", protocol.Loan{Seq: 2, Slices: 1, Spec: a.spec})
	send("../far", protocol.Loan{Seq: 3, Slices: 1, Spec: a.spec, Length: time.Minute})
	send("far", protocol.Loan{Seq: 4, Slices: 1, Spec: items(t, "far", 10, 100, 1), Length: time.Minute})
	w.step(protocol.Message{Kind: protocol.Borrow, From: protocol.Address{Role: protocol.Node, ID: "y"}, Job: "far", Epoch: 1,
		Body: &protocol.Loan{Seq: 5, Slices: 1, Spec: a.spec, Length: time.Minute}})
	if a.answers > 0 {
		t.Errorf("it is told %+v", a.heard)
	}
}

// TestAGangThatItsZoneCanHoldBorrowsNothing: one that sought before the zone's slices were offered is placed there alone, and reserves
// each slice once.
func TestAGangThatItsZoneCanHoldBorrowsNothing(t *testing.T) {
	w := newWorld(t, 512, 512, 512, 512, 512, 512, 512, 512)
	w.config.Rigid = backfill.Discipline{Reserve: 2, Overtake: true, Gangs: true}
	w.z = w.make()
	for i, s := range w.slices {
		s.busy = append(s.busy, protocol.Reservation{ID: uint64(i + 1), Kind: protocol.ForDrain, Slice: s.view.ID, Start: w.now,
			End: w.now.Add(2 * time.Minute)})
	}
	reserved, borrowed := 0, 0
	w.lose = func(m *protocol.Message) bool {
		switch m.Kind {
		case protocol.Lenders: // its gate names it alone, once the slices are there
			list := &protocol.LenderList{Seq: m.Body.(*protocol.LenderList).Seq, Zones: []protocol.Lender{{Zone: "z", Slices: 4}}}
			w.post(protocol.Message{Kind: protocol.Lenders, Job: m.Job, From: protocol.Address{Role: protocol.Gate},
				To: protocol.Address{Role: protocol.Zone, ID: "z"}, Body: list})
			borrowed++
			return true
		case protocol.Reserve:
			reserved++
		}
		return false
	}
	w.submit(ensemble(t, "wide", time.Minute, 4))
	w.until(5 * time.Minute)
	if len(w.closed) != 1 || w.closed["wide"].State != job.Finished || borrowed == 0 {
		t.Errorf("it ended as %v, and its gate was asked %d times", w.closed, borrowed)
	}
	if reserved > 4 {
		t.Errorf("%d times a slice was reserved for a gang of 4", reserved)
	}
}
