package api

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

// room bounds the calls whose bodies are arriving. A slow guest makes room for the next one: however many send a byte a minute,
// an honest call finds a place.
type room struct {
	most int
	// grace is how long a guest may be as slow as it likes; from then on it has to send rate bytes a second over all the
	// time that it is waited for to keep its place when another wants it.
	grace time.Duration
	rate  int64
	// patient is how many may wait for a place where nobody is slow; the rest is refused.
	patient int

	mu    sync.Mutex
	in    map[*guest]struct{}
	queue []*guest // the guests that wait, in order
}

// guest is a call whose body is arriving.
type guest struct {
	// cut ends the reading from outside. ready is closed when a guest that has waited has its place.
	cut   func()
	ready chan struct{}
	// got is what has arrived, whole: all of it; waited is how long it was waited for: only that is the sender's time. Guarded
	// by the room's lock.
	got    int64
	whole  bool
	waited time.Duration
	// since when it is being waited for, in nanoseconds of Unix time; 0 if it is not. It needs no lock, because waiting for one
	// is our time.
	since atomic.Int64
}

// enter takes a place for a guest, in order and from a slow one if need be. Errors: Exhausted where too many wait, or the
// context's.
func (r *room) enter(ctx context.Context, g *guest) error {
	g.ready = make(chan struct{})
	slow, err := r.arrive(g)
	for err == nil {
		if slow != nil {
			slow.cut()
		}
		look := time.NewTimer(r.grace) // by then somebody may have been slow for too long
		select {
		case <-g.ready:
			look.Stop()
			return nil
		case <-look.C:
			slow = r.push()
		case <-ctx.Done():
			err = context.Cause(ctx)
			r.leave(g)
		}
		look.Stop()
	}
	return err
}

// arrive puts a guest at the end of the queue, and lets the first in if it is its turn.
func (r *room) arrive(g *guest) (slow *guest, err error) {
	r.mu.Lock()
	if r.in == nil {
		r.in = map[*guest]struct{}{}
	}
	full := len(r.in) >= r.most && r.slowest(time.Now()) == nil
	if full && len(r.queue) >= r.patient {
		err = errkind.Errorf(errkind.Exhausted, "too many calls are being sent at once: try again")
	} else {
		r.queue = append(r.queue, g)
	}
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return r.push(), nil
}

// push lets the first of the queue in, if there is a place, or a slow guest has one: that guest is returned.
func (r *room) push() (slow *guest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		return nil
	}
	now := time.Now()
	if len(r.in) >= r.most {
		if slow = r.slowest(now); slow == nil {
			return nil
		}
		delete(r.in, slow)
	}
	first := r.queue[0]
	r.queue = slices.Delete(r.queue, 0, 1)
	r.in[first] = struct{}{}
	close(first.ready)
	return slow
}

// slowest is the guest that has sent the least in its time, if it is slow; nil if nobody is.
func (r *room) slowest(now time.Time) (slow *guest) {
	var least float64
	for g := range r.in {
		age := g.waited
		if since := g.since.Load(); since != 0 {
			age += now.Sub(time.Unix(0, since))
		}
		if g.whole || age < r.grace {
			continue
		}
		if rate := float64(g.got) / age.Seconds(); rate < float64(r.rate) && (slow == nil || rate < least) {
			slow, least = g, rate
		}
	}
	return slow
}

// awaits notes that more of a guest's body is being waited for.
func (g *guest) awaits() {
	g.since.Store(time.Now().UnixNano())
}

// arrived notes that n more bytes are there, or that all are.
func (r *room) arrived(g *guest, n int, whole bool) {
	var waited time.Duration
	if since := g.since.Swap(0); since != 0 {
		waited = time.Since(time.Unix(0, since))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	g.waited += waited
	g.got += int64(n)
	g.whole = g.whole || whole
}

// leave gives the place back, or the one in the queue.
func (r *room) leave(g *guest) {
	r.mu.Lock()
	delete(r.in, g)
	if i := slices.Index(r.queue, g); i >= 0 {
		r.queue = slices.Delete(r.queue, i, i+1)
	}
	free := len(r.in) < r.most
	r.mu.Unlock()
	if free {
		r.push()
	}
}
