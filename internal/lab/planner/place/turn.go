package place

// turn is a shape's place among those to try: when the first of its waiting tasks arrived.
type turn struct {
	arrival uint64
	shape   *shape
}

// turns are shapes to try, as a binary heap by arrival. It is written out because container/heap would allocate for every turn.
type turns []turn

func (q *turns) push(t turn) {
	*q = append(*q, t)
	heap := *q
	i := len(heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if heap[up].arrival < t.arrival {
			break
		}
		heap[i] = heap[up]
		i = up
	}
	heap[i] = t
}

// pop takes the turn that comes first; there must be one.
func (q *turns) pop() turn {
	top, last := (*q)[0], len(*q)-1
	q.sink((*q)[last], last)
	*q = (*q)[:last]
	return top
}

// sink puts t at the top of the first n turns.
func (q *turns) sink(t turn, n int) {
	heap := *q
	i := 0
	for {
		down := 2*i + 1
		if down >= n {
			break
		}
		if down+1 < n && heap[down+1].arrival < heap[down].arrival {
			down++
		}
		if t.arrival < heap[down].arrival {
			break
		}
		heap[i] = heap[down]
		i = down
	}
	heap[i] = t
}
