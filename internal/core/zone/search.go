package zone

import (
	"math"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// The zone's side of the search for places (mechanism laminar): what a job says to it (search.Demand), and the zone's own word of itself, once a period.
// Where tickets search, nothing is offered in windows: the floor only tells classes and cuts pieces.

// seeker is a job as the search sees it.
type seeker entry

func (d *seeker) Name() job.ID         { return d.job.ID }
func (d *seeker) Life() job.Generation { return d.job.Generation }
func (d *seeker) HomeEpoch() uint32    { return d.job.Epoch }

// Wants is a place for the job's next piece: gangs are placed by the planner, and what may run no more than it does looks for nothing.
func (d *seeker) Wants(now quantity.Instant) (w search.Want, ok bool) {
	j, z := &d.job, d.zone
	if !j.Active() || market.Wide(j.Spec) || z.waits(now, j) != market.Eligible {
		return w, false
	}
	v := j.View()
	if v.Running >= max(1, j.Spec.Parallelism) || job.NextFree(0, j.Spec.Total, v.Committed, v.Claimed).Empty() {
		return w, false
	}
	fast, slow := d.speeds()
	w.Demand = atomizer.LeastDemand(&v, fast)
	if w.Class, ok = z.cfg.Search.Flow.Classes.Of(w.Demand); !ok {
		return w, false
	}
	longest := z.floor.Longest(&d.floor)
	w.Least, w.Most = atomizer.LeastWindow(&v, fast), atomizer.MostWindow(&v, slow)
	switch {
	case j.Spec.Kind != job.Rigid:
		w.Least, w.Most = min(w.Least, longest), min(w.Most, longest)
	case j.Spec.Walltime == 0:
		w.Least, w.Most = protocol.NoEnd, protocol.NoEnd
	}
	w.Priority = int16(min(max(j.Spec.Priority, math.MinInt16), math.MaxInt16))
	w.Born = max(j.Submitted, j.History().Served())
	w.Kind, w.Deadline = d.patience(w.Born)
	return w, true
}

// speeds are the highest and the lowest at which the job runs on slices that are known here, above 0.
func (d *seeker) speeds() (fast, slow int64) {
	for _, c := range d.zone.floor.Classes() {
		if s := c.SpeedOf(d.job.Spec); s > 0 {
			fast = max(fast, s)
			if slow == 0 || s < slow {
				slow = s
			}
		}
	}
	if fast == 0 {
		return reference, reference
	}
	return fast, slow
}

// reference is a speed where none is known.
const reference = 1000

// patience is what kind of ticket the job has, and when that gives up.
func (d *seeker) patience(born quantity.Instant) (flow.Kind, quantity.Instant) {
	until := quantity.Instant(0)
	if dl := d.job.Spec.Deadline; dl != 0 && dl != quantity.Never {
		until = dl
	}
	p := d.job.Spec.Patience
	if p == 0 {
		return flow.Lasting, until
	}
	if t := born.Add(p); until == 0 || t < until {
		until = t
	}
	if p <= d.zone.cfg.Search.Flow.Patience {
		return flow.Fleeting, until
	}
	return flow.Lasting, until
}

// Claim cuts the piece that fits a place which a ticket has found, and sells it.
func (d *seeker) Claim(now quantity.Instant, p *protocol.Place, out *protocol.Out) (why string, ok bool) {
	z, j := d.zone, &d.job
	c := z.floor.ClassOf(&p.Slice)
	start := max(p.Start, min(now, p.End))
	piece, refusal := z.floor.Fit(&d.floor, c, start, p.End)
	if refusal.Why != atomizer.Interested {
		d.floor.CountRefusal(refusal, now)
		return z.view.Sentence(j, &market.Cause{Reason: market.ReasonOf(refusal.Why), Refusal: refusal}), false
	}
	s := z.site(p.Slice.ID)
	s.memory = p.Slice.Capacity[0]
	a := &home.Ask{
		Job: j, Slice: p.Slice.ID, Node: p.Node, Range: piece.Range, Start: start, End: start.Add(piece.Length), Speed: c.SpeedOf(j.Spec), Demand: piece.Demand,
		Peak: peakOn(&p.Slice, j, piece.Range, piece.Demand, ""),
		Plan: protocol.Plan{Run: piece.Run, Wall: piece.Wall},
	}
	if !z.home.Claim(now, a, p.Token, out) {
		return "it was sold elsewhere meanwhile", false
	}
	return "", true
}

// Expire ends a job that has found no place within the patience that its owner gave. What has only a deadline ends by that.
func (d *seeker) Expire(now quantity.Instant, why flow.Why, out *protocol.Out) {
	if d.job.Spec.Patience == 0 {
		return
	}
	reason := "it found no place within its patience of " + d.job.Spec.Patience.String()
	if why != flow.PastDeadline && why != flow.OutOfPatience {
		reason += ": " + why.String()
	}
	d.zone.home.Expire(now, &d.job, reason, out)
}

// beat is when the zone says something of itself.
type beat struct {
	// last time that it looked at its nodes for this, and the next.
	last, next quantity.Instant
	// said is the last digest that was sent.
	said flow.Digest
}

// quiet is how many times in the time after which it counts as dead a zone says something though nothing has changed.
const quiet = 3

// beginSearch makes room for the tickets, where there are any.
func (z *Zone) beginSearch() {
	if z.cfg.Search != nil {
		z.index, _ = z.cfg.Search.Index(z.cfg.ID)
		z.search = search.NewHome(z.cfg.Search, z.self, z.index)
	}
}

// hear takes in what is said about tickets.
func (z *Zone) hear(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	if z.search == nil {
		return
	}
	g, from := z.search.Ground(), job.NodeID(in.From.ID)
	switch body := in.Body.(type) {
	case *protocol.Errand:
		if in.Kind == protocol.Search {
			g.Arrive(now, in.Job, body, out)
		} else {
			z.search.Returned(now, in.Job, body, out)
		}
	case *protocol.Finding:
		z.search.Landed(now, in.Job, body, out)
	case *protocol.Response:
		g.Probed(now, from, body, out)
	case *flow.Summary:
		g.Hear(from, body)
	}
}

// seek has tickets go on, and says what the zone has to say of itself. It returns when to look again.
func (z *Zone) seek(now quantity.Instant, out *protocol.Out) quantity.Instant {
	z.search.Tick(now, out)
	if next := z.nextBeat(now); z.beat.next == 0 || next < z.beat.next {
		z.beat.next = next
	}
	if z.beat.next <= now {
		dir := z.search.Ground().Directory()
		own := dir.Digest(now)
		z.search.Beat(now, &own, out)
		if now >= z.nextWord() || own.News(&z.beat.said) {
			z.beat.said = own
			for _, gate := range z.cfg.Gates.All() {
				z.home.Send(out, protocol.Message{Kind: protocol.ZoneDigest, To: gate, Body: &own})
			}
		}
		z.beat.last = now
		z.beat.next = z.nextBeat(now)
	}
	return min(z.beat.next, z.search.Next())
}

// nextWord is from when on the zone says something whatever it is, so that it counts as alive.
func (z *Zone) nextWord() quantity.Instant {
	return z.beat.said.At.Add(z.cfg.Search.Flow.Stale / quiet)
}

// nextBeat is when the zone may have something to say: with the next period if anything has changed or waits, else often enough to count as alive.
func (z *Zone) nextBeat(now quantity.Instant) quantity.Instant {
	f := &z.cfg.Search.Flow
	phase := z.cfg.Search.Phase(z.index) + z.cfg.Search.Lag
	if z.search.Parked() > 0 || z.search.Ground().Directory().Moved() || z.beat.last == 0 {
		return search.Beat(max(z.beat.last, now-1), f.Period, phase)
	}
	return search.Beat(max(z.beat.last, z.nextWord()-1), f.Period, phase)
}

// AuditSearch says what of the tickets does not fit together, empty if all does; for tests.
func (z *Zone) AuditSearch() string {
	if z.search == nil {
		return ""
	}
	return z.search.Audit()
}
