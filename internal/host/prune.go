package host

import (
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// pruneEvery is the least time between two looks for stored work directories that nobody needs any more. Files younger
// than that are never removed anyway.
const pruneEvery = time.Hour

// pruneUnpackedEvery is the same for those that are unpacked: a copy that is missed is made again.
const pruneUnpackedEvery = time.Minute

// needs notes which stored work directory a job needs, and that it needs none any more.
func (h *Host) needs(f *protocol.Fact) {
	switch {
	case f.Kind == protocol.JobAccepted && f.Spec != nil:
		h.snapshots[f.Job] = f.Spec.Launch.Snapshot
		delete(h.over, f.Job)
	case f.Kind == protocol.JobRequeued: // of the same work directory
		delete(h.over, f.Job)
	case f.Kind == protocol.JobClosed:
		h.over[f.Job] = true
		h.closed = true
	case f.Kind == protocol.JobForgotten: // one that takes its place in the same step is accepted behind it
		delete(h.snapshots, f.Job)
		delete(h.over, f.Job)
		h.forgot = true
	}
}

// tidy removes now and then what jobs have left that are over or forgotten.
func (h *Host) tidy(now quantity.Instant) {
	if h.files != nil && h.closed && now >= h.prunedUnpacked.Add(pruneUnpackedEvery) {
		h.prunedUnpacked = now
		h.pruneUnpacked()
	}
	if h.files != nil && h.forgot && now >= h.pruned.Add(pruneEvery) {
		h.pruned = now
		h.pruneSnapshots()
	}
}

func (h *Host) pruneUnpacked() {
	h.closed = false
	live := map[string]bool{}
	for name, snapshot := range h.snapshots {
		if !h.over[name] {
			live[snapshot] = true
		}
	}
	if err := h.files.PruneUnpacked(func(id string) bool { return live[id] }); err != nil {
		h.log.Warn("could not remove unpacked work directories that nobody needs any more", "error", err)
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

// mostNamed bounds how many jobs without their work directory are named one by one.
const mostNamed = 20

// missingSnapshots names the unfinished jobs whose stored work directory is gone: they can't run, and nobody else would say
// so before their next start.
func (h *Host) missingSnapshots() {
	if h.files == nil {
		return
	}
	gone := map[string]bool{}
	var lost []job.ID
	for _, name := range slices.Sorted(maps.Keys(h.snapshots)) {
		id := h.snapshots[name]
		if id == "" {
			continue
		}
		if _, looked := gone[id]; !looked {
			there, err := h.files.HasSnapshot(id)
			if err != nil {
				h.log.Warn("could not look for a stored work directory", "snapshot", id, "error", err)
			}
			gone[id] = err == nil && !there
		}
		if !gone[id] {
			continue
		}
		if v, known := h.actors.Zone.Job(h.clock.now(), name); !known || !v.State.Final() {
			lost = append(lost, name)
		}
	}
	for _, name := range lost[:min(len(lost), mostNamed)] {
		h.log.Error("the stored work directory of a job is missing, and it can not run without it",
			"job", string(name), "snapshot", h.snapshots[name], "below", h.opts.DataDir,
			"todo", "restore the file from a backup, or submit the same job again from its work directory")
	}
	if more := len(lost) - mostNamed; more > 0 {
		h.log.Error("the stored work directories of further jobs are missing", "jobs", more)
	}
}
