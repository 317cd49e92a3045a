package inbox

// ring is a queue whose ends cost the same however much is between them. What it grew to it gives back once it is empty.
type ring[T any] struct {
	buf     []T
	head, n int
}

// ringKept is how many places an empty ring keeps.
const ringKept = 1024

func (r *ring[T]) push(x T) {
	if r.n == len(r.buf) {
		grown := make([]T, max(16, 2*len(r.buf)))
		for i := range r.n {
			grown[i] = r.buf[(r.head+i)%len(r.buf)]
		}
		r.buf, r.head = grown, 0
	}
	r.buf[(r.head+r.n)%len(r.buf)] = x
	r.n++
}

// pop takes out the oldest; there must be one.
func (r *ring[T]) pop() (x T) {
	x, r.buf[r.head] = r.buf[r.head], x
	r.head = (r.head + 1) % len(r.buf)
	if r.n--; r.n == 0 && len(r.buf) > ringKept {
		*r = ring[T]{}
	}
	return x
}
