package pool

import "sluice.dev/sluice/internal/lab/planner"

// place finds the node of a task that lies on one, and its device if it wants only one; none if it does not fit.
func (p *Pool) place(t *planner.Task, class int) (at, d int32) {
	switch {
	case t.Devices == 0:
		return p.hostFor(t), none
	case t.Devices > 1:
		return p.nodeFor(t, class), none
	case t.Share < planner.Whole:
		if d = p.partFor(t, class); d != none {
			return p.devices[d].node, d
		}
	}
	if d = p.wholeFor(t, class); d != none {
		return p.devices[d].node, d
	}
	return none, none
}

// host says whether node n has the processors and memory that t wants.
func (p *Pool) host(n int32, t *planner.Task) bool {
	h := &p.nodes[n]
	return h.unlimited || t.Spread || t.CPU <= h.cpu && t.Memory <= h.memory
}

// hostFor is the first node for a task without devices.
func (p *Pool) hostFor(t *planner.Task) int32 {
	for n := range p.nodes {
		if p.host(int32(n), t) {
			return int32(n)
		}
	}
	return none
}

// nodeFor is the node for a gang: the one with the fewest free devices that has enough.
func (p *Pool) nodeFor(t *planner.Task, class int) int32 {
	if t.Devices > p.count[class] {
		return none
	}
	if p.crowd.off() {
		p.crowd.build(p)
	}
	return p.crowd.find(class, t.Devices, func(n int32) bool { return p.host(n, t) })
}

// partFor is the device with the least room that has enough among those in use.
func (p *Pool) partFor(t *planner.Task, class int) int32 {
	best, room := int32(none), int16(planner.Whole)
	for d := p.parts[class].Next(0); d != none; d = p.parts[class].Next(d + 1) {
		if e := &p.devices[d]; int32(e.free) >= t.Share && e.free < room && p.host(e.node, t) {
			best, room = d, e.free
		}
	}
	return best
}

// wholeFor is the free device for a task that wants one, or a part of one.
func (p *Pool) wholeFor(t *planner.Task, class int) int32 {
	if p.count[class] == 0 {
		return none
	}
	if !p.crowd.off() {
		if n := p.crowd.find(class, 1, func(n int32) bool { return p.host(n, t) }); n != none {
			return p.whole[class].Next(p.nodes[n].from)
		}
		return none
	}
	for d := p.whole[class].Next(0); d != none; d = p.whole[class].Next(d + 1) {
		if p.host(p.devices[d].node, t) {
			return d
		}
	}
	return none
}

// limits is what the empty cluster can hold.
type limits struct {
	total, most [planner.MaxClasses]int32
	nodes       []node
	perNode     []int32 // by node and class
}

func newLimits(p *Pool) *limits {
	l := &limits{total: p.count, nodes: append([]node(nil), p.nodes...), perNode: make([]int32, len(p.nodes)*p.classes)}
	for i := range p.devices {
		d := &p.devices[i]
		n := &l.perNode[int(d.node)*p.classes+int(d.class)]
		*n++
		l.most[d.class] = max(l.most[d.class], *n)
	}
	return l
}

// Possible says whether t could start on devices of a class if nothing else ran.
func (p *Pool) Possible(t *planner.Task, class int) bool {
	l := p.empty
	switch {
	case t.Spread && t.Devices > 0:
		return t.Devices <= l.total[class]
	case t.Devices > l.most[class]:
		return false
	case !p.asks(t):
		return t.Devices > 0 || len(p.nodes) > 0
	}
	for n := range l.nodes {
		if h := &l.nodes[n]; t.Devices <= l.perNode[n*p.classes+class] && (h.unlimited || t.CPU <= h.cpu && t.Memory <= h.memory) {
			return true
		}
	}
	return false
}

// CopyFrom makes p equal to o, a pool of the same cluster. A copy is where a planner tries what will be.
func (p *Pool) CopyFrom(o *Pool) {
	copy(p.devices, o.devices)
	copy(p.nodes, o.nodes)
	p.held = append(p.held[:0], o.held...)
	p.count = o.count
	for c := range p.whole {
		p.whole[c].copyFrom(&o.whole[c])
		p.parts[c].copyFrom(&o.parts[c])
	}
	if o.crowd.off() {
		p.crowd = crowd{}
		return
	}
	if p.crowd.off() {
		p.crowd.build(p)
	}
	p.crowd.copyFrom(&o.crowd)
}
