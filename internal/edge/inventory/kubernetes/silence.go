//go:build kubernetes

package kubernetes

import (
	"time"

	"k8s.io/client-go/tools/cache"
)

// silence is a source that could not listen: since when, why, and what it had heard last.
type silence struct {
	at    time.Time
	heard string
	err   error
}

// silences are those of all sources. Informers say when listening fails, and not when it works again: then there is something newer than what was heard last.
type silences map[cache.SharedIndexInformer]silence

// fails notes that a source can't listen, and says whether that is new.
func (s *silences) fails(of cache.SharedIndexInformer, err error) bool {
	if *s == nil {
		*s = silences{}
	}
	was, silent := (*s)[of]
	heard := of.LastSyncResourceVersion()
	if silent && was.heard == heard {
		was.err = err
		(*s)[of] = was
		return false
	}
	(*s)[of] = silence{time.Now(), heard, err}
	return true
}

// since is when the first of those failed that are silent still; a nil error: none is.
func (s *silences) since() (at time.Time, err error) {
	for of, was := range *s {
		if of.LastSyncResourceVersion() != was.heard {
			delete(*s, of)
		} else if err == nil || was.at.Before(at) {
			at, err = was.at, was.err
		}
	}
	return at, err
}
