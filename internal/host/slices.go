package host

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/inventory"
)

// slices lists what this node has, under names that are unique in a cluster: the node's name in front.
func (h *Host) slices(ctx context.Context) ([]protocol.Slice, error) {
	list, err := h.opts.Inventory.Slices(ctx)
	if err != nil {
		return nil, errkind.Errorf(errkind.Of(err), "list the slices of this machine: %w", err)
	}
	named := make([]protocol.Slice, len(list))
	for i, s := range list {
		s.ID = h.prefix() + s.ID
		named[i] = s
	}
	byID := make(map[job.SliceID]protocol.Slice, len(named))
	for _, s := range named {
		byID[s.ID] = s
	}
	h.named.Store(&byID)
	return named, nil
}

// slice describes one of them.
func (h *Host) slice(id job.SliceID) (protocol.Slice, bool) {
	if all := h.named.Load(); all != nil {
		s, ok := (*all)[id]
		return s, ok
	}
	return protocol.Slice{}, false
}

// use asks the inventory what processes use of a slice's own memory; nil if it can't tell.
func (h *Host) use() func(job.SliceID) (map[int]int64, error) {
	meter, ok := h.opts.Inventory.(inventory.Meter)
	if !ok {
		return nil
	}
	return func(id job.SliceID) (map[int]int64, error) {
		own, ok := strings.CutPrefix(string(id), string(h.prefix()))
		if !ok {
			return nil, errkind.Errorf(errkind.NotFound, "slice %s is not of this node", id)
		}
		return meter.Use(job.SliceID(own))
	}
}

// patientRoom is how many messages of the world may wait for the inventory to add one.
const patientRoom = 4096

// pause waits; it says false if ctx was done first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func (h *Host) prefix() job.SliceID { return job.SliceID(h.opts.NodeID) + "/" }

// watch looks for processes that are not ours on the slices for as long as the daemon runs, and tells the node. The
// function it returns ends that.
func (h *Host) watch(ctx context.Context) (stop func()) {
	if h.opts.Ours == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ours := func(s job.SliceID, pid int) bool { return h.opts.Ours(h.prefix()+s, pid) }
	report := func(s inventory.Sighting) {
		// It says each thing once, and none may be dropped: where too much waits it looks again later.
		for waiting, _ := h.inbox.load(); waiting[world] >= patientRoom && pause(ctx, retryFirst); waiting, _ = h.inbox.load() {
			continue
		}
		h.heard(protocol.Message{Kind: protocol.Foreign, Slice: h.prefix() + s.Slice, Flag: s.Present, Text: s.Text})
	}
	var done sync.WaitGroup
	done.Go(func() {
		if err := h.opts.Inventory.Watch(ctx, ours, report); err != nil {
			h.log.Warn("nobody looks for foreign processes on the slices any more", "error", fmt.Errorf("watch %s: %w",
				strings.TrimSpace(h.opts.Inventory.Describe()), err))
		}
	})
	return func() { cancel(); done.Wait() }
}
