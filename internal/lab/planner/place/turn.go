package place

// turn is a shape's place among those to try: when the first of its waiting tasks arrived.
type turn struct {
	arrival uint64
	shape   *shape
}

// enqueue lets a shape be tried, unless nobody waits or a try would fail again.
func (p *Placer) enqueue(s *shape) {
	if s.queued || s.blocked || s.first == nobody {
		return
	}
	s.queued = true
	p.push(turn{p.tasks[s.first].arrival, s})
}

// push and pop keep ready as a binary heap. It is written out because container/heap would allocate for every turn.
func (p *Placer) push(t turn) {
	p.ready = append(p.ready, t)
	i := len(p.ready) - 1
	for i > 0 {
		up := (i - 1) / 2
		if p.ready[up].arrival < t.arrival {
			break
		}
		p.ready[i] = p.ready[up]
		i = up
	}
	p.ready[i] = t
}

// pop takes the shape whose first task came first. Where that task has left the queue meanwhile, the shape goes back to the
// place of the next.
func (p *Placer) pop() *shape {
	for {
		top := p.ready[0]
		last := len(p.ready) - 1
		p.sink(p.ready[last], last)
		p.ready = p.ready[:last]
		if s := top.shape; s.first != nobody && p.tasks[s.first].arrival != top.arrival {
			p.push(turn{p.tasks[s.first].arrival, s})
			continue
		}
		top.shape.queued = false
		return top.shape
	}
}

// sink puts t at the top of the first n turns.
func (p *Placer) sink(t turn, n int) {
	i := 0
	for {
		down := 2*i + 1
		if down >= n {
			break
		}
		if down+1 < n && p.ready[down+1].arrival < p.ready[down].arrival {
			down++
		}
		if t.arrival < p.ready[down].arrival {
			break
		}
		p.ready[i] = p.ready[down]
		i = down
	}
	p.ready[i] = t
}
