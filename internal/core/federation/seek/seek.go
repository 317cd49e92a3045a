// Package seek is a zone's side of the search for places (mechanism laminar): its jobs' tickets, the zone's own digest once a period, and
// the markets at nodes, where a job with a parked ticket negotiates for future time, as long as it has work left to sell. A job looks for a
// place exactly while it may run more than it does; nothing is offered in windows, and the floor only tells classes and cuts pieces.
package seek

import (
	"math"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/federation/visits"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Zone is what its seekers ask of theirs.
type Zone interface {
	// Seeker is what Make made for the job of this name, nil if there is none.
	Seeker(id job.ID) *Job
	// Waits is why a job is not asked at all; Sentence says it for people, and Refused notes why nothing of it fits.
	Waits(now quantity.Instant, j *home.Job) explain.Reason
	Sentence(j *home.Job, c *explain.Cause) string
	Refused(now quantity.Instant, j *home.Job, why atomizer.Refusal)
	// Use is the memory-time that a job and its queue have had, with the queue's weight.
	Use(now quantity.Instant, j *home.Job) (own, queue, weight int64)
	// Claim sells a place under the token of its node, Peak is the probable peak of a piece there, Remember notes the slice. Expire ends a
	// job.
	Claim(now quantity.Instant, a *home.Ask, t job.Token, out *protocol.Out) bool
	Peak(s *protocol.Slice, j *home.Job, r job.Range, demand trp.Vector, option string) trp.Peak
	Remember(s *protocol.Slice)
	Expire(now quantity.Instant, j *home.Job, reason string, out *protocol.Out)
	Send(out *protocol.Out, m protocol.Message)
}

// Seek looks for places for the jobs of one zone.
type Seek struct {
	cfg   *search.Config
	gates protocol.Gates
	zone  Zone
	floor *market.Floor
	// home has the tickets of jobs; index is the zone's number there.
	home  *search.Home
	index flow.ZoneID
	beat  beat
	// tour is where jobs negotiate at nodes; nil where they do not.
	tour *tour
}

// New makes room for the tickets of a zone, and for visits where nodes have markets.
func New(cfg *search.Config, self protocol.Address, gates protocol.Gates, zone Zone, floor *market.Floor, markets bool) *Seek {
	z := &Seek{cfg: cfg, gates: gates, zone: zone, floor: floor}
	z.index, _ = cfg.Index(job.ZoneID(self.ID))
	z.home = search.NewHome(cfg, self, z.index)
	if !markets {
		return z
	}
	z.tour = &tour{visits: visits.New(visits.Config{Self: self, Seed: cfg.Flow.Seed ^ prng.Name(self.ID)})}
	for _, id := range cfg.Zones[z.index].Nodes {
		z.tour.nodes = append(z.tour.nodes, protocol.Address{Role: protocol.Node, ID: string(id)})
	}
	return z
}

// Job is the record of a job that seeks a place.
type Job struct {
	in     *Seek
	of     *home.Job
	market *index.Job
	search search.Job
	// visits are where it negotiates at nodes, nil until it does; away: its description there must be sent again.
	visits *visits.Job
	away   dirty.Mark
}

// Make begins to keep a job, with what the floor keeps of it.
func (z *Seek) Make(e *Job, of *home.Job, m *index.Job) {
	e.in, e.of, e.market = z, of, m
	e.search.Demand = (*demand)(e)
}

// Resume is called once, when the last fact is folded.
func (z *Seek) Resume(now quantity.Instant) { z.home.Resume(now) }

// Ground is what any search meets in the zone.
func (z *Seek) Ground() *search.Ground { return z.home.Ground() }

// Came notes that a job is at home here from now on.
func (e *Job) Came() { e.search.New = true }

// Invalidate notes that what a job's ticket is to look for may have changed.
func (z *Seek) Invalidate(e *Job) {
	z.home.Invalidate(&e.search)
	if z.tour != nil {
		z.tour.stale.Add(&e.away, e)
	}
}

// Freed says that what was sold to a job under a token is over.
func (z *Seek) Freed(e *Job, t job.Token) { z.home.Freed(&e.search, t) }

// Leased says that a node does what was claimed there, if the job's ticket has found that place.
func (z *Seek) Leased(e *Job, t job.Token) { z.home.Leased(&e.search, t) }

// tour is what the zone keeps of where its jobs negotiate.
type tour struct {
	visits *visits.Visits
	// stale jobs may have a changed description.
	stale dirty.Set[*Job]
	nodes []protocol.Address
}

// demand is a job as the search sees it (search.Demand).
type demand Job

func (d *demand) Name() job.ID         { return d.of.ID }
func (d *demand) Life() job.Generation { return d.of.Generation }
func (d *demand) HomeEpoch() uint32    { return d.of.Epoch }

// Wants is a place for the job's next piece: gangs are placed by the planner, and what may run no more than it does looks for nothing.
func (d *demand) Wants(now quantity.Instant) (w search.Want, ok bool) {
	j, z := d.of, d.in
	if !j.Active() || index.Wide(j.Spec) || z.zone.Waits(now, j) != explain.Eligible {
		return w, false
	}
	v := j.View()
	if v.Running >= max(1, v.Parallelism()) || job.NextFree(0, j.Spec.Total, v.Committed, v.Claimed).Empty() {
		return w, false
	}
	fast, slow := d.speeds()
	w.Demand = atomizer.LeastDemand(&v, fast)
	if w.Class, ok = z.cfg.Flow.Classes.Of(w.Demand); !ok {
		return w, false
	}
	longest := z.floor.Estimator().Longest(d.market)
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
func (d *demand) speeds() (fast, slow int64) {
	for _, c := range d.in.floor.Classes() {
		if s := c.SpeedOf(d.of.Spec); s > 0 {
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
func (d *demand) patience(born quantity.Instant) (flow.Kind, quantity.Instant) {
	until := quantity.Instant(0)
	if dl := d.of.Spec.Deadline; dl != 0 && dl != quantity.Never {
		until = dl
	}
	p := d.of.Spec.Patience
	if p == 0 {
		return flow.Lasting, until
	}
	if t := born.Add(p); until == 0 || t < until {
		until = t
	}
	if p <= d.in.cfg.Flow.Patience {
		return flow.Fleeting, until
	}
	return flow.Lasting, until
}

// Claim cuts the piece that fits a place which a ticket has found, and sells it.
func (d *demand) Claim(now quantity.Instant, p *protocol.Place, out *protocol.Out) (why string, ok bool) {
	z, j := d.in, d.of
	c := z.floor.ClassOf(&p.Slice)
	start := max(p.Start, min(now, p.End))
	piece, refusal := z.floor.Estimator().Fit(d.market, c, start, p.End)
	if refusal.Why != atomizer.Interested {
		z.zone.Refused(now, j, refusal)
		return z.zone.Sentence(j, &explain.Cause{Reason: explain.ReasonOf(refusal.Why), Refusal: refusal}), false
	}
	z.zone.Remember(&p.Slice)
	a := &home.Ask{Job: j, Sale: protocol.Sale{Node: p.Node, Placement: protocol.Placement{Slice: p.Slice.ID, Range: piece.Range,
		Start: start, End: start.Add(piece.Length), Demand: piece.Demand, Peak: z.zone.Peak(&p.Slice, j, piece.Range, piece.Demand, ""),
		Plan: protocol.Plan{Run: piece.Run, Wall: piece.Wall, Residence: j.Spec.Residence(j.ID)}}, Speed: c.SpeedOf(j.Spec)}}
	if !z.zone.Claim(now, a, p.Token, out) {
		return "it was sold elsewhere meanwhile", false
	}
	return "", true
}

// Expire ends a job that has found no place within the patience that its owner gave. What has only a deadline ends by that.
func (d *demand) Expire(now quantity.Instant, why flow.Why, out *protocol.Out) {
	if d.of.Spec.Patience == 0 {
		return
	}
	reason := "it found no place within its patience of " + d.of.Spec.Patience.String()
	if why != flow.PastDeadline && why != flow.OutOfPatience {
		reason += ": " + why.String()
	}
	d.in.zone.Expire(now, d.of, reason, out)
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

// Hear handles messages about tickets.
func (z *Seek) Hear(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	g, from := z.home.Ground(), job.NodeID(in.From.ID)
	switch body := in.Body.(type) {
	case *protocol.Errand:
		if in.Kind == protocol.Search {
			g.Arrive(now, in.Job, body, out)
		} else {
			z.home.Returned(now, in.Job, body, out)
		}
	case *protocol.Finding:
		z.home.Landed(now, in.Job, body, out)
	case *protocol.Response:
		g.Probed(now, from, body, out)
	case *flow.Summary:
		g.Hear(from, body)
	}
}

// Tick advances tickets, and sends what is due. It returns when to look again.
func (z *Seek) Tick(now quantity.Instant, out *protocol.Out) quantity.Instant {
	z.home.Tick(now, out)
	if next := z.nextBeat(now); z.beat.next == 0 || next < z.beat.next {
		z.beat.next = next
	}
	if z.beat.next <= now {
		dir := z.home.Ground().Directory()
		own := dir.Digest(now)
		z.home.Beat(now, &own, out)
		if now >= z.nextWord() || own.News(&z.beat.said) {
			z.beat.said = own
			for _, gate := range z.gates.All() {
				z.zone.Send(out, protocol.Message{Kind: protocol.ZoneDigest, To: gate, Body: &own})
			}
		}
		z.beat.last = now
		z.beat.next = z.nextBeat(now)
	}
	return min(z.beat.next, z.home.Next())
}

// nextWord is from when on the zone says something whatever it is, so that it counts as alive.
func (z *Seek) nextWord() quantity.Instant {
	return z.beat.said.At.Add(z.cfg.Flow.Stale / quiet)
}

// nextBeat is when the zone's next digest may be due: with the next period if anything has changed or waits, else often enough to count as
// alive.
func (z *Seek) nextBeat(now quantity.Instant) quantity.Instant {
	f := &z.cfg.Flow
	phase := z.cfg.Phase(z.index) + z.cfg.Lag
	if z.home.Parked() > 0 || z.home.Ground().Directory().Moved() || z.beat.last == 0 {
		return search.Beat(max(z.beat.last, now-1), f.Period, phase)
	}
	return search.Beat(max(z.beat.last, z.nextWord()-1), f.Period, phase)
}

// Audit says what of the tickets does not fit together, empty if all does; for tests.
func (z *Seek) Audit() string { return z.home.Audit() }
