package host

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// pruneEvery is the least time between two looks for stored work directories that nobody needs any more. Files younger
// than that are never removed anyway.
const pruneEvery = time.Hour

// pruneUnpackedEvery is the same for those that are unpacked: a copy that is missed is made again.
const pruneUnpackedEvery = time.Minute

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

// needs notes what a fact changes of who needs which stored work directory.
func (h *Host) needs(f *protocol.Fact) {
	h.workdirs.fact(f)
	h.closed = h.closed || f.Kind == protocol.JobClosed
	h.forgot = h.forgot || f.Kind == protocol.JobForgotten
}

func (h *Host) pruneUnpacked() {
	h.closed = false
	if err := h.files.PruneUnpacked(func(id string) bool { return h.workdirs.live[id] > 0 }); err != nil {
		h.log.Warn("could not remove unpacked work directories that nobody needs any more", "error", err)
	}
}

// pruneSnapshots looks through the stored work directories beside the loop. A job that leaves memory meanwhile is in the archive
// before it does, one that is taken back stays there until it is over again, and one that is submitted has a young file.
func (h *Host) pruneSnapshots() {
	h.forgot = false
	needed := maps.Clone(h.workdirs.needs)
	h.background.Go(func() {
		err := h.files.PruneSnapshots(func(id string) bool {
			if needed[id] > 0 || h.archivist == nil {
				return needed[id] > 0
			}
			needs, err := h.archivist.archive.NeedsSnapshot(id)
			if err != nil {
				h.log.Warn("could not look who needs a stored work directory", "snapshot", id, "error", err)
			}
			return needs || err != nil
		})
		if err != nil {
			h.log.Warn("could not remove work directories that nobody needs any more", "error", err)
		}
	})
}

// sweep removes the files of jobs that nobody knows any more, beside the loop: a Purge may have been lost with an earlier boot.
func (h *Host) sweep() {
	if h.files == nil {
		return
	}
	h.pruneSnapshots()
	h.pruneUnpacked()
	h.background.Go(func() {
		err := h.files.Stored(func(id job.ID) error {
			select {
			case <-h.done:
				return errStopping()
			default:
			}
			if life, err := h.archivedLife(id); err == nil && life == 0 {
				h.purgeUnknown(id)
			}
			return nil
		})
		if err != nil && errkind.Of(err) != errkind.Unavailable {
			h.log.Warn("could not look for files that nobody needs any more", "error", err)
		}
	})
}

// purgeUnknown removes the files of a job if neither the gate nor the archive knows it. The executor does it before it returns, so
// that a job of that name which is accepted later finds the place clear.
func (h *Host) purgeUnknown(id job.ID) {
	failed, err := ask(context.Background(), h, func(quantity.Instant) error {
		if h.actors.GateOf(id).Life(id) != 0 {
			return nil
		}
		life, err := h.archivedLife(id) // it may have left memory just now
		if err == nil && life == 0 {
			h.executor.Do(protocol.Message{Kind: protocol.Purge, From: h.gateAddress(), To: protocol.Address{Role: protocol.Executor}, Job: id}, h.position)
		}
		return err
	})
	if err = errors.Join(failed, err); err != nil && errkind.Of(err) != errkind.Unavailable {
		h.log.Warn("could not look whether anybody needs the files of a job", "job", string(id), "error", err)
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
	for _, name := range slices.Sorted(maps.Keys(h.workdirs.of)) {
		id := h.workdirs.of[name].id
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
		if v, known := h.job(h.clock.now(), name); !known || !v.State.Final() {
			lost = append(lost, name)
		}
	}
	for _, name := range lost[:min(len(lost), mostNamed)] {
		h.log.Error("the stored work directory of a job is missing, and it can not run without it",
			"job", string(name), "snapshot", h.workdirs.of[name].id, "below", h.opts.DataDir,
			"todo", "restore the file from a backup, or submit the same job again from its work directory")
	}
	if more := len(lost) - mostNamed; more > 0 {
		h.log.Error("the stored work directories of further jobs are missing", "jobs", more)
	}
}
