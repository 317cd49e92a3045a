package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/journal/disk"
	"sluice.dev/sluice/internal/edge/volume"
	"sluice.dev/sluice/internal/edge/volume/usage"
)

// ReserveName is the file of a data directory that keeps some space of its file system, so that facts can be written when all other is
// used up. Its content counts for nothing, and it may be removed.
const ReserveName = "reserve"

const (
	// spaceEvery is how often the file system of the data directory is looked at.
	spaceEvery = time.Second
	// fullLooks is how many looks in a row must find it full before the reserve is released: a subjob that fills the disk is ended
	// by its supervisor meanwhile, and would use up the reserve too.
	fullLooks = 2
)

// space watches the free space of the data directory's file system, and owns the reserve there. journalFull and shortage may be read by
// any goroutine; all else belongs to one goroutine at a time: Open's, then that of watchSpace.
type space struct {
	dir     string
	root    bool // the daemon is root, for whom file systems keep blocks
	reserve *volume.Reserve
	looks   int // in a row that found it full
	// journalFull is set if the last append of the journal failed for want of space: that knows of quotas too, which a file system does not
	// tell. It is what the append met, volume.HiddenQuota or, of anything else, volume.Whole.
	journalFull atomic.Pointer[volume.Limit]
	// shortage is set from the release of the reserve until it is held again.
	shortage atomic.Pointer[trouble]
}

func (s *space) set(dir string) {
	s.dir, s.root, s.reserve = dir, os.Geteuid() == 0, volume.NewReserve(filepath.Join(dir, ReserveName), dir)
}

// noteAppend takes down how the last append of the journal went.
func (s *space) noteAppend(err error) {
	if !disk.Full(err) {
		s.journalFull.Store(nil)
		return
	}
	met := volume.Whole
	if volume.OverQuota(err) {
		met = volume.HiddenQuota
	}
	s.journalFull.Store(&met)
}

// refusal is why no job is accepted now, nil if jobs are: a new job would take the space that ends of running subjobs need.
func (s *space) refusal() error {
	if t := s.shortage.Load(); t != nil {
		return errkind.Errorf(errkind.Exhausted, "%w: ask again once it is over, with the same request id", t.cause)
	}
	return nil
}

// watchSpace checks the space until ctx is done.
func (h *Host) watchSpace(ctx context.Context) {
	for pause(ctx, spaceEvery) {
		h.checkSpace()
	}
}

// checkSpace releases the reserve when the file system is full, and takes it again when there is space for it. Without the reserve
// nothing is sold and no job is accepted: what is free then is for the ends of what runs.
func (h *Host) checkSpace() {
	s := &h.space
	state, err := volume.LookOwn(s.dir)
	full := err == nil && state.Full(s.root)
	if met := s.journalFull.Load(); met != nil {
		if !full && *met == volume.HiddenQuota { // what is free of anything else is not what is left
			state = volume.State{Limit: *met}
		}
		full = true
	}
	if !full {
		s.looks = 0
		if !s.reserve.Held() {
			h.holdReserve()
		}
		return
	}
	if s.looks++; s.looks < fullLooks {
		return
	}
	if s.reserve.Held() {
		if err := s.reserve.Release(); err != nil {
			h.log.Error("the disk is full, and its reserve can't be given up", "error", err)
		}
	}
	if s.shortage.Load() == nil {
		h.setShortage(state, state.Text(s.root)+", and the reserve is in use")
	}
}

// holdReserve takes the reserve if there is space for it, and else says that the disk is full.
func (h *Host) holdReserve() {
	s := &h.space
	if err := s.reserve.Hold(s.root); err != nil {
		if s.shortage.Load() == nil {
			state, _ := volume.LookOwn(s.dir)
			if volume.OverQuota(err) && !state.Full(s.root) {
				state = volume.State{Limit: volume.HiddenQuota}
			}
			h.setShortage(state, err.Error())
		}
		return
	}
	if s.shortage.Swap(nil) != nil {
		h.ail(troubleOfDisk, &protocol.Ailment{})
		h.log.Info("there is room in the data directory again")
	}
}

// troubleOfDisk is the key of a full disk among the reasons for which the nodes start nothing; executor and inventory have keys of their
// own.
const troubleOfDisk = "disk"

// setShortage notes and logs that the disk, or a quota there, is full, with what takes the space of the data directory, and has the nodes
// sell nothing.
func (h *Host) setShortage(of volume.State, what string) {
	cause := fmt.Errorf("no space left on device %s, where the data directory is: %s; %s",
		volume.Name(h.space.dir), what, usage.Of(h.space.dir))
	if of.Limit != volume.Whole {
		cause = fmt.Errorf("disk quota exceeded: %s, where the data directory is, is used up: %s; %s",
			of.Name(h.space.dir), what, usage.Of(h.space.dir))
	}
	h.space.shortage.Store(&trouble{cause: cause})
	h.log.Error("the disk is full", "reason", cause.Error(), "todo", "make room; the daemon goes on by itself")
	h.ail(troubleOfDisk, &protocol.Ailment{Ails: true, Text: cause.Error()})
}

// failed is the error of a start that failed. Of a full disk it says what takes the space; after any other error the reserve is taken
// again.
func (h *Host) failed(err error) error {
	s := &h.space
	if !disk.Full(err) {
		if h.lock != nil { // else the reserve is another daemon's
			_ = s.reserve.Hold(s.root) // the next start can do without
		}
		return err
	}
	where, text := "on "+volume.Name(s.dir)+" ", ""
	state, bad := volume.LookOwn(s.dir)
	switch {
	case volume.OverQuota(err) && (bad != nil || state.Limit == volume.Whole):
		where = volume.State{Limit: volume.HiddenQuota}.Name(s.dir) + " is used up, whatever else is free there; "
	case bad == nil && state.Limit != volume.Whole:
		where, text = "of "+state.Name(s.dir)+" ", state.Text(s.root)+"; "
	case bad == nil:
		text = state.Text(s.root) + "; "
	}
	return errkind.Errorf(errkind.Exhausted, "%w (%s%s%s; make room and start it again)", err, where, text, usage.Of(s.dir))
}

// release gives the reserve up for a start: the daemon has to write before it can free anything.
func (s *space) release() error {
	if err := s.reserve.Release(); err != nil {
		return fmt.Errorf("give up the reserve of the data directory: %w", err)
	}
	return nil
}
