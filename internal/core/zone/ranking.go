package zone

import (
	"math"
	"slices"
	"time"
)

// ranking is waiting jobs in the order in which a policy asks them, with the shortest window each could use. It answers
// "who is the first that can use a window of this length" by looking at one number for each chunk of up to chunkSize jobs
// and then into one chunk.
type ranking struct {
	chunks [][]ranked
	// least need of each chunk.
	least []time.Duration
	// spare is room for a first chunk.
	spare []ranked
}

type ranked struct {
	need time.Duration
	job  *state
}

// chunkSize balances the search, which looks at n/chunkSize + chunkSize numbers, for 10^4 to 10^5 jobs.
const chunkSize = 256

// order says which of two jobs is asked first.
type order func(a, b *state) int

// insert puts a job into its place.
func (r *ranking) insert(before order, e ranked) {
	if len(r.chunks) == 0 {
		r.chunks, r.least = append(r.chunks, append(r.spare, e)), append(r.least, e.need)
		r.spare = nil
		return
	}
	c := r.chunk(before, e.job)
	i, _ := slices.BinarySearchFunc(r.chunks[c], e.job, func(x ranked, s *state) int { return before(x.job, s) })
	if len(r.chunks[c]) == chunkSize {
		half := append(make([]ranked, 0, chunkSize), r.chunks[c][chunkSize/2:]...)
		clear(r.chunks[c][chunkSize/2:])
		r.chunks[c] = r.chunks[c][:chunkSize/2]
		r.chunks, r.least = slices.Insert(r.chunks, c+1, half), slices.Insert(r.least, c+1, 0)
		r.measure(c)
		r.measure(c + 1)
		if i > chunkSize/2 {
			c, i = c+1, i-chunkSize/2
		}
	}
	r.chunks[c] = slices.Insert(r.chunks[c], i, e)
	r.least[c] = min(r.least[c], e.need)
}

// remove takes out a job, which must be there, in the place that before gives it.
func (r *ranking) remove(before order, s *state) {
	c := r.chunk(before, s)
	i, found := slices.BinarySearchFunc(r.chunks[c], s, func(x ranked, s *state) int { return before(x.job, s) })
	if !found {
		return
	}
	need := r.chunks[c][i].need
	r.chunks[c] = slices.Delete(r.chunks[c], i, i+1)
	switch {
	case len(r.chunks[c]) == 0:
		r.spare = r.chunks[c]
		r.chunks, r.least = slices.Delete(r.chunks, c, c+1), slices.Delete(r.least, c, c+1)
	case need == r.least[c]:
		r.measure(c)
	}
}

// chunk is the last one whose first job does not come after s.
func (r *ranking) chunk(before order, s *state) int {
	i, found := slices.BinarySearchFunc(r.chunks, s, func(c []ranked, s *state) int { return before(c[0].job, s) })
	if found {
		return i
	}
	return max(0, i-1)
}

func (r *ranking) measure(c int) {
	least := time.Duration(math.MaxInt64)
	for i := range r.chunks[c] {
		least = min(least, r.chunks[c][i].need)
	}
	r.least[c] = least
}

// first is the first job that can use a window of this length, nil if there is none.
func (r *ranking) first(length time.Duration) *state {
	for c, least := range r.least {
		if least > length {
			continue
		}
		for i := range r.chunks[c] {
			if e := &r.chunks[c][i]; e.need <= length {
				return e.job
			}
		}
	}
	return nil
}
