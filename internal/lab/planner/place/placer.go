package place

import (
	"slices"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
)

// Placer is a planner.Planner that starts a waiting task as soon as some place has room for it, and chooses the place by
// score. Tasks that do not fit wait in the order they came; those behind may overtake them.
type Placer struct {
	table  table
	random bool
	seed   uint64

	tasks   []entry
	arrived uint64
	// ready are the shapes to try, by the arrival of their first task; blocked are those that wait for something to leave.
	ready   turns
	blocked []*shape
	left    bool
	refused []planner.ID
}

// Settings is what a kind adds.
type Settings struct {
	// Scorer makes the scorer for a valid cluster; nil for a placer that draws a place uniformly among those with room.
	Scorer func(planner.Cluster) Scorer
	// SmallestFirst: a place on a smaller device (less memory, then less weight) is better, whatever the scores.
	SmallestFirst bool
}

// New is a placer for the options, or an error of kind Invalid that lists what is wrong with them.
func New(o planner.Options, with Settings) (planner.Planner, error) {
	if err := Check(o); err != nil {
		return nil, err
	}
	return newPlacer(o, with), nil
}

func newPlacer(o planner.Options, with Settings) *Placer {
	p := &Placer{random: with.Scorer == nil, seed: o.Seed, table: newTable(o.Cluster, o.Ranks)}
	if !p.random {
		p.table.scorer = with.Scorer(o.Cluster)
	}
	if with.SmallestFirst {
		p.table.tiers(o.Cluster.Classes)
	}
	return p
}

// entry is what a placer knows about a task.
type entry struct {
	state state
	// next and prev of those that wait with the same shape.
	next, prev planner.ID
	arrival    uint64
	shape      *shape
	// piece of it that holds each of the devices, or node if there are none.
	piece   planner.Task
	node    int32
	devices []planner.Device
}

type state uint8

const (
	absent state = iota
	waiting
	running
	impossible
)

// Arrive implements planner.Planner.
func (p *Placer) Arrive(_ quantity.Instant, t planner.Task) {
	for int(t.ID) >= len(p.tasks) {
		p.tasks = append(p.tasks, entry{})
	}
	e := &p.tasks[t.ID]
	if e.state != absent {
		invariant.Check(false, "task %d arrives and is there already", t.ID)
	}
	s := p.table.shapeOf(&t)
	p.arrived++
	*e = entry{state: waiting, next: nobody, prev: s.last, arrival: p.arrived, shape: s, devices: e.devices[:0]}
	if len(s.views) == 0 {
		e.state = impossible
		p.refused = append(p.refused, t.ID)
		return
	}
	if s.last == nobody {
		s.first = t.ID
	} else {
		p.tasks[s.last].next = t.ID
	}
	s.last = t.ID
	p.enqueue(s)
}

// Leave implements planner.Planner.
func (p *Placer) Leave(_ quantity.Instant, id planner.ID) {
	if int(id) >= len(p.tasks) {
		return
	}
	switch e := &p.tasks[id]; e.state {
	case waiting:
		p.unlink(e)
		e.state = absent
	case running:
		p.release(e)
		e.state = absent
		p.left = true
	case impossible:
		p.refused = slices.DeleteFunc(p.refused, func(r planner.ID) bool { return r == id })
		e.state = absent
	case absent:
	}
}

// unlink takes a waiting task out of its shape's queue.
func (p *Placer) unlink(e *entry) {
	s := e.shape
	if e.prev == nobody {
		s.first = e.next
	} else {
		p.tasks[e.prev].next = e.next
	}
	if e.next == nobody {
		s.last = e.prev
	} else {
		p.tasks[e.next].prev = e.prev
	}
}

// Plan implements planner.Planner.
func (p *Placer) Plan(_ quantity.Instant, out *planner.Out) {
	for _, id := range p.refused {
		out.Decisions = append(out.Decisions, planner.Decision{Verb: planner.Never, Task: id})
		p.tasks[id].state = absent
	}
	p.refused = p.refused[:0]
	if p.left {
		p.left = false
		for _, s := range p.blocked {
			s.blocked = false
			p.enqueue(s)
		}
		p.blocked = p.blocked[:0]
	}
	for len(p.ready) > 0 {
		s := p.next()
		if s.first == nobody {
			continue
		}
		id := s.first
		if !p.start(id, s, out) {
			s.blocked = true
			p.blocked = append(p.blocked, s)
			continue
		}
		e := &p.tasks[id]
		p.unlink(e)
		e.state = running
		p.enqueue(s)
	}
}

// enqueue lets a shape be tried, unless nobody waits or a try would fail again.
func (p *Placer) enqueue(s *shape) {
	if s.queued || s.blocked || s.first == nobody {
		return
	}
	s.queued = true
	p.ready.push(turn{p.tasks[s.first].arrival, s})
}

// next takes the shape whose first task came first. Where that task has left the queue meanwhile, the shape goes back to the
// place of the next.
func (p *Placer) next() *shape {
	for {
		top := p.ready.pop()
		if s := top.shape; s.first != nobody && p.tasks[s.first].arrival != top.arrival {
			p.ready.push(turn{p.tasks[s.first].arrival, s})
			continue
		}
		top.shape.queued = false
		return top.shape
	}
}

// Reservations implements planner.Planner: there are none.
func (p *Placer) Reservations(_ quantity.Instant, out []planner.Reservation) []planner.Reservation {
	return out
}

// stream of random numbers of a task: a function of its arrival number, so that no other draw shifts it.
func (p *Placer) stream(e *entry) prng.Stream {
	return prng.New(p.seed, prng.Name("planner/place"), e.arrival)
}

// start looks for a place for a waiting task of shape s, and takes it. A task that spreads is placed piece by piece, on the
// class of devices whose best place is the best; where that class has not room for all, the next one is tried.
func (p *Placer) start(id planner.ID, s *shape, out *planner.Out) bool {
	e := &p.tasks[id]
	for tried := uint32(0); ; {
		best := -1
		for i := range s.views {
			v := &s.views[i]
			p.table.refresh(v)
			if v.column.fit > 0 && tried>>i&1 == 0 && (best < 0 || v.column.highest() > s.views[best].column.highest()) {
				best = i
			}
		}
		if best < 0 {
			return false
		}
		if p.put(e, id, s, &s.views[best], out) {
			return true
		}
		tried |= 1 << best
	}
}

// put places all pieces of a task, or none.
func (p *Placer) put(e *entry, id planner.ID, s *shape, v *view, out *planner.Out) bool {
	e.piece, e.devices = v.piece, e.devices[:0]
	draw := prng.Stream{}
	if p.random {
		draw = p.stream(e)
	}
	class, node := uint8(0), int32(0)
	for piece := range s.pieces {
		p.table.refresh(v)
		if v.column.fit == 0 {
			p.release(e)
			return false
		}
		var rank int
		var way rating
		if p.random {
			rank, way = p.table.draw(v, &draw)
		} else {
			rank = v.column.best()
			way = p.table.rate(&v.piece, rank)
		}
		at := p.table.order[rank]
		if piece == 0 {
			node = at
		}
		n := &p.table.state.Nodes[at]
		from := len(e.devices)
		if v.piece.Devices > 0 {
			pool := &n.Pools[way.pool]
			class = pool.Class
			if p.random && Size(&v.piece) == 0 {
				e.devices = append(e.devices, p.table.drawDevice(pool, &v.piece, &draw))
			} else {
				e.devices = p.table.state.Pick(pool, &v.piece, way.level, e.devices)
			}
		}
		p.table.state.Take(at, &v.piece, e.devices[from:])
		p.table.touch(at)
	}
	e.node = node
	from := len(out.Devices)
	out.Devices = append(out.Devices, e.devices...)
	out.Start(id, class, node, from)
	return true
}

// release gives back what a task holds: all of it on one node, or each device where it is.
func (p *Placer) release(e *entry) {
	if per := int(e.piece.Devices); per > 0 {
		for i := 0; i < len(e.devices); i += per {
			node := p.table.state.Node(e.devices[i])
			p.table.state.Give(node, &e.piece, e.devices[i:i+per])
			p.table.touch(node)
		}
	} else {
		p.table.state.Give(e.node, &e.piece, nil)
		p.table.touch(e.node)
	}
	e.devices = e.devices[:0]
}
