package observe

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// maxSpans bounds what is kept of one slice; the oldest go first.
const maxSpans = 8192

// history is the recent past of every slice: leases from the node's facts, or, of a node elsewhere, whose facts are kept there, from the
// claims of a zone here; other reservations from its offers. Windows nobody took are what is left between them.
type history struct {
	reach  time.Duration
	slices map[sliceKey]*past
	// order is the same slices by id.
	order  []*past
	leases map[tokenKey]*lease
	// gangs are the tokens of all members of claims over several nodes, by the claim's.
	gangs map[tokenKey][]job.Token
}

type past struct {
	slice protocol.Slice
	known bool
	// seen is when the slice was first heard of: before that it was not empty, it was unknown.
	seen  quantity.Instant
	spans []*status.Span // in order of arrival
	// standing are the reservations of the last offer, by id and start.
	standing map[resKey]*status.Span
	version  uint64
	gaps     []protocol.Gap
}

// unusableID keys the span of a slice that can't be sold; nodes count reservations up from 1.
const unusableID = ^uint64(0)

type resKey struct {
	id    uint64
	start quantity.Instant
}

// lease is one span on each of a subjob's slices, until it is settled.
type lease struct {
	spans []*status.Span
	// claimed: only its claim is known, as yet or at all.
	claimed bool
}

func (h *history) slice(id job.SliceID, now quantity.Instant) *past {
	p := h.slices[id]
	if p == nil {
		p = &past{slice: protocol.Slice{ID: id}, seen: now, standing: map[resKey]*status.Span{}}
		h.slices[id] = p
		i, _ := h.find(id)
		h.order = slices.Insert(h.order, i, p)
	}
	return p
}

func (h *history) inventory(now quantity.Instant, list []protocol.Slice) {
	for _, s := range list {
		p := h.slice(s.ID, now)
		p.slice, p.known = s, true
	}
}

func (h *history) fact(now quantity.Instant, f *protocol.Fact) {
	switch f.Kind {
	case protocol.LeaseMade:
		t := f.Body.(*protocol.Terms)
		h.made(now, f.Token, f.Job, &t.Placement, t.Slice, t.Also)
		h.leases[f.Token].claimed = false
		return
	case protocol.Claimed:
		h.claimed(now, f)
		return
	case protocol.ClaimExtended, protocol.Released, protocol.Committed:
		h.claim(cmp.Or(now, f.At), f)
	default: // about a lease
	}
	l := h.leases[f.Token]
	if l == nil {
		return
	}
	for _, s := range l.spans {
		switch f.Kind {
		case protocol.LeaseExtended:
			to := f.Body.(*protocol.Extent)
			s.Range, s.End = to.Range, to.End
		case protocol.Truncated:
			s.End = min(s.End, f.Body.(*protocol.Truncation).End)
		case protocol.SubjobStarted:
			s.UsedStart = f.At
		case protocol.SubjobVacated:
			s.UsedEnd = now
			s.End = max(s.Start, min(s.End, now))
		case protocol.SubjobEnded:
			ended(s, now, f.Body.(*protocol.SubjobEnd).Result)
		case protocol.Committed:
			s.Committed = f.Body.(*protocol.ClaimEnd).Range
		case protocol.ResultSettled:
			s.Committed = f.Body.(*protocol.Acknowledgement).Range
		}
	}
	if f.Kind == protocol.LeaseGone {
		delete(h.leases, f.Token)
	}
}

// made adds the spans of a lease, or of its claim. One stands for both, whichever is told first.
func (h *history) made(now quantity.Instant, token job.Token, of job.ID, t *protocol.Placement, first job.SliceID, also []job.SliceID) {
	if h.leases[token] != nil {
		return
	}
	l := &lease{claimed: true}
	for _, id := range append([]job.SliceID{first}, also...) {
		p := h.slice(id, cmp.Or(now, t.Start))
		p.seen = min(p.seen, t.Start)
		s := &status.Span{Kind: protocol.ForLease, Start: t.Start, End: t.End, Job: of, Token: token, Range: t.Range}
		p.add(s, t.Start.Add(-h.reach))
		l.spans = append(l.spans, s)
	}
	h.leases[token] = l
}

// claimed adds the spans of a claim: each member of a gang has a lease of its own, here or elsewhere.
func (h *history) claimed(now quantity.Instant, f *protocol.Fact) {
	c := f.Body.(*protocol.Sale)
	if len(c.Members) == 0 {
		h.made(now, f.Token, f.Job, &c.Placement, c.Slice, c.Also)
		return
	}
	var tokens []job.Token
	for i, m := range c.Members {
		first, also := protocol.Part(c.Slice, c.Also, c.Members, i)
		h.made(now, m.Token, f.Job, &c.Placement, first, also)
		tokens = append(tokens, m.Token)
	}
	h.gangs[f.Token] = tokens
}

// claim follows a claim whose leases are made elsewhere: what its home hears of them is how it ended.
func (h *history) claim(now quantity.Instant, f *protocol.Fact) {
	over := f.Kind != protocol.ClaimExtended
	tokens := h.gangs[f.Token]
	if tokens == nil {
		tokens = []job.Token{f.Token}
	}
	for _, t := range tokens {
		l := h.leases[t]
		if l == nil || !l.claimed {
			continue
		}
		for _, s := range l.spans {
			if !over {
				to := f.Body.(*protocol.Extent)
				s.Range, s.End = to.Range, to.End
				continue
			}
			end := f.Body.(*protocol.ClaimEnd)
			s.End = max(s.Start, min(s.End, now))
			s.Committed = end.Range
			ended(s, now, end.Result)
		}
		if over {
			delete(h.leases, t)
		}
	}
	if over {
		delete(h.gangs, f.Token)
	}
}

// ended closes a lease's span: its time is free again from there on.
func ended(s *status.Span, now quantity.Instant, r *job.Result) {
	if r == nil {
		return
	}
	s.Outcome = r.Outcome.String()
	end := cmp.Or(r.End, now)
	if r.Start != 0 {
		s.UsedStart, s.UsedEnd, s.FirstProgress = r.Start, end, r.FirstProgress
	}
	if end != 0 {
		s.End = max(s.Start, min(s.End, end))
	}
}

// add appends a span and drops those older than the horizon, or the oldest beyond the bound.
func (p *past) add(s *status.Span, horizon quantity.Instant) {
	drop := 0
	for drop < len(p.spans) && p.spans[drop].End < horizon {
		drop++
	}
	drop = max(drop, len(p.spans)+1-maxSpans)
	p.spans = append(slices.Delete(p.spans, 0, drop), s)
	if drop > 0 && len(p.spans) > 0 {
		p.seen = max(p.seen, min(horizon, p.spans[0].Start))
	}
}

// offer follows the reservations that are not leases: what stands opens or updates a span, what is gone closes it.
func (h *history) offer(now quantity.Instant, v *protocol.SliceView) {
	p := h.slice(v.Slice.ID, now)
	if p.version != 0 && v.Version <= p.version {
		return
	}
	p.slice, p.known, p.version = v.Slice, true, v.Version
	p.gaps = nil
	if v.Usable {
		p.gaps = v.Gaps
	}
	stands := map[resKey]bool{}
	keep := func(k resKey, s status.Span) {
		stands[k] = true
		if have := p.standing[k]; have != nil {
			have.End, have.Outcome = s.End, s.Outcome
			return
		}
		p.standing[k] = &s
		p.add(&s, now.Add(-h.reach))
	}
	for _, r := range v.Reserved {
		if r.Kind != protocol.ForLease && r.Kind != protocol.ForHold {
			keep(resKey{r.ID, r.Start}, status.Span{Kind: r.Kind, Start: r.Start, End: r.End, Job: r.Job, Outcome: r.Source})
		}
	}
	if !v.Usable {
		// Shown like a foreign process: time that can't be sold, without a known end.
		k := resKey{id: unusableID, start: now}
		for have := range p.standing {
			if have.id == unusableID {
				k = have
			}
		}
		keep(k, status.Span{Kind: protocol.ForForeign, Start: k.start, End: quantity.Never, Outcome: v.Why})
	}
	for k, s := range p.standing {
		if !stands[k] {
			s.End = min(s.End, now)
			delete(p.standing, k)
		}
	}
}

// find is the place of a slice in order.
func (h *history) find(id job.SliceID) (int, bool) {
	return slices.BinarySearchFunc(h.order, id, func(p *past, id job.SliceID) int { return cmp.Compare(p.slice.ID, id) })
}

// spansTurn is about how many spans one piece of a view has: it copies well below a millisecond, but for a slice that has more.
const spansTurn = 1024

// view copies what is known of [since, now], of the slices behind one, as many as make one piece; next is the last of them, empty if
// none is left.
func (h *history) view(since, now quantity.Instant, after job.SliceID) (out status.History, next job.SliceID) {
	out = status.History{From: max(since, now.Add(-h.reach)), To: now}
	i, found := h.find(after)
	if found {
		i++
	}
	for n := 0; i < len(h.order); i++ {
		p := h.order[i]
		if n > spansTurn {
			return out, h.order[i-1].slice.ID
		}
		if n++; p.known || len(p.spans) > 0 {
			n += len(p.spans)
			out.Slices = append(out.Slices, status.SliceHistory{Slice: p.slice, Spans: p.view(out.From, now)})
		}
	}
	return out, ""
}

func (p *past) view(from, now quantity.Instant) []status.Span {
	var spans []status.Span
	for _, s := range p.spans {
		if s.End > from && s.Start <= now && s.Start < s.End {
			spans = append(spans, *s)
		}
	}
	slices.SortStableFunc(spans, func(a, b status.Span) int { return cmp.Compare(a.Start, b.Start) })
	var out []status.Span
	at := max(from, p.seen)
	for _, s := range spans {
		if s.Start > at {
			out = append(out, status.Span{Start: at, End: s.Start, Until: s.Kind})
		}
		out = append(out, s)
		at = max(at, s.End)
	}
	if at < now {
		last := status.Span{Start: at, End: now}
		for _, g := range p.gaps {
			if g.Start <= now && now < g.End {
				last.Until = g.Until
			}
		}
		out = append(out, last)
	}
	return out
}
