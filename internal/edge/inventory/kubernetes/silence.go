//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/tools/cache"
)

const (
	// pings is how often the API server is asked for its version. Informers do not tell: while connections are refused they retry in
	// silence.
	pings = 5 * time.Second
	// quiet is how long without an answer until it counts as away.
	quiet = 15 * time.Second
)

// silence is a source that failed to list or watch: when, why, and its resource version then.
type silence struct {
	at    time.Time
	heard string
	err   error
}

// silences tracks failing sources, such as a kind that may not be read. Informers report failures but not recoveries, which show as a
// newer resource version. answered is when the API server last answered a ping, and failed why it has not since.
type silences struct {
	of       map[cache.SharedIndexInformer]silence
	answered time.Time
	failed   error
}

// fails records that a source failed, and reports whether that is new.
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

// since is when the earliest of the failing sources failed, or the last ping was answered if that is longer than quiet ago, and why; a nil
// error: nothing fails.
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

// ping asks the API server every pings whether it is there, until ctx ends.
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
