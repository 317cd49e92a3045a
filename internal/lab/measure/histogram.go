package measure

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

const (
	// exactMost is up to how many values are kept as they are, so that quantiles of small runs are exact.
	exactMost = 4096
	// halfOctave is into how many buckets each power of two is divided. A bucket's middle is within 1/(2*halfOctave), .4%,
	// of every value in it.
	halfOctave = 128
	octaveBits = 8 // 1<<octaveBits == 2*halfOctave: below that every value has its own bucket
	buckets    = (64-octaveBits)*halfOctave + halfOctave
)

// QuantileError bounds the relative error of a quantile over more than 4,096 values; over fewer it is exact.
const QuantileError = 1.0 / (2 * halfOctave)

// histogram holds lengths of time: mean exactly, quantiles exactly for few values and log-linear buckets for more. Its
// size does not depend on how many there are.
type histogram struct {
	n     int64
	sum   area
	most  time.Duration
	exact []time.Duration
	count [buckets]int64
}

// newHistogram has all the memory that it will ever need.
func newHistogram() *histogram { return &histogram{exact: make([]time.Duration, 0, exactMost)} }

// bucket of a value that is at least 0.
func bucket(v time.Duration) int {
	if v < 2*halfOctave {
		return int(v)
	}
	shift := bits.Len64(uint64(v)) - octaveBits
	return shift*halfOctave + int(v>>shift)
}

// middle of a bucket.
func middle(b int) time.Duration {
	if b < 2*halfOctave {
		return time.Duration(b)
	}
	shift := b/halfOctave - 1
	low := time.Duration(b-shift*halfOctave) << shift
	return low + time.Duration(1)<<shift/2
}

// add counts one value; below 0 it counts as 0.
func (h *histogram) add(v time.Duration) {
	v = max(v, 0)
	if len(h.exact) < cap(h.exact) {
		h.exact = append(h.exact, v)
	}
	h.n++
	h.sum.add(1, int64(v))
	h.most = max(h.most, v)
	h.count[bucket(v)]++
}

// mean in seconds, NaN of no values.
func (h *histogram) mean() float64 {
	if h.n == 0 {
		return math.NaN()
	}
	return h.sum.float() / float64(h.n) / float64(time.Second)
}

// quantiles by nearest rank, in seconds: for each q in (0,1], in rising order, the least value that at least q*n values
// do not exceed. NaN of no values.
func (h *histogram) quantiles(qs ...float64) []float64 {
	out := make([]float64, len(qs))
	if h.n == 0 {
		for i := range out {
			out[i] = math.NaN()
		}
		return out
	}
	value := h.bucketed()
	if h.n <= int64(len(h.exact)) {
		sorted := slices.Sorted(slices.Values(h.exact))
		value = func(rank int64) time.Duration { return sorted[rank-1] }
	}
	for i, q := range qs {
		rank := min(max(int64(math.Ceil(q*float64(h.n))), 1), h.n)
		out[i] = value(rank).Seconds()
	}
	return out
}

// bucketed gives values by rank, from 1, which has to rise from call to call.
func (h *histogram) bucketed() func(rank int64) time.Duration {
	b, seen := 0, h.count[0]
	return func(rank int64) time.Duration {
		for seen < rank {
			b++
			seen += h.count[b]
		}
		return min(middle(b), h.most)
	}
}

// Point of a cumulative distribution: Share of the values are at most Seconds.
type Point struct{ Seconds, Share float64 }

// curveSteps is how fine a distribution is drawn.
const curveSteps = 200

// curve is the distribution at 200 even shares; nil of no values.
func (h *histogram) curve() []Point {
	if h.n == 0 {
		return nil
	}
	shares := make([]float64, curveSteps)
	for i := range shares {
		shares[i] = float64(i+1) / curveSteps
	}
	points := make([]Point, curveSteps)
	for i, s := range h.quantiles(shares...) {
		points[i] = Point{Seconds: s, Share: shares[i]}
	}
	return points
}
