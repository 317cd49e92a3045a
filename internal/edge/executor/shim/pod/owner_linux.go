package pod

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/departure"
	"sluice.dev/sluice/internal/core/errkind"
)

// mostBeat bounds a beat, in bytes. beatAgain is the longest pause after a beat that could not be read: once the store is back the operator
// must be heard soon.
const (
	mostBeat  = 4 << 10
	beatAgain = time.Second
)

// owner listens whether the Pod's operator lives. nil: nobody asks.
type owner struct {
	// read returns the operator's last beat. elapsed counts time, suspension included.
	read    func(context.Context) (string, error)
	elapsed func() time.Duration
	every   time.Duration

	mu    sync.Mutex
	vigil departure.Vigil
	last  string         // the last beat; empty: none was read yet
	sign  departure.Sign // of the last read, until it was looked at
	gone  time.Duration  // for how long nothing was heard when it was given up; 0: it was not
}

func newOwner(limit time.Duration, read func(context.Context) (string, error), elapsed func() time.Duration) *owner {
	return &owner{vigil: departure.Vigil{Limit: limit}, every: max(1, limit/Beats), read: read, elapsed: elapsed, sign: departure.Silent}
}

// listen reads beats until ctx is done. The first comes at a time of its own: Pods that begin together don't read together.
func (o *owner) listen(ctx context.Context) {
	pause, failing := rand.N(o.every), false
	for {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		call, cancel := context.WithTimeout(ctx, max(beatAgain, o.every/2))
		beat, err := o.read(call)
		cancel()
		if ctx.Err() != nil {
			return
		}
		o.heard(beat, err)
		if pause = o.every; err != nil {
			pause = min(pause, beatAgain)
		}
		if err != nil && !failing {
			fmt.Fprintln(os.Stderr, "sluice-shim: it can't be heard whether the operator lives:", err)
		}
		failing = err != nil
	}
}

// heard takes what was read. The first beat may be a dead operator's.
func (o *owner) heard(beat string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err != nil:
		o.sign = departure.Blind
		return
	case beat != o.last && o.last != "":
		o.sign = departure.Heard
	case o.sign != departure.Heard: // or nobody has looked since
		o.sign = departure.Silent
	}
	o.last = beat
}

// silent reports for how long the operator had not been heard when it was given up, which is for good; 0: it was not. It has to be called
// each second at least (departure.Stall).
func (o *owner) silent() time.Duration {
	if o == nil {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone > 0 {
		return o.gone
	}
	missed, over := o.vigil.Look(o.elapsed(), o.sign)
	if o.sign == departure.Heard {
		o.sign = departure.Silent
	}
	if over {
		o.gone = missed
	}
	return o.gone
}

// readBeat reads a beat by its URL. One that is not there yet is empty.
func readBeat(ctx context.Context, from *http.Client, url string) (string, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", bare(err)
	}
	r, err := from.Do(q)
	if err != nil {
		return "", errkind.Errorf(errkind.Unavailable, "%w", bare(err))
	}
	defer func() { _ = r.Body.Close() }()
	switch r.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return "", nil
	default:
		return "", refused(r)
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, mostBeat))
	if err != nil {
		return "", errkind.Errorf(errkind.Unavailable, "the store's answer broke off: %w", bare(err))
	}
	return string(data), nil
}
