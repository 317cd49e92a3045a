package api

import (
	"context"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

// room bounds the calls whose bodies are arriving. Who is slow makes room for who comes: however many send a byte a minute,
// an honest call finds a place.
type room struct {
	most int
	// grace is how long a guest may be as slow as it likes; from then on it has to send rate bytes a second over all its
	// time to keep its place when another wants it.
	grace time.Duration
	rate  int64
	// queue is how many may wait for a place where nobody is slow; the rest is refused.
	queue int

	mu      sync.Mutex
	in      map[*guest]struct{}
	waiting int
	left    chan struct{} // closed when somebody leaves; nil while nobody waits
}

// guest is a call whose body is arriving.
type guest struct {
	began time.Time
	// cut ends the reading from outside.
	cut func()
	// got is what has arrived; whole: all of it. Guarded by the room's lock.
	got   int64
	whole bool
}

// enter takes a place for a guest, from a slow one if need be. Errors: Exhausted where too many wait, or the context's.
func (r *room) enter(ctx context.Context, g *guest) error {
	for {
		left, slow, err := r.try(g)
		if slow != nil {
			slow.cut()
		}
		if left == nil {
			return err
		}
		// Somebody leaves, or somebody has been slow for too long by now.
		look := time.NewTimer(r.grace)
		select {
		case <-left:
		case <-look.C:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		look.Stop()
		r.mu.Lock()
		r.waiting--
		r.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// try takes a place, or says what to wait for.
func (r *room) try(g *guest) (wait <-chan struct{}, slow *guest, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.in == nil {
		r.in = map[*guest]struct{}{}
	}
	now := time.Now()
	if len(r.in) >= r.most {
		if slow = r.slowest(now); slow == nil {
			if r.waiting >= r.queue {
				return nil, nil, errkind.Errorf(errkind.Exhausted, "too many calls are being sent at once: try again")
			}
			r.waiting++
			if r.left == nil {
				r.left = make(chan struct{})
			}
			return r.left, nil, nil
		}
		delete(r.in, slow)
	}
	g.began = now
	r.in[g] = struct{}{}
	return nil, slow, nil
}

// slowest is the guest that has sent the least in its time, if it is slow; nil if nobody is.
func (r *room) slowest(now time.Time) (slow *guest) {
	var least float64
	for g := range r.in {
		age := now.Sub(g.began)
		pace := float64(g.got) / age.Seconds()
		if g.whole || age < r.grace || pace >= float64(r.rate) {
			continue
		}
		if slow == nil || pace < least || pace == least && g.began.Before(slow.began) {
			slow, least = g, pace
		}
	}
	return slow
}

// arrived notes that n more bytes are there, or that all are.
func (r *room) arrived(g *guest, n int, whole bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g.got += int64(n)
	g.whole = g.whole || whole
}

// leave gives the place back.
func (r *room) leave(g *guest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.in, g)
	if r.left != nil {
		close(r.left)
		r.left = nil
	}
}
