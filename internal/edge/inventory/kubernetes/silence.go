//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/tools/cache"
)

const (
	// pings is how often the API server is asked whether it is there. Informers do not say so: while it refuses connections they try again and keep silent.
	pings = 5 * time.Second
	// quiet is after how long without an answer it counts as away.
	quiet = 15 * time.Second
)

// silence is a source that could not list or watch: since when, why, and what it had heard last.
type silence struct {
	at    time.Time
	heard string
	err   error
}

// silences are those of all sources, as of an object that may not be read. Informers say when that fails, and not when it works again: then there is something newer
// than what was heard last. answered is when the API server last said anything, and failed why it has not since.
type silences struct {
	of       map[cache.SharedIndexInformer]silence
	answered time.Time
	failed   error
}

// fails notes that a source can't listen, and says whether that is new.
func (s *silences) fails(of cache.SharedIndexInformer, err error) bool {
	if s.of == nil {
		s.of = map[cache.SharedIndexInformer]silence{}
	}
	was, silent := s.of[of]
	heard := of.LastSyncResourceVersion()
	if silent && was.heard == heard {
		was.err = err
		s.of[of] = was
		return false
	}
	s.of[of] = silence{time.Now(), heard, err}
	return true
}

// since is when the first of those failed that are silent still; a nil error: none is.
func (s *silences) since() (at time.Time, err error) {
	if !s.answered.IsZero() && time.Since(s.answered) > quiet {
		at, err = s.answered, s.failed
		if err == nil {
			err = errors.New("it does not answer")
		}
	}
	for of, was := range s.of {
		if of.LastSyncResourceVersion() != was.heard {
			delete(s.of, of)
		} else if err == nil || was.at.Before(at) {
			at, err = was.at, was.err
		}
	}
	return at, err
}

// ping asks the API server now and then whether it is there.
func (inv *Inventory) ping(ctx context.Context) {
	for {
		_, err := inv.opts.Client.Discovery().ServerVersion()
		inv.mu.Lock()
		if inv.away.failed = err; err == nil {
			inv.away.answered = time.Now()
		}
		inv.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pings):
		}
	}
}
