package zone_test

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/zone"
)

// letter is a message on its way.
type letter struct {
	at quantity.Instant
	m  protocol.Message
}

// post sends a message. With a delay every third one arrives later by up to that much, so that what was sent first may come
// last; what is under way when the zone restarts arrives at its next life.
func (w *world) post(m protocol.Message) {
	if w.delay == 0 || m.Kind == protocol.Wake || w.draw(3) > 0 {
		w.queue = append(w.queue, m)
		return
	}
	l := letter{w.now.Add(time.Duration(1+w.draw(int(w.delay/time.Millisecond))) * time.Millisecond), m}
	i, _ := slices.BinarySearchFunc(w.late, l, func(a, b letter) int { return cmp.Or(cmp.Compare(a.at, b.at), -1) })
	w.late = slices.Insert(w.late, i, l)
}

// arrive queues the letters that are due.
func (w *world) arrive() {
	for len(w.late) > 0 && w.late[0].at <= w.now {
		w.queue = append(w.queue, w.late[0].m)
		w.late = w.late[1:]
	}
}

// mail judges what the zone says about results, and what it believes of slices, by the messages alone.
type mail struct {
	// published is what is to be published of every token that was committed.
	published map[job.Token]job.Range
	// newest is the latest version of every slice's view that has reached the zone since it came up.
	newest map[job.SliceID]uint64
	// members of the claims of gangs, by the token of the first.
	members map[job.Token][]protocol.Member
}

func newMail() mail {
	return mail{map[job.Token]job.Range{}, map[job.SliceID]uint64{}, map[job.Token][]protocol.Member{}}
}

// fact notes what a claim was settled with.
func (l *mail) fact(f *protocol.Fact) {
	if f.Kind == protocol.Claimed {
		l.members[f.Token] = f.Body.(*protocol.Sale).Members
	}
	if end, ok := f.Body.(*protocol.ClaimEnd); ok && f.Kind == protocol.Committed && !end.Skipped {
		l.published[f.Token] = end.Range
		for _, m := range l.members[f.Token] {
			l.published[m.Token] = end.Range
		}
	}
}

// effect insists that every answer to a result publishes what was committed of it, no more and no less, however often and
// however late it comes. The answer about a job that is forgotten publishes nothing.
func (l *mail) effect(w *world, m *protocol.Message) {
	if m.Kind != protocol.ResultAck {
		return
	}
	if want := l.published[m.Token]; m.Body.(*protocol.Acknowledgement).Range != want &&
		!(m.Body.(*protocol.Acknowledgement).Range.Empty() && want.Empty()) {
		w.t.Fatalf("%s: the answer to the result of %v publishes %v, what counts of it is %v", m.Job, m.Token,
			m.Body.(*protocol.Acknowledgement).Range, want)
	}
}

// viewed insists that the zone goes by the newest view of a slice that has reached it.
func (l *mail) viewed(w *world, m *protocol.Message) {
	if m.Kind != protocol.Offer {
		return
	}
	id := m.Body.(*protocol.SliceView).Slice.ID
	l.newest[id] = max(l.newest[id], m.Body.(*protocol.SliceView).Version)
	if got := zone.Viewed(w.z, id); got != l.newest[id] {
		w.t.Fatalf("slice %s: the zone goes by version %d of its view, and has had %d", id, got, l.newest[id])
	}
}
