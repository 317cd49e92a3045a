package place

import "sluice.dev/sluice/internal/lab/planner"

// shape is tasks that are alike to a placer: what is found for one is found for all.
type shape struct {
	key key
	// known: the key is in the table; a shape that is not serves again under another key.
	known bool
	// views of the nodes: one, or for a task that spreads one for each class of devices, for all its devices are of one.
	views []view
	// pieces that are placed one after the other: 1, or one for each device of a task that spreads.
	pieces int32
	// first and last of those that wait, in the order they came.
	first, last planner.ID
	// queued: it is among those to try. blocked: a try failed, and nothing has left since.
	queued, blocked bool
}

// view is what every node is worth to one piece.
type view struct {
	piece  planner.Task
	column column
	// seen is the number of the last change of a node that the column knows.
	seen uint64
}

// key is what makes tasks alike.
type key struct {
	devices, share int32
	spread         bool
	classes        uint32
	cpu, memory    int64
}

func keyOf(t *planner.Task) key {
	k := key{devices: t.Devices, share: t.Share, spread: t.Spread, classes: t.Classes, cpu: t.CPU, memory: t.Memory}
	if t.Spread {
		k.cpu, k.memory = 0, 0
	}
	if t.Devices == 0 {
		k.share, k.spread, k.classes = planner.Whole, false, 0
	}
	return k
}

// cells bounds the scores that are kept, over all shapes, before unused shapes are forgotten.
const cells = 16 << 20

// shapeOf finds the shape of a task, or makes it.
func (p *Placer) shapeOf(t *planner.Task) *shape {
	k := keyOf(t)
	if at, ok := p.byKey[k]; ok {
		return p.shapes[at]
	}
	if len(p.byKey) >= p.shapeLimit {
		p.forget()
	}
	var at int32
	if n := len(p.freeShapes); n > 0 {
		at, p.freeShapes = p.freeShapes[n-1], p.freeShapes[:n-1]
	} else {
		at = int32(len(p.shapes))
		p.shapes = append(p.shapes, &shape{})
	}
	s := p.shapes[at]
	*s = shape{key: k, known: true, views: s.views[:0], pieces: 1, first: nobody, last: nobody}
	piece := planner.Task{Devices: k.devices, Share: k.share, Classes: k.classes, CPU: k.cpu, Memory: k.memory}
	if !k.spread {
		p.look(s, piece)
	} else {
		s.pieces, piece.Devices = k.devices, 1
		for _, class := range p.bySize {
			if piece.Classes = 1 << class; k.classes&piece.Classes != 0 {
				p.look(s, piece)
			}
		}
	}
	p.byKey[k] = at
	return s
}

// look adds a view for a piece, unless the empty cluster has no room for all pieces.
func (p *Placer) look(s *shape, piece planner.Task) {
	if !p.possible(&piece, s.pieces) {
		return
	}
	// The slice may hold a column from an earlier use of the shape: its memory serves again.
	if len(s.views) < cap(s.views) {
		s.views = s.views[:len(s.views)+1]
	} else {
		s.views = append(s.views, view{})
	}
	v := &s.views[len(s.views)-1]
	v.piece, v.seen = piece, p.changes
	v.column.reset(len(p.order))
	for rank := range p.order {
		v.column.set(rank, p.rate(&v.piece, rank).value)
	}
}

// forget drops the shapes that nothing waiting has. If that does not make room enough, the limit grows, so that the sweep
// stays rare.
func (p *Placer) forget() {
	for at, s := range p.shapes {
		if s.known && s.first == nobody && !s.queued && !s.blocked {
			s.known = false
			delete(p.byKey, s.key)
			p.freeShapes = append(p.freeShapes, int32(at))
		}
	}
	if len(p.byKey) > p.shapeLimit/2 {
		p.shapeLimit *= 2
	}
}

// possible says whether the empty cluster has room for so many pieces, each on any node.
func (p *Placer) possible(t *planner.Task, pieces int32) bool {
	room := int64(0)
	for i := range p.empty.Nodes {
		n := &p.empty.Nodes[i]
		if !n.Host(t) {
			continue
		}
		if t.Devices == 0 {
			return true
		}
		for j := range n.Pools {
			if q := &n.Pools[j]; t.Classes>>q.Class&1 != 0 && int32(len(q.Devices)) >= t.Devices {
				room += int64(len(q.Devices)) / int64(t.Devices)
			}
		}
	}
	return room >= int64(pieces)
}

// refresh brings a view up to date: only nodes that changed since it was last asked are rated again.
func (p *Placer) refresh(v *view) {
	if p.changes-v.seen >= uint64(len(p.log)) {
		for rank, at := range p.changed {
			if at > v.seen {
				v.column.set(rank, p.rate(&v.piece, rank).value)
			}
		}
	} else {
		for at := v.seen + 1; at <= p.changes; at++ {
			// A node that changed again later comes up again later.
			if rank := p.log[at&uint64(len(p.log)-1)]; p.changed[rank] == at {
				v.column.set(int(rank), p.rate(&v.piece, int(rank)).value)
			}
		}
	}
	v.seen = p.changes
}

// touch notes that a node changed.
func (p *Placer) touch(node int32) {
	rank := p.rankOf[node]
	p.changes++
	p.log[p.changes&uint64(len(p.log)-1)] = rank
	p.changed[rank] = p.changes
}
