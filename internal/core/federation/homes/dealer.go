package homes

import (
	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// dealer draws zones by their digests (mechanism laminar): homes of jobs, and where tickets search next. Any number of dealers hear the
// same digests. Soft: after a start it draws nothing until a zone has sent one.
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

// class of a job's first piece.
func (d *dealer) class(spec *job.Spec) (flow.Class, bool) {
	v := atomizer.View{Spec: spec, Learned: &protocol.Learned{}}
	return d.cfg.Flow.Classes.Of(atomizer.LeastDemand(&v, reference))
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

// freeIn is what a zone said that it has free for a job, and whether it counts as alive.
func (d *dealer) freeIn(now quantity.Instant, zone job.ZoneID, spec *job.Spec) (free int, alive bool) {
	z, known := d.cfg.Index(zone)
	class, held := d.class(spec)
	if !known || !held {
		return 0, true
	}
	return int(d.splitter.Digest(z).Free[class]), d.splitter.Alive(now, z)
}
