package gate

import (
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// dealer draws zones by what they say of themselves (mechanism laminar): homes of jobs, and where tickets search next. It is one of any number that hear
// the same digests, and all of it is soft: after a start it draws nothing until a zone has said something.
type dealer struct {
	cfg      *search.Config
	loop     *flow.Search
	splitter *flow.Splitter
	rebuilt  quantity.Instant
	// places in the gate's configuration, by number.
	places []int
}

func newDealer(cfg *search.Config, places map[job.ZoneID]int) *dealer {
	d := &dealer{cfg: cfg, loop: flow.NewSearch(&cfg.Flow), splitter: flow.NewSplitter(&cfg.Flow, len(cfg.Zones))}
	for i := range cfg.Zones {
		d.places = append(d.places, places[cfg.Zones[i].ID])
	}
	return d
}

// draw is the next zone of a ticket; false if none is alive. Tables are made anew once a period.
func (d *dealer) draw(now quantity.Instant, t *flow.Ticket) (flow.ZoneID, bool) {
	if d.rebuilt == 0 || now.Sub(d.rebuilt) >= d.cfg.Flow.Period {
		d.rebuilt = now
		d.splitter.Rebuild(now)
	}
	z, ok := d.splitter.Draw(t)
	if !ok {
		d.rebuilt = 0 // the first word of a zone counts at once
	}
	return z, ok
}

// home draws a zone for the first ticket of a job; false if none is alive, or the job's first piece is of no class.
func (d *dealer) home(now quantity.Instant, spec *job.Spec, id job.ID, of job.Generation, epoch uint32) (flow.ZoneID, bool) {
	class, ok := d.class(spec)
	if !ok {
		return 0, false
	}
	return d.draw(now, &flow.Ticket{ID: d.cfg.Name(id, of, uint64(epoch-1)), Class: class})
}

// reference is the speed that run times are declared for.
const reference = 1000

// redraw sends a ticket to the next zone, or home if none is alive.
func (g *Gate) redraw(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	e, ok := in.Body.(*protocol.Errand)
	if g.dealer == nil || !ok || e.Phase != flow.Drawing || int(e.Home) >= len(g.dealer.cfg.Zones) || int(e.Class) >= len(g.dealer.cfg.Flow.Classes) {
		return
	}
	d := g.dealer
	if z, ok := d.draw(now, &e.Ticket); ok {
		g.send(out, protocol.Message{Kind: protocol.Search, To: d.cfg.At(z), Job: in.Job, Body: e})
		return
	}
	back := *e
	d.loop.Stranded(now, &back.Ticket)
	g.send(out, protocol.Message{Kind: protocol.Back, To: d.cfg.At(e.Home), Job: in.Job, Body: &back})
}

// digested takes in what a zone says of itself, and of no other zone. Jobs that wait for a home may have one now.
func (g *Gate) digested(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	d, ok := in.Body.(*flow.Digest)
	if !ok || g.dealer == nil || int(d.Zone) >= len(g.dealer.cfg.Zones) || in.From != g.dealer.cfg.At(d.Zone) {
		return
	}
	// Which zones could run a job follows from what its nodes have reported. A digest is news for one that has no home if it makes drawing possible at all.
	silent := len(g.homeless) > 0 && !g.dealer.anyAlive(now)
	if g.dealer.splitter.Hear(now, d) && silent {
		g.settle(now, out)
	}
}

// anyAlive says whether a zone counts as alive.
func (d *dealer) anyAlive(now quantity.Instant) bool {
	for z := range d.cfg.Zones {
		if d.splitter.Alive(now, flow.ZoneID(z)) {
			return true
		}
	}
	return false
}

// drawByDigests draws a job's home by what the zones say of themselves. A zone that could not run all of the job, as far as is known, is not drawn: then
// the kinds of slices alone decide.
func (g *Gate) drawByDigests(now quantity.Instant, spec *job.Spec, id job.ID, of job.Generation, epoch uint32) job.ZoneID {
	z, ok := g.dealer.home(now, spec, id, of, epoch)
	if !ok {
		return ""
	}
	sums, at := g.chancesOf(spec), g.dealer.places[z]
	if sums[at] > 0 && (at == 0 || sums[at] > sums[at-1]) {
		return g.cfg.Zones[at].ID
	}
	return g.drawFrom(sums, id, of, epoch)
}

// Drawn completes what a zone says of the search in it with what the gate has heard, and how often it draws the zone.
func (g *Gate) Drawn(now quantity.Instant, zone job.ZoneID, s *status.Search) {
	if g.dealer == nil || s == nil {
		return
	}
	z, known := g.dealer.cfg.Index(zone)
	heard := g.dealer.splitter.Heard(z)
	if s.Age = -1; known && heard != 0 {
		s.Age = now.Sub(heard)
	}
	whole := int64(g.dealer.splitter.Zones()) << 32
	for c := range s.Rooms {
		s.Rooms[c].Share = quantity.MulDiv(int64(g.dealer.splitter.ShareNow(now, flow.Class(c), z)), 1_000_000, whole)
	}
}
