package scenario

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/workload/compose"
)

func (s *Scenario) model(v strict.Value) {
	o := v.Object("network", "timeError", "memoryError")
	s.Model.TimeError, s.Model.MemoryError = errorOf(o.Get("timeError"), compose.Error{}), errorOf(o.Get("memoryError"), compose.Error{})
	n := o.Get("network").Object("delay", "jitter", "loss", "duplication")
	s.Model.Network = Network{
		Delay:       n.Get("delay").Duration(0, time.Hour, 0),
		Jitter:      n.Get("jitter").Duration(0, time.Hour, 0),
		Loss:        n.Get("loss").Fraction(1_000_000, 0, 900_000, 0),
		Duplication: n.Get("duplication").Fraction(1_000_000, 0, 1_000_000, 0),
	}
}

// faults reads lines such as {at: 1h, kill: node, node: n-1, for: 5m} and {every: 6h, cut: network, for: 30s}.
func (s *Scenario) faults(v strict.Value) {
	for _, e := range v.List("a list of faults such as [{at: 1h, kill: node, node: n-1, for: 5m}]", 10_000) {
		s.fault(e)
	}
}

func (s *Scenario) fault(e strict.Value) {
	o := e.Object("at", "every", "kill", "cut", "skew", "drain", "node", "zone", "gate", "for", "keep", "drift")
	var f Fault
	verbs := 0
	if k := o.Get("kill"); k.Given() {
		f.Kind = []string{KillNode, KillDaemon, KillZone, KillGate}[k.Choice(KillNode, KillDaemon, KillZone, KillGate)]
		verbs++
	}
	if c := o.Get("cut"); c.Given() {
		c.Choice(CutNode)
		f.Kind = CutNode
		verbs++
	}
	if k := o.Get("skew"); k.Given() {
		f.Kind, f.Offset = SkewNode, k.Duration(0, time.Hour, 0)
		verbs++
	}
	if d := o.Get("drain"); d.Given() {
		d.Choice(KillZone)
		f.Kind = DrainZone
		verbs++
	}
	if verbs != 1 {
		e.Wrong("does not say what happens; want exactly one of kill: node, kill: daemon, kill: zone, kill: gate, cut: network, skew: " +
			"2s and drain: zone")
	}
	when(e, o, &f)
	s.struck(e, o, &f)
	s.Faults = append(s.Faults, f)
}

// when reads when a fault comes, for how long, and how.
func when(e strict.Value, o strict.Object, f *Fault) {
	switch at, every := o.Get("at"), o.Get("every"); {
	case at.Given() == every.Given():
		e.Wrong("does not say when; want exactly one of at: 1h (once) and every: 6h (on average, at random)")
	default:
		f.At, f.Every = moment(at, 0), every.Duration(time.Second, MaxSpan, 0)
	}
	least, or := time.Millisecond, 10*time.Second
	if f.Kind == SkewNode {
		least, or = 0, 0 // for good
	}
	f.For = o.Get("for").Duration(least, MaxSpan, or)
	if k := o.Get("keep"); k.Given() {
		f.Keep = k.Boolean(false)
		if f.Kind != KillNode {
			k.Wrong("only what runs on a killed node is kept or lost; leave it out")
		}
	}
	if d := o.Get("drift"); d.Given() {
		f.Drift = d.Fraction(1_000_000, 0, 100_000, 0)
		if f.Kind != SkewNode {
			d.Wrong("only a clock drifts: give skew too, or leave it out")
		}
	}
	if f.Kind == DrainZone {
		for _, k := range []string{"every", "for"} {
			if v := o.Get(k); v.Given() {
				v.Wrong("a zone is drained once and for good; leave it out")
			}
		}
	}
}

// struck reads whom a fault strikes.
func (s *Scenario) struck(e strict.Value, o strict.Object, f *Fault) {
	for _, kind := range []string{KillZone, KillGate} {
		if v := o.Get(kind); f.Kind == kind || v.Given() || f.Kind == DrainZone && kind == KillZone {
			s.struckAmong(e, v, f, kind)
			if n := o.Get("node"); n.Given() {
				n.Wrong("a %s is meant; leave the node out", kind)
			}
			return
		}
	}
	switch n := o.Get("node"); {
	case !n.Given() && f.Every == 0 && f.Kind != KillDaemon && f.Kind != "":
		e.Wrong("does not say which node; give node: NAME")
	case n.Given() && f.Every > 0:
		n.Wrong("random faults strike every node; leave it out")
	case n.Given():
		name := n.Label("")
		i := slices.IndexFunc(s.Nodes, func(x Node) bool { return string(x.ID) == name })
		if i < 0 && name != "" {
			n.Wrong("there is no node %q; %s", name, strict.Hint(name, s.nodeNames()))
			return
		}
		if i >= 0 {
			f.Node = s.Nodes[i].ID
		}
	}
}

// struckAmong reads which zone or gate a fault strikes.
func (s *Scenario) struckAmong(e, v strict.Value, f *Fault, kind string) {
	var names []string
	for i := range s.Zones {
		names = append(names, string(s.ZoneName(i)))
	}
	if kind == KillGate {
		names = nil
		for _, id := range s.GateNames() {
			names = append(names, string(id))
		}
	}
	switch {
	case f.Kind != kind && (f.Kind != DrainZone || kind != KillZone):
		v.Wrong("only kill: %s strikes a %s; leave it out", kind, kind)
	case v.Given() && f.Every > 0:
		v.Wrong("random faults strike every %s; leave it out", kind)
	case kind == KillGate && len(names) == 0: // there is one, without a name
		if v.Given() {
			v.Wrong("there is one gate, which has no name; leave it out")
		}
	case !v.Given() && f.Every == 0:
		e.Wrong("does not say which %s; give %s: NAME, such as %s", kind, kind, names[0])
	case v.Given():
		name := v.Label("")
		if name != "" && !slices.Contains(names, name) {
			v.Wrong("there is no %s %q; %s", kind, name, strict.Hint(name, names[:min(20, len(names))]))
		}
		if f.Zone = job.ZoneID(name); kind == KillGate {
			f.Zone, f.Gate = "", job.GateID(name)
		}
	}
}

// nodeNames lists the first nodes, for messages.
func (s *Scenario) nodeNames() (out []string) {
	for _, n := range s.Nodes[:min(20, len(s.Nodes))] {
		out = append(out, string(n.ID))
	}
	return out
}
