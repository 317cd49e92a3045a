package seek

import (
	"slices"

	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/federation/visits"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Visit sends out the jobs that have something to win at nodes, and recalls the others. It returns when to look again.
func (z *Seek) Visit(now quantity.Instant, out *protocol.Out) quantity.Instant {
	if z.tour == nil {
		return quantity.Never
	}
	v := z.tour.visits
	for _, id := range v.Due(now) {
		if e := z.zone.Seeker(id); e != nil {
			z.tour.stale.Add(&e.away, e)
		}
	}
	z.tour.stale.Drain(func(e *Job) {
		switch {
		case z.visiting(now, e):
			v.Visit(now, e.of.ID, e.tours(), z.describe(now, e.of), z.tour.nodes, out)
		case e.visits != nil:
			v.Leave(e.visits, out)
		}
	})
	return v.Next()
}

// tours returns the record of a job's visits; the first call makes it.
func (e *Job) tours() *visits.Job {
	if e.visits == nil {
		e.visits = &visits.Job{}
	}
	return e.visits
}

// visiting says whether a job negotiates at nodes: one that searched and found nothing, does not give up soon, and may be sold something.
func (z *Seek) visiting(now quantity.Instant, e *Job) bool {
	if e.of.Spec.External || e.of.Spec.Patience != 0 {
		return false
	}
	_, wants := (*demand)(e).Wants(now)
	return wants && (e.search.State() == search.Parked || len(e.visits.Hosts()) > 0)
}

// Parked has a job that waits for room negotiate for time to come.
func (d *demand) Parked() {
	if t := d.in.tour; t != nil {
		t.stale.Add(&d.away, (*Job)(d))
	}
}

// describe is a job's description for a node's floor.
func (z *Seek) describe(now quantity.Instant, j *home.Job) *protocol.Visit {
	v, q := j.View(), j.Queue()
	own, queue, weight := z.zone.Use(now, j)
	return &protocol.Visit{
		Spec: j.Spec, Queue: q.Name, Weight: weight, Longest: q.MaxWindow, Submitted: j.Submitted, Served: j.History().Served(),
		Committed: slices.Clone(v.Committed), Claimed: slices.Clone(v.Claimed), Skipped: v.Skipped, Running: v.Running, Learned: v.Learned,
		Resume: v.Resume, Own: own, Others: queue, Avoids: j.Backoff().Avoided(),
	}
}

// Called answers a node's round for a job, or notes what became of its answer.
func (z *Seek) Called(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	e := z.zone.Seeker(in.Job)
	if z.tour == nil || e == nil || in.From.Role != protocol.Node {
		return
	}
	v := z.tour.visits
	if e.visits == nil {
		return // it has visited nobody in this life of the zone
	}
	switch in.Kind {
	case protocol.Announce:
		view := e.of.View()
		if !z.visiting(now, e) {
			view.Running = e.of.Spec.Parallelism // it says that there is nothing it wants
		}
		v.Answer(now, e.visits, &view, in, out)
	case protocol.Told:
		v.Told(e.visits, in)
	case protocol.Parting:
		v.Parted(now, e.visits, in)
		z.tour.stale.Add(&e.away, e)
	}
}

// Prize claims what a job has won at a node, if its work is still for sale; else the node is told.
func (z *Seek) Prize(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	p, ok := in.Body.(*protocol.Prize)
	if !ok {
		return
	}
	e := z.zone.Seeker(in.Job)
	if e == nil || z.tour == nil || !sound(e.of, in.From, p) || !z.claim(now, e.of, p, out) {
		z.zone.Send(out, protocol.Message{Kind: protocol.LetGo, To: in.From, Job: in.Job, Token: p.Token})
		return
	}
	z.tour.visits.Won(e.tours(), in.From)
	z.tour.visits.Settled(e.visits, in.From, p.Plan.Round)
}

// sound reports whether a prize can be true: work of the job, on time of the sending node, at no price.
func sound(j *home.Job, from protocol.Address, p *protocol.Prize) bool {
	whole := job.Range{To: j.Spec.Total}
	return from == protocol.Address{Role: protocol.Node, ID: string(p.Node)} && p.Start < p.End && p.Speed > 0 && !p.Range.Empty() &&
		whole.Contains(p.Range) && (p.Bid == nil || p.Bid.Price == 0)
}

// claim sells a job what it has won. A grant that arrives twice is claimed already, and stays.
func (z *Seek) claim(now quantity.Instant, j *home.Job, p *protocol.Prize, out *protocol.Out) bool {
	if c := j.ClaimSet().Claim(p.Token); c != nil {
		return c.Node == p.Node
	}
	v := j.View()
	if !j.Active() || z.zone.Waits(now, j) != explain.Eligible || v.Running >= max(1, v.Parallelism()) || v.Claimed.Overlaps(p.Range) ||
		p.End <= now {
		return false
	}
	z.zone.Remember(&p.Slice)
	plan := p.Plan
	plan.Residence = j.Spec.Residence(j.ID)
	return z.zone.Claim(now, &home.Ask{Job: j, Sale: protocol.Sale{Node: p.Node, Placement: protocol.Placement{Slice: p.Slice.ID,
		Range: p.Range, Start: p.Start, End: p.End, Demand: p.Demand, Peak: z.zone.Peak(&p.Slice, j, p.Range, p.Demand, p.Plan.Option),
		Plan: plan}, Speed: p.Speed, Bid: p.Bid}}, p.Token, out)
}
