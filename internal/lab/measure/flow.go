package measure

import (
	"time"

	"sluice.dev/sluice/internal/lab/swarm"
	"sluice.dev/sluice/internal/lab/swarm/world"
)

// Names of the metrics of short tasks on lean nodes, beside MessagesPerTask; docs/metrics.md defines each.
const (
	PlacedShare  = "placedShare"
	HopsMean     = "hopsMean"
	LandingP50   = "landingP50"
	LandingP99   = "landingP99"
	LeftoverUse  = "leftoverUse"
	ZoneFairness = "zoneFairness"
	// CPUNanosPerTask is set by who has a clock: without it a result says the same on every machine.
	CPUNanosPerTask = "cpuNanosPerTask"
)

var flowTable = []Info{
	{PlacedShare, "Tasks placed", Share, Higher},
	{HopsMean, "Nodes asked per task", Plain, Lower},
	{LandingP50, "Landing, p50", Seconds, Lower},
	{LandingP99, "Landing, p99", Seconds, Lower},
	{LeftoverUse, "Use of what rigid work leaves", Share, Higher},
	{ZoneFairness, "Evenness of zones (Jain)", Share, Higher},
	{CPUNanosPerTask, "Processor time per task, ns", Plain, Lower},
}

// FlowTable lists what is measured of short tasks, in the order in which it is given.
func FlowTable() []Info { return append([]Info(nil), flowTable...) }

// Flow collects what is measured of short tasks.
type Flow struct{ landing *histogram }

// NewFlow collects nothing yet.
func NewFlow() *Flow { return &Flow{newHistogram()} }

// Landed is a task of the window that was started so long after it arrived.
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
