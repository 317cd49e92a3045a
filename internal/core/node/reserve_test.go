package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// told is what an answer says of reservations.
func told(m protocol.Message) string {
	var words []string
	for _, r := range m.Body.(*protocol.Receipt).Made {
		words = append(words, fmt.Sprint(r.ID))
		if r.Stood {
			words = append(words, "stood")
		}
		for _, o := range r.Overlaps {
			words = append(words, fmt.Sprint("over ", o.ID))
		}
	}
	return strings.Join(words, " ")
}

// TestADoubledReservationIsTold: one with the same content is the one that stands, also if it said "from now on" earlier;
// others that share time are named.
func TestADoubledReservationIsTold(t *testing.T) {
	w := booted(t)
	drain := protocol.Reservation{Kind: protocol.ForDrain, Slice: "a", Start: at(time.Minute), End: quantity.Never, Source: "ops"}
	w.step(reserve("1", drain))
	same(t, "first", told(w.must(protocol.Reply)), "1")
	later := drain
	later.Start = at(2 * time.Minute)
	w.step(reserve("2", later))
	w.recorded()
	same(t, "the same, said later", told(w.must(protocol.Reply)), "1 stood")
	for i, other := range []protocol.Reservation{
		// begins earlier
		{Kind: protocol.ForDrain, Slice: "a", Start: at(0), End: quantity.Never, Source: "ops"},
		// ends earlier
		{Kind: protocol.ForDrain, Slice: "a", Start: at(2 * time.Minute), End: at(time.Hour), Source: "ops"},
		{Kind: protocol.ForDrain, Slice: "a", Start: at(2 * time.Minute), End: quantity.Never, Source: "someone else"}, // another's
		// meets it when it repeats
		{Kind: protocol.ForServing, Slice: "a", Start: at(0), End: at(30 * time.Second), Every: 2 * time.Minute, Source: "op"},
	} {
		w = booted(t)
		w.step(reserve("1", drain))
		w.recorded(protocol.ReservationMade)
		w.step(reserve("2", other))
		if got := told(w.must(protocol.Reply)); got != "2 over 1" {
			t.Errorf("%d: told %q, want %q", i, got, "2 over 1")
		}
	}
	w.step(reserve("3", protocol.Reservation{Kind: protocol.ForDrain, Slice: "b", Start: at(0), End: quantity.Never}))
	same(t, "on another slice", told(w.must(protocol.Reply)), "3")
}

// TestCutsSayWhatMakeWayDoes: what is told before is what happens then, and asking changes nothing.
func TestCutsSayWhatMakeWayDoes(t *testing.T) {
	w := booted(t)
	running := w.running(1, "a", 0, time.Minute)
	later := w.lease(2, "a", 2*time.Minute, 3*time.Minute)
	owner := protocol.Reservation{Kind: protocol.ForOwner, Slice: "a", Start: w.now, End: quantity.Never, Truncate: true}
	before := w.n.Digest()
	list, err := w.n.Cuts(w.now, owner)
	if err != nil || len(list) != 2 || w.n.Digest() != before {
		t.Fatalf("%+v, %v; want both leases and no change", list, err)
	}
	same(t, "running", list[0].Token, running)
	same(t, "cut at", list[0].At, w.now.Add(w.n.cfg.TruncateGrace))
	same(t, "withdrawn", list[0].Withdrawn, false)
	same(t, "later", list[1].Token, later)
	same(t, "withdrawn", list[1].Withdrawn, true)
	w.step(reserve("1", owner))
	w.recorded(protocol.ReservationMade, protocol.Truncated, protocol.SubjobEnded)
	owner.Slice = "nowhere"
	if _, err := w.n.Cuts(w.now, owner); errkind.Of(err) != errkind.NotFound {
		t.Errorf("of a slice that is not there: %v", err)
	}
}

func TestReserveAndWithdraw(t *testing.T) {
	w := booted(t)
	r := protocol.Reservation{Kind: protocol.ForMaintenance, Start: at(time.Minute), End: at(2 * time.Minute), Source: "ops"}
	w.step(reserve("1", r))
	w.recorded(protocol.ReservationMade, protocol.ReservationMade)
	same(t, "ids", told(w.must(protocol.Reply)), "1 2")
	same(t, "gap ends", w.gaps("a")[0], protocol.Gap{Start: t0, End: at(time.Minute), Until: protocol.ForMaintenance})
	w.step(reserve("1", r))
	w.recorded()
	same(t, "ids of the same call", told(w.must(protocol.Reply)), "1 2")
	w.restart()
	w.inventory()
	w.step(reserve("1", r))
	w.recorded()
	same(t, "ids of the same call after a restart", told(w.must(protocol.Reply)), "1 stood 2 stood")

	// Another one over the same time; withdrawing one leaves the other.
	w.step(reserve("2", protocol.Reservation{Kind: protocol.ForOwner, Slice: "a", Start: at(30 * time.Second), End: at(90 * time.Second)}))
	same(t, "id", told(w.must(protocol.Reply)), "3 over 1")
	w.step(protocol.Message{Kind: protocol.Unreserve, From: person,
		Body: &protocol.Booking{Request: "3", Reservation: &protocol.Reservation{ID: 3}}})
	w.recorded(protocol.ReservationGone)
	same(t, "gap ends", w.gaps("a")[0].End, at(time.Minute))
	w.step(protocol.Message{Kind: protocol.Unreserve, From: person,
		Body: &protocol.Booking{Request: "4", Reservation: &protocol.Reservation{ID: 3}}})
	err := w.must(protocol.Reply).Body.(*protocol.Receipt).Err
	same(t, "kind", errkind.Of(err), errkind.NotFound)
	if !strings.Contains(err.Error(), "1 (maintenance on a), 2 (maintenance on b)") {
		t.Errorf("error %q does not list what there is", err)
	}
	w.wait(2 * time.Minute) // over: pruned by facts
	w.recorded(protocol.ReservationGone, protocol.ReservationGone)
}

func TestReservationsThatAreRefusedSayEverything(t *testing.T) {
	for _, c := range []struct {
		name string
		r    protocol.Reservation
		kind errkind.Kind
		want []string
	}{
		{"all at once", protocol.Reservation{Kind: protocol.ForLease, Slice: "c", Start: at(2), End: at(1)}, errkind.NotFound,
			[]string{`no slice "c"; it has a, b`, "kind lease", "not after its start"}},
		{"over", protocol.Reservation{Kind: protocol.ForDrain, Start: at(-time.Hour), End: at(-time.Minute)}, errkind.Invalid,
			[]string{"it ended at"}},
		{"too long ago", protocol.Reservation{Kind: protocol.ForDrain, Start: at(-time.Hour), End: at(time.Minute)}, errkind.Invalid,
			[]string{"1h0m0s ago"}},
		{"into itself", protocol.Reservation{Kind: protocol.ForServing, Start: at(0), End: at(time.Hour), Every: time.Minute},
			errkind.Invalid, []string{"lasts 1h0m0s"}},
		{"repeats without end", protocol.Reservation{Kind: protocol.ForServing, Start: at(0), End: quantity.Never, Every: time.Minute},
			errkind.Invalid, []string{"has no end"}},
		{"too often", protocol.Reservation{Kind: protocol.ForServing, Start: at(0), End: at(1), Every: time.Millisecond}, errkind.Invalid,
			[]string{"the shortest is 1s"}},
		{"backwards", protocol.Reservation{Kind: protocol.ForServing, Start: at(0), End: at(1), Every: -1}, errkind.Invalid,
			[]string{"positive"}},
		{"rigid", protocol.Reservation{Kind: protocol.ForRigid, Start: at(0), End: at(1)}, errkind.Invalid, []string{"kind rigid"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := booted(t)
			w.step(reserve("1", c.r))
			w.recorded()
			err := w.must(protocol.Reply).Body.(*protocol.Receipt).Err
			same(t, "kind", errkind.Of(err), c.kind)
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
	t.Run("too many", func(t *testing.T) {
		w := newWorld(t)
		w.cfg.MaxReservations = 1
		w.restart()
		w.inventory()
		w.step(reserve("1", protocol.Reservation{Kind: protocol.ForDrain, Slice: "a", Start: at(1), End: quantity.Never}))
		w.step(reserve("2", protocol.Reservation{Kind: protocol.ForMaintenance, Start: at(2), End: quantity.Never}))
		w.recorded()
		same(t, "kind", errkind.Of(w.must(protocol.Reply).Body.(*protocol.Receipt).Err), errkind.Exhausted)
	})
	t.Run("nothing", func(t *testing.T) {
		w := booted(t)
		for _, m := range []protocol.Message{
			{Kind: protocol.Reserve, Body: &protocol.Booking{}}, {Kind: protocol.Unreserve, Body: &protocol.Booking{}},
			{Kind: protocol.Unquarantine, Body: &protocol.Clearance{}},
		} {
			m.From = person
			w.step(m)
			same(t, "kind", errkind.Of(w.must(protocol.Reply).Body.(*protocol.Receipt).Err), errkind.Invalid)
		}
	})
}

func TestAReservationThatMayNotCutWaitsBehindTheLease(t *testing.T) {
	w := booted(t)
	token := w.running(1, "a", 0, time.Minute)
	later := w.lease(2, "a", 2*time.Minute, 3*time.Minute)
	w.step(reserve("1", protocol.Reservation{Kind: protocol.ForOwner, Slice: "a", Start: at(30 * time.Second), End: quantity.Never}))
	w.recorded(protocol.ReservationMade)
	w.never(protocol.Deadline)
	if gaps := w.gaps("a"); len(gaps) != 1 || gaps[0].End > at(30*time.Second) {
		// The lease covers all that is before the reservation.
		same(t, "gaps", len(gaps), 0)
	}
	w.step(exited(token, job.Done, 100))
	same(t, "gap", w.gaps("a")[0], protocol.Gap{Start: t0, End: at(30 * time.Second), Until: protocol.ForOwner})
	w.wait(2 * time.Minute)
	same(t, "sold before, so it runs", w.must(protocol.Start).Token, later)
}

func TestAReservationThatMayCut(t *testing.T) {
	w := booted(t)
	token := w.running(1, "a", 0, time.Minute)
	later := w.lease(2, "a", time.Minute, 2*time.Minute)
	w.step(ask(3, "a", 2*time.Minute, 3*time.Minute))
	hold := w.must(protocol.Granted)
	r := protocol.Reservation{Kind: protocol.ForReclaim, Slice: "a", Start: at(40 * time.Second), End: quantity.Never, Truncate: true,
		Source: "the provider"}
	w.step(reserve("1", r))
	w.recorded(protocol.ReservationMade, protocol.Truncated, protocol.SubjobEnded)
	d := w.must(protocol.Deadline)
	same(t, "deadline", d.Body.(*protocol.Shift).End, at(40*time.Second))
	same(t, "cause", d.Body.(*protocol.Shift).Text, "time taken (reclaim) by the provider")
	res := w.must(protocol.Result)
	same(t, "withdrawn", res.Token, later)
	same(t, "outcome", res.Body.(*protocol.Conclusion).Result.Outcome, job.Stopped)
	w.step(redeem(hold))
	w.must(protocol.RedeemRefused)

	// Taken at once: a moment is left to leave a checkpoint, and asking again does not lengthen it.
	w.now = at(10 * time.Second)
	now := protocol.Reservation{Kind: protocol.ForOwner, Slice: "a", Start: w.now, End: quantity.Never, Truncate: true}
	w.step(reserve("2", now))
	same(t, "deadline", w.must(protocol.Deadline).Body.(*protocol.Shift).End, at(12*time.Second))
	w.now = at(11 * time.Second)
	w.step(reserve("3", now))
	w.recorded()
	w.never(protocol.Deadline)
	w.restart()
	w.inventory(protocol.Found{Token: token, Job: "j", Slice: "a", Alive: true})
	same(t, "deadline after a restart", w.must(protocol.Deadline).Body.(*protocol.Shift).End, at(12*time.Second))
	same(t, "state", w.n.Slices(w.now)[0].State, "running")
}

func TestServingHoursCutWhatReachesIntoThem(t *testing.T) {
	w := booted(t)
	token := w.running(1, "a", 0, 30*time.Minute)
	r := protocol.Reservation{Kind: protocol.ForServing, Slice: "a", Start: at(-50 * time.Minute), End: at(-40 * time.Minute),
		Every: time.Hour, Truncate: true}
	w.step(reserve("1", r))
	same(t, "deadline", w.must(protocol.Deadline).Body.(*protocol.Shift).End, at(10*time.Minute))
	same(t, "gap", w.gaps("a")[0], protocol.Gap{Start: at(20 * time.Minute), End: at(70 * time.Minute), Until: protocol.ForServing})
	w.step(exited(token, job.DeadlineKilled, 50))
	w.step(protocol.Message{Kind: protocol.ResultAck, From: zone, Token: token, Job: "j", Body: &protocol.Acknowledgement{}})
	w.step(protocol.Message{Kind: protocol.Settled, From: executor, Token: token})
	w.wait(0)
	w.never(protocol.Offer)
	for i := 0; i < 10 && w.sent(protocol.Offer) == nil; i++ { // looks again before what was seen is used up
		w.wait(w.must(protocol.Wake).Body.(*protocol.Moment).At.Sub(w.now))
	}
	w.must(protocol.Offer)
	if w.now > at(time.Hour) {
		t.Errorf("the next gaps come into sight only at %v", w.now.Sub(t0))
	}
}

func TestARigidJobsPlace(t *testing.T) {
	place := func(id uint64, name job.ID, from, to time.Duration) protocol.Message {
		return protocol.Message{
			Kind: protocol.Reserve, From: zone, Body: &protocol.Booking{Ask: id, Slice: "a",
				Reservation: &protocol.Reservation{Kind: protocol.ForRigid, Slice: "a", Start: at(from), End: at(to), Job: name,
					Source: "backfill"}}, Job: name,
		}
	}
	w := booted(t)
	w.lease(1, "a", 0, time.Minute)
	w.step(place(2, "big", 30*time.Second, 2*time.Minute))
	w.recorded()
	same(t, "refused", w.must(protocol.Refused).Body.(*protocol.Refusal).Ask, 2)
	w.step(place(3, "big", time.Minute, 3*time.Minute))
	w.recorded(protocol.ReservationMade)
	w.step(place(3, "big", time.Minute, 3*time.Minute))
	w.recorded()
	w.must(protocol.Offer)
	w.step(place(4, "other", 2*time.Minute, 4*time.Minute))
	same(t, "another's place is in the way", w.must(protocol.Refused).Body.(*protocol.Refusal).Ask, 4)
	w.step(place(5, "big", 2*time.Minute, 4*time.Minute))
	w.recorded(protocol.ReservationGone, protocol.ReservationMade) // moved
	w.step(ask(6, "a", 2*time.Minute, 3*time.Minute))
	w.must(protocol.Refused)

	m := ask(7, "a", 2*time.Minute, 4*time.Minute)
	m.Job, m.Body.(*protocol.Asking).Reservation = "big", &protocol.Reservation{ID: 2}
	w.step(m)
	w.must(protocol.Granted)
	w.wait(time.Second) // lapsed: the place stands
	w.step(ask(8, "a", 2*time.Minute, 3*time.Minute))
	w.must(protocol.Refused)
	m.Body.(*protocol.Asking).Ask = 9
	w.step(m)
	w.step(redeem(w.must(protocol.Granted)))
	w.recorded(protocol.LeaseMade, protocol.ReservationGone)

	w.step(place(10, "big", 5*time.Minute, 6*time.Minute))
	w.step(protocol.Message{Kind: protocol.Unreserve, From: zone, Body: &protocol.Booking{Reservation: &protocol.Reservation{ID: 3}}})
	w.recorded(protocol.ReservationGone)
	w.never(protocol.Reply)
	w.step(protocol.Message{Kind: protocol.Unreserve, From: zone, Body: &protocol.Booking{Reservation: &protocol.Reservation{ID: 3}}})
	w.recorded()
	w.must(protocol.Offer) // whoever withdraws what is gone has an old view
}

func TestAForeignProcessHoldsTheSlice(t *testing.T) {
	foreign := func(there bool) protocol.Message {
		return protocol.Message{Kind: protocol.Foreign, From: executor, Body: &protocol.Intrusion{Slice: "a", Present: there,
			Text: "pid 7"}}
	}
	w := booted(t)
	token := w.lease(1, "a", time.Minute, 2*time.Minute)
	w.step(foreign(true))
	w.recorded()
	same(t, "gaps", len(w.gaps("a")), 0)
	w.step(foreign(true))
	w.never(protocol.Offer)
	same(t, "state", w.n.Slices(w.now)[0].State, "reserved")
	w.wait(time.Minute)
	w.never(protocol.Start)
	w.step(foreign(false))
	same(t, "started when it is gone", w.must(protocol.Start).Token, token)
	same(t, "first gap", w.gaps("a")[0].Start, at(2*time.Minute))
}

func TestAPlaceThatALeaseIsExtendedOverIsUsedUp(t *testing.T) {
	w := booted(t)
	token := w.running(1, "a", 0, time.Minute)
	w.step(protocol.Message{
		Kind: protocol.Reserve, From: zone, Body: &protocol.Booking{Ask: 2,
			Reservation: &protocol.Reservation{Kind: protocol.ForRigid, Slice: "a", Start: at(time.Minute), End: at(2 * time.Minute)}},
		Job: "j",
	})
	w.recorded(protocol.ReservationMade)
	w.step(protocol.Message{
		Kind: protocol.Extend, From: zone, Body: &protocol.Extension{Ask: 3, Range: job.Range{From: 0, To: 200}, End: at(90 * time.Second)},
		Token: token, Job: "j",
	})
	w.recorded(protocol.LeaseExtended, protocol.ReservationGone)
}

func TestALeaseWaitsForOneThatEndsUnstarted(t *testing.T) {
	w := booted(t)
	second := w.lease(1, "a", 20*time.Second, 30*time.Second)
	w.lease(2, "a", 10*time.Second, 20*time.Second)
	w.step(protocol.Message{Kind: protocol.Foreign, From: executor, Body: &protocol.Intrusion{Slice: "a", Present: true}})
	w.now = at(20 * time.Second)
	w.step(protocol.Message{Kind: protocol.Foreign, From: executor, Body: &protocol.Intrusion{Slice: "a"}})
	w.recorded(protocol.SubjobEnded)
	same(t, "started in the same step", w.must(protocol.Start).Token, second)
}

func TestATickThatIsLateIsAskedForAgain(t *testing.T) {
	w := booted(t)
	w.step(ask(1, "a", 0, time.Minute))
	w.must(protocol.Wake)
	w.step(ask(2, "b", 0, time.Minute))
	w.never(protocol.Wake) // an earlier one stands
	w.now = at(300 * time.Millisecond)
	w.step(ask(3, "b", 0, time.Minute))
	same(t, "wake", w.must(protocol.Wake).Body.(*protocol.Moment).At, at(500*time.Millisecond))
}

func TestRefreshRepeatsEveryOffer(t *testing.T) {
	w := newWorld(t)
	w.n.cfg.Refresh, w.twin.cfg.Refresh = 10*time.Second, 10*time.Second
	w.inventory()
	first := w.must(protocol.Offer).Body.(*protocol.SliceView)
	w.wait(10 * time.Second)
	w.must(protocol.Inventory)
	second := w.must(protocol.Offer).Body.(*protocol.SliceView)
	if second == first || second.Version <= first.Version {
		t.Errorf("version %d follows %d", second.Version, first.Version)
	}
	same(t, "next", w.must(protocol.Wake).Body.(*protocol.Moment).At, at(20*time.Second))
}

func TestConfigListsEveryProblem(t *testing.T) {
	err := Config{Horizon: -1, MaxReservations: -1}.Validate()
	for _, want := range []string{"ID is empty", "Zone is empty", "Horizon is -1ns", "MaxReservations is -1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
	same(t, "kind", errkind.Of(err), errkind.Invalid)
	if err := (Config{ID: "n", Zone: "z"}).Validate(); err != nil {
		t.Errorf("the default configuration is refused: %v", err)
	}
}
