package zone_test

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// simSlice is a slice as its node keeps it, simRun one subjob there.
type simSlice struct {
	view protocol.Slice
	node job.NodeID             // "n" if empty
	busy []protocol.Reservation // leases, holds, reservations
	vers uint64
	sent string
	runs []*simRun
	// back is when another machine joins by the name of its node, which was removed.
	back quantity.Instant
}

type simRun struct {
	m      protocol.Message
	done   quantity.Instant
	result job.Result
	acked  bool
	ended  bool
	sentAt quantity.Instant
}

func (w *world) slice(id job.SliceID) *simSlice {
	i := slices.IndexFunc(w.slices, func(s *simSlice) bool { return s.view.ID == id })
	return w.slices[i]
}

// removes has a node leave for good, with all that runs there; no word of it comes through any more. Another joins by its name later, with
// slices by the same names, and counts from its start.
func (w *world) removes(by job.NodeID, back quantity.Instant) {
	said := func(m protocol.Message) bool { return m.From == node(string(by)) }
	w.queue = slices.DeleteFunc(w.queue, said)
	w.late = slices.DeleteFunc(w.late, func(l letter) bool { return said(l.m) })
	for _, s := range w.slices {
		if s.at() == node(string(by)) {
			s.busy, s.vers, s.sent, s.runs, s.back = nil, 0, "", nil, back
			delete(w.mail.newest, s.view.ID)
		}
	}
	w.step(protocol.Message{Kind: protocol.Removed, From: protocol.Address{Role: protocol.Person}, Body: &protocol.Removal{Node: by}})
}

// node answers as the slices' owner does, in the plainest way.
func (w *world) node(m protocol.Message) {
	if !slices.ContainsFunc(w.slices, func(s *simSlice) bool { return s.at() == m.To && s.back <= w.now }) {
		return // it was removed
	}
	reply := func(a protocol.Message) {
		a.From = m.To
		w.reply(a)
	}
	switch m.Kind {
	case protocol.Ask:
		if w.refuse != nil && w.refuse(&m) {
			w.slice(m.Body.(*protocol.Asking).Slice).sent = "" // a fresh view follows
			reply(protocol.Message{Kind: protocol.Refused, Body: &protocol.Refusal{Ask: m.Body.(*protocol.Asking).Ask,
				Slice: m.Body.(*protocol.Asking).Slice, Text: "no"}, Job: m.Job})
			return
		}
		for _, id := range append([]job.SliceID{m.Body.(*protocol.Asking).Slice}, m.Body.(*protocol.Asking).Also...) {
			if !w.slice(id).isFree(m.Body.(*protocol.Asking).Start, m.Body.(*protocol.Asking).End, m.Job, job.Token{}) {
				reply(protocol.Message{Kind: protocol.Refused, Body: &protocol.Refusal{Ask: m.Body.(*protocol.Asking).Ask,
					Slice: m.Body.(*protocol.Asking).Slice, Text: "not free"}, Job: m.Job})
				return
			}
		}
		w.seq++
		tok := job.Token{Epoch: w.epoch, Seq: w.seq}
		for _, id := range append([]job.SliceID{m.Body.(*protocol.Asking).Slice}, m.Body.(*protocol.Asking).Also...) {
			s := w.slice(id)
			s.busy = slices.DeleteFunc(s.busy, func(b protocol.Reservation) bool { return b.Kind == protocol.ForRigid && b.Job == m.Job })
			s.busy = append(s.busy, protocol.Reservation{ID: uint64(w.now.Add(200 * time.Millisecond)), Kind: protocol.ForHold,
				Start: m.Body.(*protocol.Asking).Start, End: m.Body.(*protocol.Asking).End, Token: tok, Job: m.Job})
		}
		reply(protocol.Message{Kind: protocol.Granted, Body: &protocol.Grant{Ask: m.Body.(*protocol.Asking).Ask,
			Slice: m.Body.(*protocol.Asking).Slice, Start: m.Body.(*protocol.Asking).Start, End: m.Body.(*protocol.Asking).End}, Job: m.Job,
			Token: tok})
	case protocol.Redeem:
		w.redeem(m, reply)
	case protocol.ResultAck:
		if !m.Body.(*protocol.Acknowledgement).Range.Empty() {
			reply(protocol.Message{Kind: protocol.Published, Token: m.Token, Job: m.Job})
		}
		for _, s := range w.slices {
			for _, r := range s.runs {
				if r.m.Token == m.Token && r.ended {
					r.acked = true
				}
			}
		}
	case protocol.Stop:
		for _, s := range w.slices {
			s.busy = slices.DeleteFunc(s.busy, func(b protocol.Reservation) bool {
				return b.Kind == protocol.ForHold &&
					b.Token == m.Token
			})
			for _, r := range s.runs {
				if r.m.Token == m.Token && !r.ended && (!m.Body.(*protocol.Halt).Unstarted || w.now < r.m.Body.(*protocol.Work).Start) {
					if w.now < r.m.Body.(*protocol.Work).Start {
						r.result = job.Result{Outcome: job.Stopped, Progress: r.m.Body.(*protocol.Work).Range.From}
					}
					r.done, r.result.Outcome = w.now, job.Stopped
				}
			}
		}
	case protocol.Reserve:
		s := w.slice(m.Body.(*protocol.Booking).Slice)
		if !s.isFree(m.Body.(*protocol.Booking).Reservation.Start, m.Body.(*protocol.Booking).Reservation.End, m.Job, job.Token{}) {
			reply(protocol.Message{Kind: protocol.Refused, Body: &protocol.Refusal{Ask: m.Body.(*protocol.Booking).Ask,
				Slice: m.Body.(*protocol.Booking).Slice}, Job: m.Job})
			return
		}
		w.ids++
		r := *m.Body.(*protocol.Booking).Reservation
		r.ID = w.ids
		s.busy = append(s.busy, r)
	case protocol.Unreserve:
		for _, s := range w.slices {
			s.busy = slices.DeleteFunc(s.busy, func(b protocol.Reservation) bool {
				return b.ID == m.Body.(*protocol.Booking).Reservation.ID && b.ID != 0
			})
		}
	case protocol.Extend:
		s := w.slice(m.Body.(*protocol.Extension).Slice)
		for _, r := range s.runs {
			if r.m.Token == m.Token && !r.ended && s.isFree(r.m.Body.(*protocol.Work).End, m.Body.(*protocol.Extension).End, "", m.Token) {
				if !w.deaf {
					r.done = r.done.Add(time.Duration(
						m.Body.(*protocol.Extension).Range.To-r.m.Body.(*protocol.Work).Range.To) * time.Second)
					r.result.Progress = m.Body.(*protocol.Extension).Range.To
				}
				r.m.Body.(*protocol.Work).Range, r.m.Body.(*protocol.Work).End = m.Body.(*protocol.Extension).Range,
					m.Body.(*protocol.Extension).End
				for i := range s.busy {
					if s.busy[i].Token == m.Token {
						s.busy[i].End = m.Body.(*protocol.Extension).End
					}
				}
				reply(protocol.Message{Kind: protocol.Extended, Body: &protocol.Extension{Ask: m.Body.(*protocol.Extension).Ask,
					Range: m.Body.(*protocol.Extension).Range, End: m.Body.(*protocol.Extension).End}, Token: m.Token, Job: m.Job})
				return
			}
		}
		reply(protocol.Message{Kind: protocol.Refused, Body: &protocol.Refusal{Ask: m.Body.(*protocol.Extension).Ask}, Token: m.Token,
			Job: m.Job})
	}
}

func (w *world) redeem(m protocol.Message, reply func(protocol.Message)) {
	s := w.slice(m.Body.(*protocol.Work).Slice)
	for _, r := range s.runs {
		if r.m.Token == m.Token {
			reply(protocol.Message{Kind: protocol.Leased, Token: m.Token, Job: m.Job, Body: &protocol.Holding{}})
			return
		}
	}
	if !slices.ContainsFunc(s.busy, func(b protocol.Reservation) bool { return b.Kind == protocol.ForHold && b.Token == m.Token }) {
		reply(protocol.Message{Kind: protocol.RedeemRefused, Token: m.Token, Job: m.Job, Body: &protocol.Refusal{Text: "lapsed"}})
		return
	}
	for _, o := range w.slices {
		for i := range o.busy {
			if o.busy[i].Token == m.Token {
				o.busy[i].ID, o.busy[i].Kind, o.busy[i].Start, o.busy[i].End = 0, protocol.ForLease, m.Body.(*protocol.Work).Start,
					m.Body.(*protocol.Work).End
			}
		}
	}
	run := &simRun{m: m, result: job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To, Checkpoint: true,
		Start: max(w.now, m.Body.(*protocol.Work).Start)}}
	after := m.Body.(*protocol.Work).Plan.Wall
	if w.run != nil {
		after, run.result = w.run(&m)
		if run.result.Outcome != job.NodeFailed || run.result.Start != 0 { // else it never began
			run.result.Start = max(w.now, m.Body.(*protocol.Work).Start, run.result.Start)
		}
	}
	run.done = min(max(w.now, m.Body.(*protocol.Work).Start).Add(after), m.Body.(*protocol.Work).End)
	s.runs = append(s.runs, run)
	reply(protocol.Message{Kind: protocol.Leased, Token: m.Token, Job: m.Job, Body: &protocol.Holding{}})
	if m.Body.(*protocol.Work).Start <= w.now { // Running of what begins later is lost
		reply(protocol.Message{Kind: protocol.Running, Token: m.Token, Job: m.Job, Body: &protocol.Beginning{At: w.now}})
	}
}

func (s *simSlice) isFree(start, end quantity.Instant, own job.ID, tok job.Token) bool {
	for _, b := range s.busy {
		if b.Start < end && start < b.End && (b.Kind != protocol.ForRigid || b.Job != own) && (b.Token != tok || tok.Zero()) {
			return false
		}
	}
	return true
}

func (s *simSlice) release(t job.Token) {
	s.busy = slices.DeleteFunc(s.busy, func(b protocol.Reservation) bool { return b.Token == t })
}

func (s *simSlice) gaps(now quantity.Instant) []protocol.Gap {
	slices.SortFunc(s.busy, func(a, b protocol.Reservation) int { return int(min(1, max(-1, a.Start-b.Start))) })
	var out []protocol.Gap
	at := now
	for _, b := range s.busy {
		if b.Start > at {
			out = append(out, protocol.Gap{Start: at, End: b.Start, Until: b.Kind})
		}
		at = max(at, b.End)
	}
	if at != quantity.Never {
		// The start is kept out of the text that decides whether a new view is sent: it moves with the clock.
		out = append(out, protocol.Gap{Start: at, End: quantity.Never})
	}
	if len(out) > 0 && out[0].Start == now {
		out[0].Start = 0
	}
	return out
}
