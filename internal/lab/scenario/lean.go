package scenario

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/swarm"
	leanworld "sluice.dev/sluice/internal/lab/swarm/world"
)

const (
	// maxLeanZones and maxLeanNodes in each bound a world of lean nodes: what fits into 4 GB.
	maxLeanZones, maxLeanNodes = 2_000, 1_000
	// leastLeanNodes have a slice of every class.
	leastLeanNodes = 4
)

// swarm reads a world of lean nodes, which stands instead of a cluster and its work.
func (s *Scenario) swarm(v strict.Value) {
	o := v.Object("zones", "nodes", "gates", "digest", "decision", "rigid", "tasks", "network", "stragglers", "faults")
	w := leanworld.Usual(int(o.Need("zones", "10").Integer(1, maxLeanZones, 10)), swarm.Kind{}, 0)
	w.Cluster.PerZone = int(o.Get("nodes").Integer(leastLeanNodes, maxLeanNodes, 100))
	w.Gates = int(o.Get("gates").Integer(1, 64, int64(w.Gates)))
	w.Period = o.Get("digest").Duration(time.Millisecond, time.Minute, w.Period)
	w.Decision = o.Get("decision").Duration(0, time.Minute, w.Decision)

	r := o.Get("rigid").Object("share", "width", "mean")
	w.Rigid.Share = r.Get("share").Fraction(leanworld.Million, 0, 900_000, w.Rigid.Share)
	w.Rigid.Width = int(r.Get("width").Integer(1, leanworld.MaxWidth, int64(w.Rigid.Width)))
	w.Rigid.Mean = r.Get("mean").Duration(time.Millisecond, time.Hour, w.Rigid.Mean)

	f, t := &w.Flow, o.Get("tasks").Object("load", "mean", "long", "longMean", "patience", "longPatience", "batch", "arrivals")
	f.Load = t.Get("load").Fraction(leanworld.Million, 1, 10*leanworld.Million, 900_000)
	f.Mean = t.Get("mean").Duration(time.Millisecond, time.Hour, f.Mean)
	f.LongShare = t.Get("long").Fraction(leanworld.Million, 0, leanworld.Million, f.LongShare)
	f.LongMean = t.Get("longMean").Duration(time.Millisecond, time.Hour, f.LongMean)
	f.Patience = t.Get("patience").Duration(time.Millisecond, time.Hour, f.Patience)
	f.LongPatience = t.Get("longPatience").Duration(time.Millisecond, time.Hour, f.LongPatience)
	f.Batch = int(t.Get("batch").Integer(1, 10_000, 1))

	s.leanArrivals(t, f)

	n := o.Get("network").Object("delay", "jitter", "loss")
	w.Network.Delay = n.Get("delay").Duration(0, time.Minute, w.Network.Delay)
	w.Network.Jitter = n.Get("jitter").Duration(0, time.Minute, 0)
	w.Network.Loss = n.Get("loss").Fraction(leanworld.Million, 0, 900_000, 0)

	x := o.Get("stragglers").Object("share", "slow")
	w.Faults.Stragglers = x.Get("share").Fraction(leanworld.Million, 0, leanworld.Million, 0)
	w.Faults.Slow = 1000 * x.Get("slow").Integer(1, 1000, 5)

	for _, e := range o.Get("faults").List("a list of faults such as [{at: 30s, zone: 0, for: 10s}]", 10_000) {
		o := e.Object("at", "zone", "for", "cut")
		w.Faults.Zones = append(w.Faults.Zones, leanworld.ZoneFault{
			At: moment(o.Need("at", "30s"), 0), Zone: int32(o.Need("zone", "0").Integer(0, int64(w.Cluster.Zones)-1, 0)),
			For: o.Need("for", "10s").Duration(time.Millisecond, MaxSpan, time.Second), Cut: o.Get("cut").Boolean(false),
		})
	}
	s.Swarm = &w
}

// readLean reads a whole scenario of lean nodes.
func (s *Scenario) readLean(o strict.Object) {
	for _, key := range []string{"cluster", "host", "queues", "market", "flow", "workload", "model", "memory", "faults"} {
		if x := o.Get(key); x.Given() {
			x.Wrong("is of scenarios with a cluster; one with lean nodes (swarm) says all of that there")
		}
	}
	s.Settings.Use = used(o.Get("mechanism").Object("use").Get("use"), "laminar")
	window := o.Need("window", "{warmup: 60s, until: 2m}")
	s.window(window)
	s.seeds(o.Get("seeds"))
	s.swarm(o.Get("swarm"))
	s.expect(o.Get("expect"))
	if window.Given() && s.Window.Until == quantity.Never {
		window.Wrong("says no end, and tasks arrive until then; write for example {warmup: 60s, until: 2m}")
	}
	s.Swarm.From, s.Swarm.Until = s.Window.Warmup, s.Window.Until
}
