package head

import (
	"context"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/store"
)

// Limits are what one machine may take of the head. The zero value is the default.
type Limits struct {
	// Calls at once, default 64. One more is told to come again.
	Calls int
	// Upload is the largest object in bytes; 0: any.
	Upload int64
	// Broken bounds the bytes of uploads that are under way or have broken off, each counted with its whole size; 0: any. What broke off
	// counts until it is stored, or is old enough to have been swept; a head that starts anew counts from nothing.
	Broken int64
}

// fileCosts is what an upload counts beside its bytes: that of no bytes is a file of the head, too.
const fileCosts = 4 << 10

// forgotten is when an upload that broke off does not count any more: a collection sweeps those without activity for so long.
const forgotten = store.Abandoned + store.LeastAge

// usage is what machines take of the head. Safe for concurrent use.
type usage struct {
	limits Limits

	mu      sync.Mutex
	calls   map[job.NodeID]int
	uploads map[job.NodeID]map[store.Digest]*half
	turns   map[turnKey]*turn
}

// half is an upload that is under way, or has broken off.
type half struct {
	size    int64
	open    int // attempts under way
	touched time.Time
}

type turnKey struct {
	machine job.NodeID
	digest  store.Digest
}

// turn is the upload of an object by a machine that is under way.
type turn struct {
	upload string
	end    context.CancelCauseFunc
	over   chan struct{}
}

func newUsage(l Limits) *usage {
	if l.Calls <= 0 {
		l.Calls = 64
	}
	return &usage{limits: l, calls: map[job.NodeID]int{}, uploads: map[job.NodeID]map[store.Digest]*half{}, turns: map[turnKey]*turn{}}
}

var (
	errBusy     = errkind.Errorf(errkind.Unavailable, "the machine has too many calls under way")
	errReplaced = errkind.Errorf(errkind.Unavailable, "the machine has begun this upload anew")
	errStopping = errkind.Errorf(errkind.Unavailable, "the head is stopping")
	errStalled  = errkind.Errorf(errkind.Unavailable, "the machine sends and takes nothing for too long")
)

// enter counts a call, until leave.
func (u *usage) enter(machine job.NodeID) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.calls[machine] >= u.limits.Calls {
		return errBusy
	}
	u.calls[machine]++
	return nil
}

func (u *usage) leave(machine job.NodeID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.calls[machine]--; u.calls[machine] == 0 {
		delete(u.calls, machine)
	}
}

// reserve counts an upload against the machine's limit, until release.
func (u *usage) reserve(machine job.NodeID, d store.Digest, size int64, now time.Time) error {
	if size > u.limits.Upload && u.limits.Upload > 0 {
		return errkind.Errorf(errkind.Exhausted, "an object of %d bytes is larger than the head takes (%d): make it smaller, or raise "+
			"the limit at the head", size, u.limits.Upload)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	own := u.uploads[machine]
	sum := size + fileCosts
	for other, h := range own {
		switch {
		case h.open == 0 && now.Sub(h.touched) > forgotten:
			delete(own, other)
		case other != d:
			sum += h.size + fileCosts
		}
	}
	if u.limits.Broken > 0 && (sum > u.limits.Broken || sum < 0) {
		return errkind.Errorf(errkind.Exhausted, "machine %s has uploads of %d bytes under way or broken off, more than the head takes "+
			"(%d): finish those first, or raise the limit at the head", machine, sum, u.limits.Broken)
	}
	if own == nil {
		own = map[store.Digest]*half{}
		u.uploads[machine] = own
	}
	h := own[d]
	if h == nil {
		h = &half{}
		own[d] = h
	}
	h.size, h.touched = max(h.size, size), now
	h.open++
	return nil
}

// release ends an attempt. gone: nothing of it is left at the head.
func (u *usage) release(machine job.NodeID, d store.Digest, gone bool, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	own := u.uploads[machine]
	h := own[d]
	h.open--
	h.touched = now
	if gone && h.open == 0 {
		delete(own, d)
	}
	if len(own) == 0 {
		delete(u.uploads, machine)
	}
}

// queue waits until no other upload of the same object by the same machine is under way: the next one goes on where it ends, or finds the
// object. An earlier attempt of the same upload is ended, since the machine knows better that its connection is gone. Other machines don't
// wait, as nobody is to hold up others. The caller ends its turn with the function that is returned.
func (u *usage) queue(ctx context.Context, machine job.NodeID, d store.Digest, upload string, end context.CancelCauseFunc) (func(), error) {
	key, own := turnKey{machine, d}, &turn{upload: upload, end: end, over: make(chan struct{})}
	for {
		u.mu.Lock()
		before := u.turns[key]
		if before == nil {
			u.turns[key] = own
			u.mu.Unlock()
			return func() {
				u.mu.Lock()
				defer u.mu.Unlock()
				delete(u.turns, key)
				close(own.over)
			}, nil
		}
		u.mu.Unlock()
		if before.upload == upload {
			before.end(errReplaced)
		}
		select {
		case <-before.over:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
