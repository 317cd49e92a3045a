// Package lengths estimates until when Pods run that state no end, by how long earlier Pods of the same owner ran. The bound holds with
// some probability: good enough to plan what follows, which is withdrawn if the Pod stays, and never a reason to start anything. It must
// not know Kubernetes' objects.
package lengths

import (
	"slices"

	"sluice.dev/sluice/internal/core/ends"
	"sluice.dev/sluice/internal/core/quantity"
)

const (
	// Fewest is how many Pods of an owner must have ended before their successors' ends are estimated: the longest of 19 is exceeded with
	// a chance of 1/20.
	Fewest = 19
	// sure is the quantile of lengths in parts per million. Of n lengths the bound is the k-th shortest, k = floor(.975 (n+1)), exceeded
	// with a chance of at most .025 + 1/(n+1) where n >= 39; below that it is the longest, exceeded with 1/(n+1) (conformal prediction,
	// docs/adr/0015-learned-profiles.md).
	sure = 975_000
	// mostOwners bounds the owners that are remembered; the least recently updated is dropped.
	mostOwners = 1024
)

// Lengths are distributions of how long Pods ran, by owner. Pods that still run count as censored.
type Lengths struct {
	of     map[string]*ends.Curve
	taught []string
	open   map[string]run
}

// run is a Pod that runs.
type run struct {
	of    string
	since quantity.Instant
	// said is the last estimate of its end.
	said quantity.Instant
}

// New has seen no Pod.
func New() Lengths {
	return Lengths{of: map[string]*ends.Curve{}, open: map[string]run{}}
}

// Begun records that a Pod of an owner runs.
func (l *Lengths) Begun(uid string, of string, since quantity.Instant) {
	if _, known := l.open[uid]; known || since == 0 {
		return
	}
	l.open[uid] = run{of: of, since: since}
	if c := l.of[of]; c != nil {
		c.Open(since)
		return
	}
	l.curve(of).Open(since)
}

// Over records that a Pod has ended; cut: it was deleted, or its end not seen, so its length is censored.
func (l *Lengths) Over(uid string, now quantity.Instant, cut bool) {
	r, known := l.open[uid]
	if !known {
		return
	}
	delete(l.open, uid)
	c := l.curve(r.of)
	c.Close(r.since)
	c.Add(now.Sub(r.since), cut)
}

// curve is an owner's distribution, marked as most recently updated.
func (l *Lengths) curve(of string) *ends.Curve {
	if i := slices.Index(l.taught, of); i >= 0 {
		l.taught = slices.Delete(l.taught, i, i+1)
	}
	l.taught = append(l.taught, of)
	if l.of[of] == nil {
		l.of[of] = &ends.Curve{}
	}
	if len(l.taught) > mostOwners {
		delete(l.of, l.taught[0])
		l.taught = slices.Delete(l.taught, 0, 1)
	}
	return l.of[of]
}

// Until estimates when a running Pod will be gone; Never if too little is known or it has outlived the bound. An estimate changes only
// when it is off by more than a tenth, since every Pod that ends shifts it a little.
func (l *Lengths) Until(now quantity.Instant, uid string) quantity.Instant {
	r := l.open[uid]
	c := l.of[r.of]
	if c == nil || c.Len() < Fewest {
		return quantity.Never
	}
	long, ok := c.Residual(now, 0, sure)
	if !ok || long == ends.None || r.since.Add(long) <= now {
		return quantity.Never
	}
	if end := r.since.Add(long); r.said <= now || max(end.Sub(r.said), r.said.Sub(end)) > long/10 {
		r.said = end
		l.open[uid] = r
	}
	return r.said
}

// Open is how many Pods run, as far as it knows.
func (l *Lengths) Open() int { return len(l.open) }
