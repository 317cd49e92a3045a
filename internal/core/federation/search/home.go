package search

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Home has the tickets of the jobs that are at home in one zone. A job has one at a time: what it could run beside that is looked for when
// the node has confirmed the last place. It is not safe for concurrent use.
type Home struct {
	cfg    *Config
	loop   *flow.Search
	self   protocol.Address
	zone   flow.ZoneID
	ground *Ground

	lot     *flow.Lot
	tickets map[flow.TicketID]*Job
	// stale jobs may look for something else than before.
	stale dirty.Set[*Job]
	// missed is when a ticket that is away is taken for lost, or one that is parked gives up.
	missed alarm.Heap[*Job]
	// beats counts digests; since begins the turns of jobs that were here before this life of the home.
	beats, since uint64
	woken        []flow.TicketID
	// going is room for a ticket that sets out to search here.
	going protocol.Errand
}

// NewHome has no tickets.
func NewHome(cfg *Config, self protocol.Address, zone flow.ZoneID) *Home {
	h := &Home{cfg: cfg, loop: flow.NewSearch(&cfg.Flow), self: self, zone: zone, lot: flow.NewLot(), tickets: map[flow.TicketID]*Job{}}
	h.ground = NewGround(cfg, self, zone, h, 0)
	return h
}

// Resume begins a life of the home, before it has any ticket: now is later than in any life before.
func (h *Home) Resume(now quantity.Instant) {
	h.since = uint64(max(0, now))
	h.ground = NewGround(h.cfg, h.self, h.zone, h, now)
}

// Ground of the zone, where these tickets search first.
func (h *Home) Ground() *Ground { return h.ground }

// Parked is how many tickets wait here.
func (h *Home) Parked() int { return h.lot.Len() }

// Invalidate notes that what a job looks for may have changed.
func (h *Home) Invalidate(j *Job) { h.stale.Add(&j.stale, j) }

// Next is when something is to be done without a word from anybody; Never if nothing is.
func (h *Home) Next() quantity.Instant { return min(h.missed.Next(), h.ground.Next()) }

// Tick does what is due, and makes every changed job look for what it needs now.
func (h *Home) Tick(now quantity.Instant, out *protocol.Out) {
	h.ground.Tick(now, out)
	var list []*Job
	for j := range h.missed.Past(now) {
		list = append(list, j)
	}
	slices.SortFunc(list, func(a, b *Job) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, j := range list {
		h.overdue(now, j, out)
	}
	h.stale.Drain(func(j *Job) { h.settle(now, j, out) })
}

// settle brings a job's ticket in line with what it wants.
func (h *Home) settle(now quantity.Instant, j *Job, out *protocol.Out) {
	w, wants := j.Wants(now)
	switch {
	case j.state == Landed && !j.lost:
	case !wants:
		h.drop(j)
	case j.state == Landed:
		h.again(now, j, out)
	case j.state == Idle:
		h.begin(now, j, w, out)
	case w.Class != j.want.Class || w.Deadline != j.want.Deadline:
		h.drop(j)
		h.begin(now, j, w, out)
	}
}

// begin makes a ticket for a job. It searches at home first.
func (h *Home) begin(now quantity.Instant, j *Job, w Want, out *protocol.Out) {
	if j.turn == 0 && !j.New {
		j.turn = h.since
	}
	id := h.cfg.Name(j.Name(), j.Life(), j.turn)
	for j.turn++; h.tickets[id] != nil; j.turn++ {
		id = h.cfg.Name(j.Name(), j.Life(), j.turn)
	}
	j.want, j.state, j.lost = w, Away, false
	j.ticket = flow.Ticket{
		ID: id, Demand: w.Demand, Deadline: w.Deadline, Born: w.Born, Epoch: j.HomeEpoch(), Home: h.zone, Priority: w.Priority,
		Class: w.Class, Kind: w.Kind,
	}
	h.tickets[id] = j
	j.trail.Tickets++
	j.trail.Searches++
	if next := h.loop.Begin(now, &j.ticket); next.Act != flow.Draw {
		h.act(now, j, next, out)
		return
	}
	h.going = j.errand()
	h.ground.Arrive(now, j.Name(), &h.going, out)
}

// errand is the job's ticket for the way.
func (j *Job) errand() protocol.Errand {
	return protocol.Errand{Ticket: j.ticket, Generation: j.Life(), Least: j.want.Least, Most: j.want.Most}
}

// drop ends a job's ticket. One that searches elsewhere ends there, for its home does not know it any more.
func (h *Home) drop(j *Job) {
	if j.state == Idle {
		return
	}
	h.ground.Take(j.ticket.ID)
	h.lot.Remove(j.ticket.ID)
	h.missed.Set(&j.slot, j, quantity.Never)
	delete(h.tickets, j.ticket.ID)
	j.state, j.lost = Idle, false
}

// again resumes a search whose grant came to nothing.
func (h *Home) again(now quantity.Instant, j *Job, out *protocol.Out) {
	j.lost = false
	j.trail.Lost++
	h.act(now, j, h.loop.Lost(now, &j.ticket), out)
}

// act carries out the loop's decision for a ticket that is here.
func (h *Home) act(now quantity.Instant, j *Job, next flow.Move, out *protocol.Out) {
	switch next.Act {
	case flow.Draw:
		j.state = Away
		h.leaves(now, j)
		e := j.errand()
		h.send(out, protocol.Message{Kind: protocol.Redraw, To: h.cfg.Gates.Of(j.Name()), Job: j.Name(), Body: &e})
	case flow.Park:
		j.state = Parked
		h.lot.Add(&j.ticket)
		j.Parked()
		h.missed.Set(&j.slot, j, next.At)
	case flow.Expire:
		h.drop(j)
		j.Expire(now, j.ticket.Why, out)
	case flow.Ask, flow.Rest: // of tickets that search
	}
}

// leaves sets the time at which a ticket that does not return counts as lost; it gives up at its deadline wherever it is.
func (h *Home) leaves(now quantity.Instant, j *Job) {
	f := &h.cfg.Flow
	at := now.Add(f.Patience + 2*f.ProbeTimeout + f.Stale)
	if j.ticket.Deadline != 0 {
		at = min(at, max(now, j.ticket.Deadline)+1)
	}
	h.missed.Set(&j.slot, j, at)
}

// overdue is a ticket that has not come back, or that has waited until its deadline.
func (h *Home) overdue(now quantity.Instant, j *Job, out *protocol.Out) {
	over := j.ticket.Deadline != 0 && j.ticket.Deadline <= now
	switch {
	case j.state == Parked && over:
		j.ticket.Why = flow.PastDeadline
		h.act(now, j, flow.Move{Act: flow.Expire}, out)
	case j.state != Away || h.ground.Has(j.ticket.ID):
	case over:
		j.ticket.Why = flow.PastDeadline
		h.act(now, j, flow.Move{Act: flow.Expire}, out)
	default:
		j.trail.Missed++
		h.drop(j)
		h.Invalidate(j)
	}
}

// Left implements Host.
func (h *Home) Left(now quantity.Instant, id job.ID, e *protocol.Errand) {
	if h.Awaits(id, e) {
		j := h.tickets[e.ID]
		j.came(&e.Ticket)
		h.leaves(now, j)
	}
}

// Awaits implements Host.
func (h *Home) Awaits(id job.ID, e *protocol.Errand) bool {
	j := h.current(id, e)
	return j != nil && j.state == Away
}

// Returned implements Host: it handles Back.
func (h *Home) Returned(now quantity.Instant, id job.ID, e *protocol.Errand, out *protocol.Out) {
	j := h.current(id, e)
	if j == nil || j.state != Away || h.ground.Has(e.ID) || e.Phase != flow.Parked && e.Phase != flow.Expired {
		return // its home has made another one, or it was told twice, or the word is none
	}
	j.came(&e.Ticket)
	next := flow.Move{Act: flow.Park, At: quantity.Never}
	if e.Phase == flow.Expired {
		next.Act = flow.Expire
	} else if e.Deadline != 0 {
		next.At = e.Deadline
	}
	h.act(now, j, next, out)
}

// current is the job whose ticket this is, as far as its search and its losses go; nil if it is an earlier one, or of no job.
func (h *Home) current(id job.ID, e *protocol.Errand) *Job {
	j := h.tickets[e.ID]
	if j == nil || j.Name() != id || e.Home != h.zone || e.Episode != j.ticket.Episode || e.Churn != j.ticket.Churn ||
		e.Class != j.ticket.Class {
		return nil
	}
	return j
}

// Landed implements Host: it handles Landing. The place is claimed if a piece of the job fits it; otherwise the node is told.
func (h *Home) Landed(now quantity.Instant, id job.ID, f *protocol.Finding, out *protocol.Out) {
	j := h.current(id, &f.Errand)
	if j != nil && j.state == Landed && j.token == f.Place.Token {
		return // it was told twice
	}
	if j == nil || j.state != Away && j.state != Parked || f.Errand.Phase != flow.Landed {
		h.letGo(id, &f.Place, out)
		return
	}
	h.ground.Take(f.Errand.ID)
	h.lot.Remove(f.Errand.ID)
	h.missed.Set(&j.slot, j, quantity.Never)
	if _, wants := j.Wants(now); !wants {
		h.letGo(id, &f.Place, out)
		h.drop(j)
		return
	}
	j.came(&f.Errand.Ticket)
	j.state, j.token = Landed, f.Place.Token
	why, ok := j.Claim(now, &f.Place, out)
	if !ok {
		j.trail.Refusal = why
		h.letGo(id, &f.Place, out)
		h.again(now, j, out)
	}
}

// Leased: the node has confirmed a claim. What else the job may run is looked for now.
func (h *Home) Leased(j *Job, t job.Token) {
	if j.state == Landed && j.token == t {
		h.drop(j)
		h.Invalidate(j)
	}
}

// Freed: a claim of the job is over. One that no node has confirmed was lost.
func (h *Home) Freed(j *Job, t job.Token) {
	if j.state == Landed && j.token == t {
		j.lost = true
	}
	h.Invalidate(j)
}

// wakeAnyway is after how many digests one ticket is woken though there is no room here: others may have some.
const wakeAnyway = 10

// Beat is the end of a period: some of the parked tickets are woken, as many as the zone's own digest has room for.
func (h *Home) Beat(now quantity.Instant, own *flow.Digest, out *protocol.Out) {
	h.beats++
	if h.lot.Len() == 0 {
		return
	}
	var budget [flow.MaxClasses]int
	for c := range h.cfg.Flow.Classes {
		if budget[c] = int(max(0, min(own.Room(flow.Class(c)), int64(h.cfg.Flow.Wakes)))); h.beats%wakeAnyway == 0 {
			budget[c] = max(budget[c], 1)
		}
	}
	h.woken = h.lot.Wake(budget, h.woken[:0])
	for _, id := range h.woken {
		j := h.tickets[id]
		h.missed.Set(&j.slot, j, quantity.Never)
		j.trail.Searches++
		h.act(now, j, h.loop.Wake(now, &j.ticket), out)
	}
}

func (h *Home) letGo(id job.ID, p *protocol.Place, out *protocol.Out) {
	h.send(out, protocol.Message{Kind: protocol.LetGo, To: protocol.Address{Role: protocol.Node, ID: string(p.Node)}, Job: id,
		Token: p.Token})
}

func (h *Home) send(out *protocol.Out, m protocol.Message) {
	m.From = h.self
	out.Effects = append(out.Effects, m)
}
