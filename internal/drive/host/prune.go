package host

import (
	"time"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// pruneEvery is the least time between two looks for stored work directories that nobody needs any more. Files younger
// than that are never removed anyway.
const pruneEvery = time.Hour

// needs notes which stored work directory a job needs, and that it needs none any more.
func (h *Host) needs(f *protocol.Fact) {
	switch {
	case f.Kind == protocol.JobAccepted && f.Spec != nil:
		h.snapshots[f.Job] = f.Spec.Launch.Snapshot
	case f.Kind == protocol.JobForgotten:
		delete(h.snapshots, f.Job)
		h.forgot = true
	}
}

// tidy removes now and then what forgotten jobs have left.
func (h *Host) tidy(now quantity.Instant) {
	if h.files != nil && h.forgot && now >= h.pruned.Add(pruneEvery) {
		h.pruned = now
		h.pruneSnapshots()
	}
}

func (h *Host) pruneSnapshots() {
	h.forgot = false
	needed := make(map[string]bool, len(h.snapshots))
	for _, snapshot := range h.snapshots {
		needed[snapshot] = true
	}
	if err := h.files.PruneSnapshots(func(id string) bool { return needed[id] }); err != nil {
		h.log.Warn("could not remove work directories that nobody needs any more", "error", err)
	}
}
