package clearing

// Bid is one variant as clearing sees it.
type Bid struct {
	// Start and End, half-open, in any unit of time, relative to anything: 0 to 1<<40.
	Start, End int64
	// Weight, at least 0. Sums of all weights must stay below 1<<62.
	Weight int64
	// Job is the owner, a dense number from 0 on. Bids are compared by (Job, ID) where everything else is equal.
	Job, ID int32
	// Work names what the bid would do, any number. Only Joint looks at it: bids of one job with the same Work exclude each
	// other in all windows.
	Work int32
}

const (
	// Horizon is the latest End.
	Horizon = 1 << 40
	// MaxBids is how many bids are cleared at once; more are a broken invariant.
	MaxBids = 1 << indexBits
)

// sound says whether b can win at all: it is not empty, within its bounds, and worth something.
func (b *Bid) sound() bool {
	return b.fits() && b.Weight > 0
}

// fits says whether b could be fixed: as sound, but it may be worth nothing.
func (b *Bid) fits() bool {
	return b.Start >= 0 && b.Start < b.End && b.End <= Horizon && b.Weight >= 0 && b.Job >= 0
}

// overlaps says whether b and d share an instant.
func (b *Bid) overlaps(d *Bid) bool { return b.Start < d.End && d.Start < b.End }

// row is a sound bid in its place by End.
type row struct {
	start, end, weight int64
	// before is how many rows end at or before start: they are compatible with this one, later rows are not.
	before int32
	// bid is its index, group its job; in Joint its job and work.
	bid, group int32
}

// sized is s with length n and what was in it in no particular state, grown only when it must.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}

// filled is s with length n and v everywhere.
func filled[T any](s []T, n int, v T) []T {
	s = sized(s, n)
	for i := range s {
		s[i] = v
	}
	return s
}
