package placement

// wheel has what waits for a tick, in chunks, so that what waits for the same one lies together. It allocates only to grow.
type wheel[T any] struct {
	heads  [8192]int32 // the chunk that is filled now, -1: none
	chunks []chunk[T]
	free   int32
}

type chunk[T any] struct {
	next, n int32
	of      [15]T
}

func newWheel[T any]() *wheel[T] {
	w := &wheel[T]{free: -1}
	for i := range w.heads {
		w.heads[i] = -1
	}
	return w
}

// put has something wait for a tick, at most the wheel's length ahead of now.
func (w *wheel[T]) put(now, at int, of T) {
	head := &w.heads[max(now+1, min(at, now+len(w.heads)-1))%len(w.heads)]
	if *head < 0 || int(w.chunks[*head].n) == len(w.chunks[*head].of) {
		i := w.free
		if i < 0 {
			i = int32(len(w.chunks))
			w.chunks = append(w.chunks, chunk[T]{})
		} else {
			w.free = w.chunks[i].next
		}
		w.chunks[i].next, w.chunks[i].n = *head, 0
		*head = i
	}
	c := &w.chunks[*head]
	c.of[c.n] = of
	c.n++
}

// due hands out what waits for a tick.
func (w *wheel[T]) due(now int, do func(T)) {
	head := &w.heads[now%len(w.heads)]
	i := *head
	*head = -1
	for i >= 0 {
		for k := range w.chunks[i].n {
			do(w.chunks[i].of[k]) // which may put, and so move the chunks
		}
		next := w.chunks[i].next
		w.chunks[i].next, w.free = w.free, i
		i = next
	}
}
