package place

import (
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/lab/planner"
)

// start looks for a place for a waiting task of shape s, and takes it. A task that spreads is placed piece by piece, on the
// class of devices whose best place is the best; where that class has not room for all, the next one is tried.
func (p *Placer) start(id planner.ID, s *shape, out *planner.Out) bool {
	e := &p.tasks[id]
	for tried := uint32(0); ; {
		best := -1
		for i := range s.views {
			v := &s.views[i]
			p.refresh(v)
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
		p.refresh(v)
		if v.column.fit == 0 {
			p.release(e)
			return false
		}
		var rank int
		var way rating
		if p.random {
			rank, way = p.draw(v, &draw)
		} else {
			rank = v.column.best()
			way = p.rate(&v.piece, rank)
		}
		at := p.order[rank]
		if piece == 0 {
			node = at
		}
		n := &p.state.Nodes[at]
		from := len(e.devices)
		if v.piece.Devices > 0 {
			pool := &n.Pools[way.pool]
			class = pool.Class
			if p.random && Size(&v.piece) == 0 {
				e.devices = append(e.devices, p.drawDevice(pool, &v.piece, &draw))
			} else {
				e.devices = p.state.Pick(pool, &v.piece, way.level, e.devices)
			}
		}
		p.state.Take(at, &v.piece, e.devices[from:])
		p.touch(at)
	}
	e.node = node
	from := len(out.Devices)
	out.Devices = append(out.Devices, e.devices...)
	out.Start(id, class, node, from)
	return true
}

// release gives back what a task holds: all of it on one node, or each device where it lies.
func (p *Placer) release(e *entry) {
	if per := int(e.piece.Devices); per > 0 {
		for i := 0; i < len(e.devices); i += per {
			node := p.state.Node(e.devices[i])
			p.state.Give(node, &e.piece, e.devices[i:i+per])
			p.touch(node)
		}
	} else {
		p.state.Give(e.node, &e.piece, nil)
		p.touch(e.node)
	}
	e.devices = e.devices[:0]
}
