package search

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// work is a job that looks for a place of the one class until it has claimed enough.
type work struct {
	name    job.ID
	wants   int
	fits    bool // a piece fits what was found
	want    Want
	claimed []job.Token
	expired flow.Why
	// parked counts how often its ticket was.
	parked int
}

func (w *work) Name() job.ID         { return w.name }
func (w *work) Life() job.Generation { return 1 }
func (w *work) HomeEpoch() uint32    { return 1 }
func (w *work) Parked()              { w.parked++ }

func (w *work) Wants(quantity.Instant) (Want, bool) { return w.want, len(w.claimed) < w.wants }

func (w *work) Claim(_ quantity.Instant, p *protocol.Place, _ *protocol.Out) (string, bool) {
	if w.fits {
		w.claimed = append(w.claimed, p.Token)
	}
	return "it does not fit", w.fits
}

func (w *work) Expire(_ quantity.Instant, why flow.Why, _ *protocol.Out) { w.wants, w.expired = 0, why }

// desk is the home of one job in zone a, of zones a and b with a node each. Whoever it speaks to is the test.
type desk struct {
	*testing.T
	h   *Home
	w   *work
	j   *Job
	now quantity.Instant
	out protocol.Out
}

func newDesk(t *testing.T) *desk {
	cfg, err := Config{
		Flow:  flow.Config{Classes: flow.Classes{100}},
		Zones: []Zone{{"a", []job.NodeID{"n1"}}, {"b", []job.NodeID{"n2"}}},
	}.Checked()
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{T: t, h: NewHome(cfg, protocol.Address{Role: protocol.Zone, ID: "a"}, 0), w: &work{name: "j", wants: 1, fits: true},
		now: 1e9}
	d.w.want = Want{Demand: 100, Kind: flow.Lasting, Born: d.now, Least: time.Second, Most: time.Minute}
	d.h.Resume(d.now)
	d.j = &Job{Demand: d.w, New: true}
	d.h.Ground().Hear("n1", &flow.Summary{Version: 1, Usable: true, Free: flow.Fragments{1}})
	return d
}

// begin has the job looked for; what is said is in out.
func (d *desk) begin() {
	d.h.Invalidate(d.j)
	d.tick(0)
}

func (d *desk) tick(after time.Duration) {
	d.now, d.out = d.now.Add(after), protocol.Out{}
	d.h.Tick(d.now, &d.out)
}

// said is the one message of a kind that was said last.
func (d *desk) said(k protocol.Kind) *protocol.Message {
	d.Helper()
	for i := range d.out.Effects {
		if d.out.Effects[i].Kind == k {
			return &d.out.Effects[i]
		}
	}
	d.Fatalf("nothing of kind %d is said: %+v", k, d.out.Effects)
	return nil
}

// answer what the node was asked last: a place under this token, or none.
func (d *desk) answer(seq uint64) {
	q := d.said(protocol.Probe).Body.(*protocol.Inquiry)
	r := &protocol.Response{Ticket: q.Ticket, Home: q.Home, Episode: q.Episode, Hop: q.Hop, Room: flow.Summary{Version: uint64(q.Hop) + 2,
		Usable: true}}
	if seq > 0 {
		r.Place = place(seq)
	}
	d.out = protocol.Out{}
	d.h.Ground().Probed(d.now, "n1", r, &d.out)
}

func place(seq uint64) *protocol.Place {
	return &protocol.Place{Token: job.Token{Epoch: 1, Seq: seq}, Node: "n2", End: quantity.Never}
}

func TestATicketSearchesAtHomeFirst(t *testing.T) {
	d := newDesk(t)
	d.begin()
	if to := d.said(protocol.Probe).To; to.ID != "n1" || d.j.State() != Away {
		t.Fatalf("asked %v, %v", to, d.j.State())
	}
	d.answer(5)
	if d.j.State() != Landed || len(d.w.claimed) != 1 || d.w.claimed[0].Seq != 5 {
		t.Fatalf("%v, claimed %v", d.j.State(), d.w.claimed)
	}
	d.h.Leased(d.j, job.Token{Epoch: 1, Seq: 4})
	if d.j.State() != Landed {
		t.Fatal("the word of another lease ends it")
	}
	if d.h.Leased(d.j, job.Token{Epoch: 1, Seq: 5}); d.j.State() != Idle {
		t.Fatalf("%v once the node has confirmed it", d.j.State())
	}
	if tr := d.j.Trail(); tr.Tickets != 1 || tr.Hops != 1 || tr.Draws != 1 {
		t.Errorf("trail %+v", tr)
	}
}

func TestTheNextPieceIsLookedForWhenTheLastIsConfirmed(t *testing.T) {
	d := newDesk(t)
	d.w.wants = 2
	d.begin()
	first := d.j.Ticket().ID
	d.answer(5)
	if d.begin(); len(d.out.Effects) != 0 {
		t.Fatalf("it looks on before the node has said a word: %+v", d.out.Effects)
	}
	d.h.Leased(d.j, job.Token{Epoch: 1, Seq: 5})
	d.h.Ground().Hear("n1", &flow.Summary{Version: 9, Usable: true, Free: flow.Fragments{1}})
	if d.tick(0); d.said(protocol.Probe).Body.(*protocol.Inquiry).Ticket == first {
		t.Error("two tickets of the same name")
	}
}

func TestASearchThatIsOverIsParkedAndWoken(t *testing.T) {
	d := newDesk(t)
	d.begin()
	d.answer(0)
	e := d.j.errand()
	e.Phase, e.Why, e.Hops = flow.Parked, flow.OutOfPatience, 3
	d.h.ground.Take(e.ID)
	d.h.Returned(d.now, "j", &e, &d.out)
	if d.j.State() != Parked || d.h.Parked() != 1 || d.j.Ticket().Why != flow.OutOfPatience {
		t.Fatalf("%v, %d parked", d.j.State(), d.h.Parked())
	}
	full := &flow.Digest{}
	d.out = protocol.Out{}
	for range wakeAnyway - 1 {
		d.h.Beat(d.now, full, &d.out)
	}
	if len(d.out.Effects) != 0 {
		t.Fatal("woken without room")
	}
	if d.h.Beat(d.now, full, &d.out); d.j.State() != Away || d.said(protocol.Redraw).Body.(*protocol.Errand).Episode != 1 {
		t.Fatal("nobody is woken in ten digests")
	}
	d.h.Returned(d.now, "j", &e, &d.out) // the same word again: of the search before
	if d.j.State() != Away {
		t.Error("an old word parks it")
	}
}

func TestATicketThatDoesNotComeBackIsMissed(t *testing.T) {
	d := newDesk(t)
	d.begin()
	old := d.j.errand()
	d.h.ground.Take(old.ID)
	d.h.Left(d.now, "j", &old)
	if d.tick(time.Second); d.j.Trail().Missed != 0 {
		t.Fatal("missed within its patience")
	}
	d.tick(time.Minute)
	if id := d.said(protocol.Probe).Body.(*protocol.Inquiry).Ticket; id == old.ID || d.j.Trail().Missed != 1 {
		t.Fatalf("ticket %d after %d", id, old.ID)
	}
	old.Phase, d.out = flow.Landed, protocol.Out{}
	d.h.Landed(d.now, "j", &protocol.Finding{Errand: old, Place: *place(9)}, &d.out)
	if m := d.said(protocol.LetGo); m.Token.Seq != 9 || len(d.w.claimed) != 0 {
		t.Errorf("what the old ticket found: %+v, claimed %v", m, d.w.claimed)
	}
}

func TestAPlaceIsClaimedOnce(t *testing.T) {
	d := newDesk(t)
	d.begin()
	f := &protocol.Finding{Errand: d.j.errand(), Place: *place(9)}
	f.Errand.Phase = flow.Landed
	d.h.Landed(d.now, "j", f, &d.out)
	d.out = protocol.Out{}
	d.h.Landed(d.now, "j", f, &d.out)
	if len(d.out.Effects) != 0 || len(d.w.claimed) != 1 {
		t.Fatalf("the same word again: claimed %v, said %+v", d.w.claimed, d.out.Effects)
	}
	f.Place = *place(10)
	d.h.Landed(d.now, "j", f, &d.out)
	if m := d.said(protocol.LetGo); m.Token.Seq != 10 || m.To.ID != "n2" || len(d.w.claimed) != 1 {
		t.Fatalf("another place: claimed %v, said %+v", d.w.claimed, m)
	}
}

func TestWhereNoPieceFitsTheSearchGoesOn(t *testing.T) {
	d := newDesk(t)
	d.w.fits = false
	d.begin()
	d.answer(5)
	if d.said(protocol.LetGo); d.said(protocol.Redraw).Body.(*protocol.Errand).Churn != 1 || d.j.Trail().Refusal != "it does not fit" {
		t.Fatalf("trail %+v", d.j.Trail())
	}
}

func TestALostLeaseIsLookedForAgain(t *testing.T) {
	d := newDesk(t)
	d.begin()
	d.answer(5)
	d.w.claimed = nil
	d.h.Freed(d.j, job.Token{Epoch: 1, Seq: 5})
	if d.tick(0); d.j.State() != Away || d.said(protocol.Redraw).Body.(*protocol.Errand).Churn != 1 {
		t.Fatalf("%v", d.j.State())
	}
}

func TestFleetingWorkExpires(t *testing.T) {
	d := newDesk(t)
	d.w.want.Kind, d.w.want.Deadline = flow.Fleeting, d.now.Add(time.Second)
	d.begin()
	e := d.j.errand()
	d.h.ground.Take(e.ID)
	d.h.Left(d.now, "j", &e)
	d.tick(time.Second + 1)
	if d.w.expired != flow.PastDeadline || d.j.State() != Idle {
		t.Errorf("away at its deadline: %v, %v", d.w.expired, d.j.State())
	}
}

// TestLostPlaceIsNotClaimedAgain: the message of the lost place is repeated when the ticket searches again.
func TestLostPlaceIsNotClaimedAgain(t *testing.T) {
	d := newDesk(t)
	d.begin()
	f := &protocol.Finding{Errand: d.j.errand(), Place: *place(5)}
	f.Errand.Phase = flow.Landed
	d.h.Landed(d.now, "j", f, &d.out)
	d.w.claimed = nil
	d.h.Freed(d.j, job.Token{Epoch: 1, Seq: 5})
	d.tick(0)
	d.out = protocol.Out{}
	if d.h.Landed(d.now, "j", f, &d.out); d.said(protocol.LetGo).Token.Seq != 5 || len(d.w.claimed) != 0 || d.j.State() != Away {
		t.Errorf("claimed %v, %v", d.w.claimed, d.j.State())
	}
}

// TestAnAnswerCountsForItsQuestion: not one of an earlier hop, nor that of a node that was not asked or is none of the zone's.
func TestAnAnswerCountsForItsQuestion(t *testing.T) {
	d := newDesk(t)
	d.begin()
	q := d.said(protocol.Probe).Body.(*protocol.Inquiry)
	for name, from := range map[string]job.NodeID{"a node of nobody": "n9", "the right node, of an earlier hop": "n1"} {
		r := &protocol.Response{Ticket: q.Ticket, Home: q.Home, Episode: q.Episode, Hop: q.Hop, Place: place(5)}
		if from == "n1" {
			r.Hop--
		}
		if d.h.Ground().Probed(d.now, from, r, &d.out); d.j.State() != Away || len(d.w.claimed) != 0 {
			t.Errorf("%s: %v, claimed %v", name, d.j.State(), d.w.claimed)
		}
	}
}

// TestInconsistentMessagesAreIgnored: a search that is over or has landed and is said not to; another class; another job.
func TestInconsistentMessagesAreIgnored(t *testing.T) {
	for name, c := range map[string]struct {
		job    job.ID
		absurd func(*protocol.Errand)
	}{
		"phase": {"j", func(e *protocol.Errand) { e.Phase = flow.Asking }},
		"class": {"j", func(e *protocol.Errand) { e.Class = flow.MaxClasses - 1 }},
		"job":   {"k", func(*protocol.Errand) {}},
	} {
		d := newDesk(t)
		d.begin()
		d.h.ground.Take(d.j.Ticket().ID)
		d.out = protocol.Out{}
		back, found := d.j.errand(), &protocol.Finding{Errand: d.j.errand(), Place: *place(5)}
		back.Phase, found.Errand.Phase = flow.Parked, flow.Landed
		c.absurd(&back)
		c.absurd(&found.Errand)
		d.h.Returned(d.now, c.job, &back, &d.out)
		if d.h.Landed(d.now, c.job, found, &d.out); d.j.State() != Away || len(d.w.claimed) != 0 || d.said(protocol.LetGo).Token.Seq != 5 {
			t.Errorf("%s: %v, claimed %v", name, d.j.State(), d.w.claimed)
		}
	}
}

// TestParkedWorkExpiresAtItsDeadline: though nobody says a word.
func TestParkedWorkExpiresAtItsDeadline(t *testing.T) {
	d := newDesk(t)
	d.w.want.Deadline = d.now.Add(time.Minute)
	d.begin()
	e := d.j.errand()
	d.h.ground.Take(e.ID)
	e.Phase, e.Why = flow.Parked, flow.OutOfPatience
	d.h.Returned(d.now, "j", &e, &d.out)
	if next := d.h.Next(); next != d.w.want.Deadline {
		t.Fatalf("it looks again at %d, the deadline is %d", next, d.w.want.Deadline)
	}
	if d.tick(time.Minute); d.w.expired != flow.PastDeadline || d.j.State() != Idle || d.h.Parked() != 0 {
		t.Errorf("%v, %v", d.w.expired, d.j.State())
	}
}

// TestAnotherDeadlineIsAnotherTicket: the one that is away would not give up in time.
func TestAnotherDeadlineIsAnotherTicket(t *testing.T) {
	d := newDesk(t)
	d.begin()
	before := d.j.Ticket().ID
	if d.begin(); d.j.Ticket().ID != before {
		t.Fatal("another ticket, and nothing has changed")
	}
	d.w.want.Deadline = d.now.Add(time.Minute)
	if d.begin(); d.j.Ticket().ID == before || d.j.Ticket().Deadline != d.w.want.Deadline {
		t.Errorf("its ticket gives up at %d, want %d", d.j.Ticket().Deadline, d.w.want.Deadline)
	}
}

// TestZonesSpeakOneAfterTheOther: the periods of zones begin at instants of their own.
func TestZonesSpeakOneAfterTheOther(t *testing.T) {
	c := newDesk(t).h.cfg
	if a, b := c.Phase(0), c.Phase(1); a != 0 || b != c.Flow.Period/2 {
		t.Errorf("phases %v and %v of a period of %v", a, b, c.Flow.Period)
	}
}

func TestSilentNodeIsUnusable(t *testing.T) {
	d := newDesk(t)
	d.begin()
	d.tick(time.Second / 5)
	if d.h.Ground().Directory().Digest(d.now).Free[0] != 1 {
		t.Fatal("one probe without an answer is enough")
	}
	for range 20 {
		d.tick(time.Second / 5)
	}
	if d.h.Ground().Directory().Digest(d.now).Alive {
		t.Error("its only node has answered nothing, and the zone says that it is alive")
	}
}

// TestPlaceOfAPausedJobIsReleased: the job was paused while its ticket searched.
func TestPlaceOfAPausedJobIsReleased(t *testing.T) {
	d := newDesk(t)
	d.begin()
	d.w.wants = 0
	if d.answer(5); d.said(protocol.LetGo).Token.Seq != 5 || d.j.State() != Idle {
		t.Errorf("%v, said %+v", d.j.State(), d.out.Effects)
	}
}

// TestTheEndOfAnotherPieceIsNoLoss: a job has other claims than the one that its ticket has landed with.
func TestTheEndOfAnotherPieceIsNoLoss(t *testing.T) {
	d := newDesk(t)
	d.begin()
	d.answer(5)
	d.h.Freed(d.j, job.Token{Epoch: 1, Seq: 4})
	if d.tick(0); d.j.State() != Landed || d.j.Trail().Lost != 0 {
		t.Errorf("%v, %d lost", d.j.State(), d.j.Trail().Lost)
	}
}

// TestTicketIDsAreNotReused: a home that restarts gives a job a ticket with another ID than before.
func TestTicketIDsAreNotReused(t *testing.T) {
	d := newDesk(t)
	d.j.New = false
	d.begin()
	before := d.j.Ticket().ID
	d = newDesk(t)
	d.h.Resume(d.now.Add(time.Second))
	d.h.Ground().Hear("n1", &flow.Summary{Version: 1, Usable: true, Free: flow.Fragments{1}})
	d.j.New = false
	if d.begin(); d.j.Ticket().ID == before {
		t.Error("it has the same ticket in both lives")
	}
}

// TestSilenceIsCountedInARow: a node that says something after each probe that it leaves without an answer is asked on.
func TestSilenceIsCountedInARow(t *testing.T) {
	d := newDesk(t)
	d.begin()
	probes := 0
	for i := range 20 {
		d.tick(time.Second / 5)
		for _, m := range d.out.Effects {
			if m.Kind == protocol.Probe {
				probes++
			}
		}
		if !d.h.Ground().Directory().Digest(d.now).Alive {
			t.Fatalf("it speaks, and counts as silent after %d probes", probes)
		}
		d.h.Ground().Hear("n1", &flow.Summary{Version: uint64(i) + 2, Usable: true, Free: flow.Fragments{1}})
	}
	if probes < 3 {
		t.Fatalf("it was asked %d times: the test tests nothing", probes)
	}
}

// TestALateTicketIsNotTakenIn: a ticket that was sent twice comes home a second time while it is parked there.
func TestALateTicketIsNotTakenIn(t *testing.T) {
	d := newDesk(t)
	d.begin()
	e := d.j.errand()
	d.h.ground.Take(e.ID)
	late := e
	e.Phase, e.Why = flow.Parked, flow.OutOfPatience
	d.h.Returned(d.now, "j", &e, &d.out)
	d.out = protocol.Out{}
	d.h.Ground().Arrive(d.now, "j", &late, &d.out)
	d.h.Left(d.now, "j", &late)
	if why := d.h.Audit(); len(d.out.Effects) != 0 || d.j.State() != Parked || d.j.Ticket().Phase != flow.Parked || why != "" {
		t.Errorf("%v, %v, said %+v; %s", d.j.State(), d.j.Ticket().Phase, d.out.Effects, why)
	}
}
