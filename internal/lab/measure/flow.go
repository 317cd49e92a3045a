package measure

import (
	"time"

	"sluice.dev/sluice/internal/lab/swarm"
	"sluice.dev/sluice/internal/lab/swarm/world"
)

// Flow collects what is measured of short tasks.
type Flow struct{ landing *histogram }

// NewFlow collects nothing yet.
func NewFlow() *Flow { return &Flow{newHistogram()} }

// Landed is a task of the window that started this long after it arrived.
func (f *Flow) Landed(after time.Duration) { f.landing.add(after) }

// Set adds the metrics of a run that is over.
func (f *Flow) Set(m *Metrics, c *world.Counts, kinds []swarm.MessageKind) {
	q := f.landing.quantiles(0.5, 0.99)
	var left, used int64
	var sum, squares, zones float64
	for _, z := range c.Zones {
		left, used = left+z.Leftover, used+z.Used
		if z.Leftover > 0 {
			x := float64(z.Used) / float64(z.Leftover)
			sum, squares, zones = sum+x, squares+x*x, zones+1
		}
	}
	m.Set(PlacedShare, float64(c.Placed)/float64(c.Arrived))
	m.Set(HopsMean, float64(c.Hops(kinds))/float64(c.Starts))
	m.Set(LandingP50, q[0])
	m.Set(LandingP99, q[1])
	m.Set(MessagesPerTask, float64(c.Messages())/float64(c.Starts))
	m.Set(LeftoverUse, float64(used)/float64(left))
	m.Set(ZoneFairness, sum*sum/(zones*squares))
}
