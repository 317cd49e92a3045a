package zone

import (
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/federation/borrow"
	"sluice.dev/sluice/internal/core/federation/lend"
	"sluice.dev/sluice/internal/core/federation/seek"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

// What only several zones or tickets need is here and in core/federation; a zone alone has none of it.

// elsewhere is the memory of the largest slices that any zone has, where jobs search; 0 where they do not.
func (c *Config) elsewhere() quantity.Amount {
	if c.Search == nil {
		return 0
	}
	return slices.Max(c.Search.Flow.Classes)
}

// federate makes what the zone needs of it.
func (z *Zone) federate() {
	w := (*wing)(z)
	if !z.cfg.Alone {
		z.guests = lend.New(z.self, w, z.planner)
		z.borrowers = borrow.New(borrow.Config{ID: z.cfg.ID, Gates: z.cfg.Gates, Retry: z.cfg.Retry}, w, z.planner)
	}
	if z.cfg.Search != nil {
		z.seek = seek.New(z.cfg.Search, z.self, z.cfg.Gates, w, z.floor, z.cfg.Market != nil)
	}
}

// federated handles messages of other zones and of tickets. False: it was none.
func (z *Zone) federated(now quantity.Instant, in *protocol.Message, out *protocol.Out) bool {
	zone := in.From.Role == protocol.Zone
	switch in.Kind {
	case protocol.Search, protocol.Back, protocol.Landing, protocol.Probed, protocol.Room:
		if z.seek != nil {
			z.seek.Hear(now, in, out)
		}
	case protocol.Announce, protocol.Told, protocol.Parting:
		if z.seek != nil {
			z.seek.Called(now, in, out)
		}
	case protocol.Winning:
		if z.seek != nil {
			z.seek.Prize(now, in, out)
		} else if p, ok := in.Body.(*protocol.Prize); ok { // of another life of the zone, which had tickets
			z.home.Claims().Send(out, protocol.Message{Kind: protocol.LetGo, To: in.From, Job: in.Job, Token: p.Token})
		}
	case protocol.Lenders:
		if z.borrowers != nil {
			z.borrowers.Named(now, in.Job, in.Body.(*protocol.LenderList), out)
		}
	case protocol.Borrow:
		if zone && z.guests != nil {
			z.guests.Lend(now, in.From, in.Job, in.Epoch, in.Body.(*protocol.Loan))
		}
	case protocol.Lent:
		if zone && z.borrowers != nil {
			z.borrowers.Lent(now, job.ZoneID(in.From.ID), in.Job, in.Body.(*protocol.Lending), out)
		}
	default:
		return false
	}
	return true
}

// trade advances what is lent and borrowed, after a plan. It returns when to look again.
func (z *Zone) trade(now quantity.Instant, out *protocol.Out) quantity.Instant {
	for range 3 { // our own gangs ask us, too
		if z.guests.Owes() {
			z.guests.Answer(now, out)
		}
		z.borrowers.Borrow(now, out)
		if !z.guests.Owes() || z.planner.Invalid() {
			break
		}
	}
	wake := min(z.borrowers.Next(), z.guests.Next())
	if z.guests.Owes() { // it is planned around that first
		wake = min(wake, now+1)
	}
	return wake
}

// Searching is what the zone says of the search in it; nil where windows are offered.
func (z *Zone) Searching(now quantity.Instant) *status.Search {
	if z.seek == nil {
		return nil
	}
	return z.seek.Searching(now)
}

// AuditSearch says what of the tickets does not fit together, empty if all does; for tests.
func (z *Zone) AuditSearch() string {
	if z.seek == nil {
		return ""
	}
	return z.seek.Audit()
}

// wing is the zone as its seekers, borrowers and guests see it (seek.Zone, borrow.Zone, lend.Zone).
type wing Zone

func (z *wing) Waits(now quantity.Instant, j *home.Job) explain.Reason { return z.caps.Waits(now, j) }
func (z *wing) Rigid(j *home.Job) *backfill.Job                        { return entryOf(j).rigid }
func (z *wing) Send(out *protocol.Out, m protocol.Message)             { z.home.Claims().Send(out, m) }
func (z *wing) Sentence(j *home.Job, c *explain.Cause) string          { return z.view.Sentence(j, c) }

func (z *wing) Gang(id job.ID) *borrow.Gang {
	if j := z.home.Book().Job(id); j != nil {
		return entryOf(j).borrows
	}
	return nil
}

func (z *wing) Seeker(id job.ID) *seek.Job {
	if j := z.home.Book().Job(id); j != nil {
		return entryOf(j).seek
	}
	return nil
}

func (z *wing) Asking(id job.ID) bool {
	j := z.home.Book().Job(id)
	return j != nil && j.Progress().Asking() > 0
}

func (z *wing) Lend(now quantity.Instant, name job.ID, epoch uint32, l *protocol.Loan) {
	z.guests.Lend(now, z.self, name, epoch, l)
}

func (z *wing) Lent(now quantity.Instant, id job.ID, l *protocol.Lending, out *protocol.Out) {
	z.borrowers.Lent(now, z.cfg.ID, id, l, out)
}

func (z *wing) Ask(now quantity.Instant, a *home.Ask, reservation uint64, out *protocol.Out) {
	(*Zone)(z).ask(now, a, reservation, out)
}

func (z *wing) Version(id job.SliceID, memory quantity.Amount) (version uint64, own bool) {
	s := z.sites.Make(id)
	if s.View() != nil {
		return s.Version(), true
	}
	s.Remember(memory)
	return 0, false
}

func (z *wing) Refused(now quantity.Instant, j *home.Job, why atomizer.Refusal) {
	entryOf(j).floor.Counts().Refuse(why, now)
}

func (z *wing) Use(now quantity.Instant, j *home.Job) (own, queue, weight int64) {
	return (*demand)(entryOf(j)).Use(now)
}

func (z *wing) Claim(now quantity.Instant, a *home.Ask, t job.Token, out *protocol.Out) bool {
	return z.home.Claims().Claim(now, a, t, out)
}

func (z *wing) Peak(s *protocol.Slice, j *home.Job, r job.Range, demand trp.Vector, option string) trp.Peak {
	return peakOn(s, j, r, demand, option)
}

func (z *wing) Remember(s *protocol.Slice) { z.sites.Make(s.ID).Remember(s.Capacity[0]) }

func (z *wing) Expire(now quantity.Instant, j *home.Job, reason string, out *protocol.Out) {
	z.home.Settle().Expire(now, j, reason, out)
}

// asking is what people see of a gang's loans (view.Loans), seeking of its tickets (view.Tickets).
type (
	asking  Zone
	seeking Zone
)

// Waits implements view.Loans.
func (z *asking) Waits(now quantity.Instant, j *home.Job) (string, bool) {
	why := entryOf(j).borrows.Waits(now)
	return why, why != ""
}

// Waits implements view.Tickets.
func (z *seeking) Waits(now quantity.Instant, j *home.Job) string {
	return z.seek.Waits(now, entryOf(j).seek, j)
}

// Trail implements view.Tickets.
func (z *seeking) Trail(j *home.Job) []status.Reason { return z.seek.Trail(entryOf(j).seek) }
