package measure

import "time"

// idleness is for how long how many slices of a class were idle: all that utilization and fragmentation need to know of
// the past, whatever jobs are still to come.
type idleness struct {
	now   int
	since time.Duration
	// at[k] is for how long exactly k were idle.
	at []time.Duration
}

// newIdleness of count slices, all idle.
func newIdleness(count int) idleness { return idleness{now: count, at: make([]time.Duration, count+1)} }

// take makes n fewer idle from t on; false if there are not that many, or more than all.
func (d *idleness) take(t time.Duration, n int) bool {
	d.settle(t)
	d.now -= n
	return d.now >= 0 && d.now < len(d.at)
}

// settle counts the time up to t.
func (d *idleness) settle(t time.Duration) {
	d.at[d.now] += t - d.since
	d.since = t
}

// total is idle slice-time, in nanoseconds.
func (d *idleness) total() float64 { return d.below(len(d.at)) }

// below is idle slice-time while fewer than n were idle: of no use to a job that needs n at once.
func (d *idleness) below(n int) float64 {
	var sum float64
	for k, t := range d.at[:min(n, len(d.at))] {
		sum += float64(k) * float64(t)
	}
	return sum
}
