package observe

import (
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// windows follows what is offered on each slice, and how much of it passes unused.
type windows struct {
	metrics *metrics
	slices  map[sliceKey]*offered
}

type offered struct {
	version uint64
	usable  bool
	gaps    []protocol.Gap // as of the last Offer; nobody writes to it any more
	since   quantity.Instant
}

// offer takes a newer view of a slice. Until now the older one was true.
func (w *windows) offer(now quantity.Instant, v *protocol.SliceView) {
	o := w.slices[v.Slice.ID]
	if o == nil {
		o = &offered{}
		w.slices[v.Slice.ID] = o
		w.metrics.slices.WithLabelValues(unusable).Inc()
	} else if v.Version <= o.version {
		return
	}
	w.metrics.unfilled.Add(idle(o.gaps, o.since, now))
	if o.usable != v.Usable {
		w.metrics.slices.WithLabelValues(label(o.usable)).Dec()
		w.metrics.slices.WithLabelValues(label(v.Usable)).Inc()
	}
	var gaps []protocol.Gap
	if v.Usable {
		gaps = v.Gaps
	}
	for _, g := range gaps {
		if !within(o.gaps, g.Start) {
			w.metrics.offered.Inc()
		}
	}
	o.version, o.usable, o.gaps, o.since = v.Version, v.Usable, gaps, now
}

func label(ok bool) string {
	if ok {
		return usable
	}
	return unusable
}

// idle is the time of [from, to) that lies in gaps, in seconds.
func idle(gaps []protocol.Gap, from, to quantity.Instant) float64 {
	var sum float64
	for _, g := range gaps {
		if a, b := max(from, g.Start), min(to, g.End); a < b {
			sum += b.Sub(a).Seconds()
		}
	}
	return sum
}

// within reports whether t lies in a gap: a gap that begins within an older one is the rest of it.
func within(gaps []protocol.Gap, t quantity.Instant) bool {
	for _, g := range gaps {
		if g.Start <= t && t < g.End {
			return true
		}
	}
	return false
}
