package forecast

import "slices"

// MaxRuns bounds the runs that are remembered of one template; the newest stay. Enough for theta .004.
const MaxRuns = 256

// Sample is the newest observations of one quantity, in order of age and of size. The zero value keeps MaxRuns.
//
// A window over exchangeable observations is exchangeable with the next, so that forgetting costs sharpness and no
// guarantee; where the series drifts, a short window follows it.
type Sample struct {
	// Most observations are kept; 0 stands for MaxRuns.
	Most   int
	aged   []int64 // a ring once it is full
	oldest int
	sorted []int64
}

// Add an observation; the oldest goes where there are too many.
func (s *Sample) Add(x int64) {
	most := s.Most
	if most <= 0 {
		most = MaxRuns
	}
	if len(s.aged) < most {
		s.aged = append(s.aged, x)
	} else {
		at, _ := slices.BinarySearch(s.sorted, s.aged[s.oldest])
		s.sorted = slices.Delete(s.sorted, at, at+1)
		s.aged[s.oldest] = x
		s.oldest = (s.oldest + 1) % most
	}
	at, _ := slices.BinarySearch(s.sorted, x)
	s.sorted = slices.Insert(s.sorted, at, x)
}

// Len is how many observations are kept.
func (s *Sample) Len() int { return len(s.sorted) }

// Upper is what the next observation passes with a chance of at most theta (parts per million), if it is exchangeable with
// those kept. ok is false where they are too few for any finite bound; the largest is then returned, 0 if there is none: the
// next passes it with a chance of at most 1/(Len+1).
func (s *Sample) Upper(theta int64) (bound int64, ok bool) {
	n := len(s.sorted)
	if n == 0 {
		return 0, false
	}
	// Level asks for any theta, also for one that covers everything or nothing.
	k, ok := Rank(n, max(0, min(One, theta)))
	return s.sorted[max(0, min(k, n)-1)], ok
}
