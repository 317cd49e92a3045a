package node

import (
	"reflect"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// The plain pass looks at every slice and every lease after every input. It is what the agenda is held against: each world has a
// second node that has no other, takes the same inputs, and must say the same.

// plainly makes a node that uses the plain pass.
func plainly(cfg Config) *Node {
	n := New(cfg)
	n.pass = n.plain
	return n
}

func (n *Node) plain(now quantity.Instant, out *protocol.Out) {
	n.plainPrune(now, out)
	n.plainDrive(now, out)
	n.plainOffer(now, out)
	n.plainTimer(now, out)
}

func (n *Node) plainPrune(now quantity.Instant, out *protocol.Out) {
	for _, s := range n.slices {
		for _, id := range s.time.Past(now, nil) {
			n.fact(out, protocol.Fact{Kind: protocol.ReservationGone, Reservation: &protocol.Reservation{ID: id}})
		}
	}
}

func (n *Node) plainDrive(now quantity.Instant, out *protocol.Out) {
	for again := true; again; {
		again = false
		for _, l := range n.byToken() {
			if l.phase == leaseSold && l.start <= now && n.begin(now, l, out) {
				again = true
			}
		}
	}
	for _, l := range n.byToken() {
		if l.retry != 0 && l.retry <= now || l.retry == 0 && n.late(now, l) {
			n.outstanding(now, l, out)
		}
	}
}

func (n *Node) plainOffer(now quantity.Instant, out *protocol.Out) {
	if !n.confirmed {
		return
	}
	if n.refresh != 0 && n.refresh <= now {
		n.announce(now, out)
	}
	n.bear(now)
	for _, s := range n.slices {
		if s.renew != 0 && s.renew <= now {
			s.dirty = true
		}
		if !s.dirty {
			continue
		}
		s.dirty = false
		v := n.look(now, s)
		if s.shown != nil && unchanged(now, s.shown, v) {
			continue
		}
		n.views++
		v.Version, s.shown = n.views, v
		n.send(out, protocol.Message{
			Kind: protocol.Offer, To: protocol.Address{Role: protocol.Zone, ID: string(n.cfg.Zone)}, Epoch: n.epoch, Body: v,
		})
	}
}

func (n *Node) plainTimer(now quantity.Instant, out *protocol.Out) {
	next := quantity.Never
	due := func(at quantity.Instant) {
		if at != 0 {
			next = min(next, at)
		}
	}
	for _, g := range n.grants {
		due(g.expiry)
	}
	for _, l := range n.byToken() {
		switch {
		case l.retry != 0:
			due(l.retry)
		case l.vacated() || !n.confirmed:
		case l.issued():
			due(l.end.Add(n.cfg.ResultRetry))
		case l.start > now:
			due(l.start)
		default:
			due(n.tries(now, l))
		}
	}
	for _, s := range n.slices {
		due(s.renew)
		for _, r := range s.time.Closed() {
			if soft(r.ID) && r.Every == 0 && r.End < quantity.Never {
				due(r.End)
			}
		}
	}
	due(n.refresh)
	due(n.memory.due)
	due(n.memory.old)
	due(n.memory.until)
	due(n.host.passes)
	due(n.wishes.Due())
	if next == quantity.Never || n.wake > now && n.wake <= next {
		return
	}
	n.wake = next
	n.send(out, protocol.Message{Kind: protocol.Wake, To: protocol.Address{Role: protocol.Timer}, Body: &protocol.Moment{At: next}})
}

// agree holds a step of the node against that of the plain one.
func (w *world) agree(plain *protocol.Out) {
	w.Helper()
	if !reflect.DeepEqual(w.last, slices.Clone(plain.Facts)) && len(w.last)+len(plain.Facts) > 0 {
		w.Fatalf("the node records\n%+v\nthe plain one\n%+v", w.last, plain.Facts)
	}
	if len(w.effects) != len(plain.Effects) {
		w.Fatalf("the node asks for %v, the plain one for %v", kinds(w.effects), kinds(plain.Effects))
	}
	for i := range w.effects {
		if !reflect.DeepEqual(w.effects[i], plain.Effects[i]) {
			w.Fatalf("the node asks for\n%+v\nthe plain one for\n%+v", w.effects[i], plain.Effects[i])
		}
	}
	w.indexed()
}

// indexed holds what is found through an index against what a search finds.
func (w *world) indexed() {
	w.Helper()
	n := w.n
	for _, s := range n.slices {
		for _, r := range s.time.Closed() {
			if !soft(r.ID) && n.reserved[r.ID] != s {
				w.Fatalf("reservation %d is on %s, the index has it on %v", r.ID, s.id, n.reserved[r.ID])
			}
		}
		var on []*lease
		for _, l := range n.byToken() {
			if !l.vacated() && touches(s.id, l.slice, l.also) {
				on = append(on, l)
			}
		}
		if !slices.Equal(on, n.leasesOn(s)) {
			w.Fatalf("%d leases are on %s, the timeline has %d", len(on), s.id, len(n.leasesOn(s)))
		}
	}
	of := map[job.ID]int{}
	for _, l := range n.byToken() {
		of[l.job]++
	}
	if len(of) != len(n.ofJob) {
		w.Fatalf("%d jobs have leases, the index has %d", len(of), len(n.ofJob))
	}
	for id, list := range n.ofJob {
		for l := range list.all {
			if of[id]--; l.phase == leaseGone || l.job != id {
				w.Fatalf("job %s has a lease %v in the index, which is gone or of job %s", id, l.token, l.job)
			}
		}
		if of[id] != 0 {
			w.Fatalf("the index lacks %d leases of job %s", of[id], id)
		}
	}
	if len(n.asked) != len(n.grants) {
		w.Fatalf("%d holds stand, the index has %d", len(n.grants), len(n.asked))
	}
	for _, g := range n.grants {
		if n.asked[question{g.from, g.ask}] != g {
			w.Fatalf("hold %v is not found by its ask", g.token)
		}
	}
}
