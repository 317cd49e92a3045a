// Package pool is the free part of a cluster, as planners that decide about time see it: how many devices of each class, and which of them
// a task is given. Three rules decide where a task goes. Devices that may be on any node are taken in the order of their numbers; once a
// task has come whose devices must be on one node, those of the fullest node go first, so that whole nodes stay whole. A gang goes to the
// node with the fewest free devices that has enough. A share of a device goes to the device with the least room that has enough.
//
// A task is Loose if counting free devices answers whether it fits: it takes whole devices, from anywhere, and asks nothing of a host.
// Planners have a fast way for clusters in which all tasks are loose.
package pool

import (
	"errors"
	"math/bits"
	"slices"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/lab/planner"
)

// device is one device. A whole one has a single holder, whose devices are chained by next.
type device struct {
	node, next int32
	free       int16
	class      uint8
}

// node is one machine: its devices are [from, to).
type node struct {
	from, to    int32
	cpu, memory int64
	unlimited   bool
}

// held is where the devices of a task are.
type held struct{ first, node int32 }

// Pool is what is free. Make it with New.
type Pool struct {
	classes int
	devices []device
	nodes   []node
	held    []held
	// whole devices that are free: how many, and which. parts are those with some room and not all.
	count        [planner.MaxClasses]int32
	whole, parts []Set
	limited      bool // a host has a limit
	crowd        crowd
	empty        *limits
}

// New is the pool of a cluster in which all is free. The error, of kind Invalid, lists everything wrong with c.
func New(c planner.Cluster) (*Pool, error) {
	if err := check(c); err != nil {
		return nil, err
	}
	p := &Pool{classes: len(c.Classes)}
	for i, n := range c.Nodes {
		from := int32(len(p.devices))
		for _, class := range n.Devices {
			p.devices = append(p.devices, device{node: int32(i), next: none, free: planner.Whole, class: class})
		}
		p.nodes = append(p.nodes, node{from: from, to: int32(len(p.devices)), cpu: n.CPU, memory: n.Memory, unlimited: n.CPU == 0 &&
			n.Memory == 0})
		p.limited = p.limited || n.CPU != 0 || n.Memory != 0
	}
	for range c.Classes {
		p.whole = append(p.whole, NewSet(len(p.devices)))
		p.parts = append(p.parts, NewSet(len(p.devices)))
	}
	for i := range p.devices {
		p.count[p.devices[i].class]++
		p.whole[p.devices[i].class].Add(int32(i))
	}
	p.empty = newLimits(p)
	return p, nil
}

func check(c planner.Cluster) error {
	var wrong []error
	if n := len(c.Classes); n < 1 || n > planner.MaxClasses {
		wrong = append(wrong, errkind.Errorf(errkind.Invalid, "the cluster has %d classes of devices: give 1 to %d", n, planner.MaxClasses))
	}
	for i, n := range c.Nodes {
		for j, class := range n.Devices {
			if int(class) >= len(c.Classes) {
				wrong = append(wrong, errkind.Errorf(errkind.Invalid, "node %d (%s): device %d is of class %d, and the classes are 0 to %d",
					i, n.Name, j, class, len(c.Classes)-1))
			}
		}
		if n.CPU < 0 || n.Memory < 0 {
			wrong = append(wrong, errkind.Errorf(errkind.Invalid, "node %d (%s): %d thousandths of a core and %d MiB: give 0 (no limit) "+
				"or more", i, n.Name, n.CPU, n.Memory))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return &errkind.Error{Kind: errkind.Invalid, Err: errors.Join(wrong...)}
}

// Classes is how many classes there are.
func (p *Pool) Classes() int { return p.classes }

// Free is how many devices of a class are wholly free.
func (p *Pool) Free(class int) int32 { return p.count[class] }

// WithFree is the set of classes with a device that is wholly free.
func (p *Pool) WithFree() (set uint32) {
	for c := range p.classes {
		if p.count[c] > 0 {
			set |= 1 << c
		}
	}
	return set
}

// Full says whether no device has room for anything.
func (p *Pool) Full() bool {
	for c := range p.classes {
		if p.count[c] > 0 || p.parts[c].Next(0) != none {
			return false
		}
	}
	return true
}

// asks reports whether t's CPU or memory demand restricts the hosts that it fits on.
func (p *Pool) asks(t *planner.Task) bool {
	return p.limited && !t.Spread && (t.CPU > 0 || t.Memory > 0)
}

// Loose reports whether counting free devices is enough to tell if t fits.
func (p *Pool) Loose(t *planner.Task) bool {
	return t.Devices > 0 && t.Share == planner.Whole && (t.Spread || t.Devices == 1 && !p.asks(t))
}

// Fits says whether t could start now on devices of a class, which must be one of its set.
func (p *Pool) Fits(t *planner.Task, class int) bool {
	if p.Loose(t) {
		return t.Devices <= p.count[class]
	}
	at, _ := p.place(t, class)
	return at != none
}

// Take gives t devices of a class and appends them to out. ok is false, and nothing changed, if it does not fit.
func (p *Pool) Take(t *planner.Task, class int, out []planner.Device) (devices []planner.Device, at int32, ok bool) {
	if p.crowd.off() && p.Loose(t) {
		return p.takeLoose(t, class, out)
	}
	if t.Devices > 1 && t.Spread {
		if t.Devices > p.count[class] {
			return out, none, false
		}
		from := len(out)
		for len(out)-from < int(t.Devices) {
			d := p.whole[class].Next(p.nodes[p.crowd.fullest(class, 1)].from)
			out = append(out, planner.Device(d))
			p.hold(t, d)
		}
		return out, p.devices[out[from]].node, true
	}
	at, d := p.place(t, class)
	if at == none {
		return out, none, false
	}
	n := &p.nodes[at]
	if p.asks(t) {
		n.cpu, n.memory = n.cpu-t.CPU, n.memory-t.Memory
	}
	p.slot(t.ID).node = at
	for left := t.Devices; left > 0; left-- {
		if t.Devices > 1 {
			d = p.whole[class].Next(max(d, n.from))
		}
		out = append(out, planner.Device(d))
		p.hold(t, d)
	}
	return out, at, true
}

// takeLoose gives t the devices of lowest number, a word of the set at a time.
func (p *Pool) takeLoose(t *planner.Task, class int, out []planner.Device) (devices []planner.Device, at int32, ok bool) {
	left := t.Devices
	if left > p.count[class] {
		return out, none, false
	}
	p.count[class] -= left
	h, set := p.slot(t.ID), &p.whole[class]
	from := len(out)
	for i := set.Next(0) >> 6; left > 0; i = set.Next(i<<6) >> 6 {
		word := set.levels[0][i]
		for ; word != 0 && left > 0; word &= word - 1 {
			d := i<<6 | int32(bits.TrailingZeros64(word))
			e := &p.devices[d]
			e.free, e.next = 0, h.first
			h.first = d
			out = append(out, planner.Device(d))
			left--
		}
		set.setWord(i, word)
	}
	return out, p.devices[out[from]].node, true
}

// giveLoose takes whole devices back, a word of the set at a time.
func (p *Pool) giveLoose(t *planner.Task, h *held) {
	d := h.first
	class := p.devices[d].class
	set := &p.whole[class]
	for d != none {
		i, word := d>>6, uint64(0)
		for ; d != none && d>>6 == i; d = p.devices[d].next {
			p.devices[d].free = planner.Whole
			word |= 1 << (d & 63)
		}
		set.setWord(i, set.levels[0][i]|word)
	}
	p.count[class] += t.Devices
	h.first = none
}

// CanHold says whether the very devices that another pool gave t have room for it here.
func (p *Pool) CanHold(t *planner.Task, at int32, devices []planner.Device) bool {
	for _, d := range devices {
		if int32(p.devices[d].free) < t.Share {
			return false
		}
	}
	n := &p.nodes[at]
	return !p.asks(t) || n.unlimited || t.CPU <= n.cpu && t.Memory <= n.memory
}

// Hold gives t the very devices that another pool gave it.
func (p *Pool) Hold(t *planner.Task, at int32, devices []planner.Device) {
	if p.asks(t) {
		p.nodes[at].cpu -= t.CPU
		p.nodes[at].memory -= t.Memory
	}
	p.slot(t.ID).node = at
	for _, d := range devices {
		p.hold(t, int32(d))
	}
}

// Where is the node and the devices of a task that holds some; they are appended to out.
func (p *Pool) Where(t *planner.Task, out []planner.Device) (at int32, devices []planner.Device) {
	h := p.slot(t.ID)
	if at = h.node; h.first != none {
		at = p.devices[h.first].node
	}
	for d, n := h.first, t.Devices; n > 0; d, n = p.devices[d].next, n-1 {
		out = append(out, planner.Device(d))
	}
	return at, out
}

// Give takes back what t holds.
func (p *Pool) Give(t *planner.Task) {
	h := p.slot(t.ID)
	if p.crowd.off() && p.Loose(t) {
		p.giveLoose(t, h)
		return
	}
	for d := h.first; d != none; {
		e := &p.devices[d]
		before := e.free
		e.free += int16(t.Share)
		p.moved(d, before)
		if t.Share != planner.Whole {
			break
		}
		d = e.next
	}
	h.first = none
	if p.asks(t) {
		p.nodes[h.node].cpu += t.CPU
		p.nodes[h.node].memory += t.Memory
	}
}

// slot is the place of a task's record.
func (p *Pool) slot(id planner.ID) *held {
	for int(id) >= len(p.held) {
		p.held = append(p.held, held{first: none})
	}
	return &p.held[id]
}

// hold puts t on one device.
func (p *Pool) hold(t *planner.Task, d int32) {
	e := &p.devices[d]
	if int32(e.free) < t.Share {
		invariant.Check(false, "pool: device %d has %d thousandths free and task %d wants %d", d, e.free, t.ID, t.Share)
	}
	before := e.free
	e.free -= int16(t.Share)
	p.moved(d, before)
	h := p.slot(t.ID)
	if t.Share == planner.Whole {
		e.next = h.first
	}
	h.first = d
}

// moved brings counts and sets up to date with a device that had before.
func (p *Pool) moved(d int32, before int16) {
	e := &p.devices[d]
	class := e.class
	switch {
	case before == planner.Whole:
		p.count[class]--
		p.whole[class].Remove(d)
		p.crowd.add(e.node, int(class), -1)
	case before > 0:
		p.parts[class].Remove(d)
	}
	switch {
	case e.free == planner.Whole:
		p.count[class]++
		p.whole[class].Add(d)
		p.crowd.add(e.node, int(class), 1)
	case e.free > 0:
		p.parts[class].Add(d)
	}
}

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
	p.beginCrowd()
	return p.crowd.find(class, t.Devices, func(n int32) bool { return p.host(n, t) })
}

// beginCrowd sorts the nodes from now on, by one look at every device.
func (p *Pool) beginCrowd() {
	if !p.crowd.off() {
		return
	}
	p.crowd.build(len(p.nodes), p.classes, slices.Max(p.empty.most[:]))
	for class := range p.whole {
		for d := p.whole[class].Next(0); d != none; d = p.whole[class].Next(d + 1) {
			p.crowd.add(p.devices[d].node, class, 1)
		}
	}
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
	p.beginCrowd()
	p.crowd.copyFrom(&o.crowd)
}
