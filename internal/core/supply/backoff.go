package supply

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

const (
	// firstPause follows the first failure, and doubles with each up to longestPause; while the host's limit is reached up to limitedPause:
	// what others have of it may come free at any time.
	firstPause   = 30 * time.Second
	longestPause = time.Hour
	limitedPause = 5 * time.Minute
)

// streak is the failures of a pool's pilots since one was last seen to work.
type streak struct {
	// n failures, of which why is the last in the host's words, and how it ended.
	n   int
	how How
	why string
	// until nothing is asked for.
	until quantity.Instant
}

// streakOf counts the newest failures. Those of pilots that were asked for before the failure before them had ended are of one attempt:
// eight that are refused at once are one reason to wait, not eight.
func streakOf(s *Sight) (t streak) {
	works := quantity.Instant(0) // when a pilot was last seen to join; what becomes of it later is no failure, unless it ends as one
	for i := range s.Pilots {
		works = max(works, s.Pilots[i].Joined)
	}
	for i := range s.Endings {
		if e := &s.Endings[i]; e.How == Preempted {
			works = max(works, e.Joined)
		}
	}
	first := len(s.Endings)
	for first > 0 {
		if e := &s.Endings[first-1]; e.Ended < works || e.How == Done && e.Joined != 0 {
			break
		}
		first--
	}
	last := quantity.Instant(0)
	for i := range s.Endings[first:] {
		e := &s.Endings[first+i]
		if e.Limited || e.How != Refused && e.How != Failed && e.How != Vanished {
			continue
		}
		last = t.count(e, last)
	}
	t.pause(longestPause)
	return t
}

// limitOf is the same of refusals by the host's limit since a pilot of the pool has last ended: that is no failure, and who ends makes
// room below the limit.
func limitOf(s *Sight) (t streak) {
	first := len(s.Endings)
	for first > 0 && s.Endings[first-1].How == Refused {
		first--
	}
	last := quantity.Instant(0)
	for i := range s.Endings[first:] {
		if e := &s.Endings[first+i]; e.Limited {
			last = t.count(e, last)
		}
	}
	t.pause(limitedPause)
	return t
}

// count adds a failure. last is when the one before had ended, and its result that of this one.
func (t *streak) count(e *Ending, last quantity.Instant) quantity.Instant {
	if t.n == 0 || e.Asked >= last {
		t.n, last = t.n+1, e.Ended
	}
	t.how, t.why, t.until = e.How, e.Why, max(t.until, e.Ended)
	return last
}

// pause sets until when nothing is asked for.
func (t *streak) pause(longest time.Duration) {
	if t.n > 0 {
		t.until = t.until.Add(min(longest, firstPause<<min(t.n-1, 10)))
	}
}
