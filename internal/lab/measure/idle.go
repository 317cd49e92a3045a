package measure

import (
	"time"

	"sluice.dev/sluice/internal/core/invariant"
)

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

// stock is the slices that nobody holds. Invariant: weight is that of all that are idle now.
type stock struct {
	classes []Class
	idle    []idleness
	weight  int64 // of the idle capacity now
	unsold  area  // weight times time, while a job waits
}

func newStock(classes []Class) stock {
	s := stock{classes: classes}
	for _, k := range classes {
		s.idle = append(s.idle, newIdleness(k.Count))
		s.weight += int64(k.Count) * k.Weight
	}
	return s
}

// take takes n slices from the idle ones, or gives them back if n is negative.
func (s *stock) take(t time.Duration, class uint8, n int32) {
	k := &s.classes[class]
	if !s.idle[class].take(t, int(n)) {
		invariant.Check(false, "metrics: %d slices of class %q taken %v into the window, %d of %d are idle", n, k.Name, t,
			s.idle[class].now, k.Count)
	}
	s.weight -= int64(n) * k.Weight
}

// idleTime of all slices, weighted.
func (s *stock) idleTime() float64 {
	var sum float64
	for c, k := range s.classes {
		sum += float64(k.Weight) * s.idle[c].total()
	}
	return sum
}
