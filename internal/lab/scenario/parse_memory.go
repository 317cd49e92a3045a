package scenario

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/joint"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/oom"
	"sluice.dev/sluice/internal/lab/sim"
)

// airlockAlone is the survivor of that name: the nodes act.
const airlockAlone = "airlock"

// Survivors are the choices of who acts where memory runs out: the nodes, or others' tools.
func Survivors() []string {
	names := []string{airlockAlone}
	for _, k := range oom.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

// survivor lets the one of that place in Survivors act.
func (m *HostMemory) survivor(i int) {
	m.Killer = oom.Named(Survivors()[i])
}

// mostStorms bounds a scenario's storms, with each repetition counted.
const mostStorms = 100_000

// memory reads the hosts' memory and its storms.
func (s *Scenario) memory(v strict.Value) {
	if !v.Given() {
		return
	}
	o := v.Object("host", "park", "pace", "hot", "survival", "order", "outgrown", "excess", "correlation", "spread", "storms")
	m := &HostMemory{}
	m.Capacity = o.Need("host", "256Gi").Bytes(1<<20, GiB)
	m.Room = o.Get("park").Bytes(0, 0)
	m.Pace = o.Get("pace").Bytes(1<<20, GiB)
	m.Hot = o.Get("hot").Boolean(false)
	m.survivor(o.Get("survival").Choice(Survivors()...))
	m.Spread = o.Get("spread").Duration(0, MaxSpan, 0)
	m.PriorityFirst = o.Get("order").Choice("class", "priority") == 1
	if m.PriorityFirst {
		m.Airlock.Order = airlock.PriorityFirst
	}
	if m.OutgrownAlike = o.Get("outgrown").Choice("first", "alike") == 1; m.OutgrownAlike {
		m.Airlock.Outgrown = airlock.OutgrownAlike
	}
	m.Joint = excess(o, m.Capacity)
	for _, e := range o.Get("storms").List("a list of storms such as [{at: 10m, shape: leak, size: 40Gi, for: 1m}]", 10_000) {
		s.storm(e, m)
	}
	s.Memory = m
}

// excess reads the limit on joint excess: none where it is left out.
func excess(o strict.Object, memory quantity.Amount) (c joint.Config) {
	chance, correlation := o.Get("excess"), o.Get("correlation")
	if !chance.Given() {
		if correlation.Given() {
			correlation.Wrong("says how peaks rise together, and nothing is held against that; give excess too, such as 0.01")
		}
		return c
	}
	c.Memory, c.Excess = memory, chance.Fraction(1_000_000, 1, 500_000, 10_000)
	switch correlation.Text("learned, independent, or a number from 0 to 1", "learned") {
	case "learned":
	case "independent":
		c.Given = true
	default:
		c.Given, c.Correlation = true, correlation.Fraction(joint.Whole, 0, joint.Whole, 0)
	}
	return c
}

// storm reads a line such as {at: 10m, every: 1h, node: n-1, shape: leak, size: 40Gi, for: 1m}.
func (s *Scenario) storm(e strict.Value, m *HostMemory) {
	o := e.Object("at", "every", "node", "shape", "size", "for")
	x := sim.Storm{
		Shape: sim.Shape(o.Need("shape", "leak").Choice(sim.ShapeNames()...)), Size: o.Need("size", "40Gi").Bytes(1<<20, GiB),
		For: o.Get("for").Duration(time.Second, MaxSpan, time.Minute),
	}
	nodes := s.Nodes
	if n := o.Get("node"); n.Given() {
		name := n.Label("")
		i := slices.IndexFunc(s.Nodes, func(x Node) bool { return string(x.ID) == name })
		if i < 0 {
			n.Wrong("there is no node %q; %s", name, strict.Hint(name, s.nodeNames()))
			return
		}
		nodes = s.Nodes[i : i+1]
	}
	every := o.Get("every").Duration(time.Second, MaxSpan, 0)
	for at := moment(o.Need("at", "10m"), 0); ; at = at.Add(every) {
		for i := range nodes {
			if len(m.Storms) == mostStorms {
				e.Wrong("makes more than %d storms; let them come less often", mostStorms)
				return
			}
			x.At, x.Node = at, nodes[i].ID
			m.Storms = append(m.Storms, x)
		}
		if every == 0 || at.Add(every) >= s.Window.Until {
			return
		}
	}
}
