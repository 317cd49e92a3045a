// Package space watches the free space of the data directory, and keeps some of it in reserve for facts.
package space

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/journal/disk"
	"sluice.dev/sluice/internal/edge/volume"
	"sluice.dev/sluice/internal/edge/volume/usage"
	"sluice.dev/sluice/internal/host/trouble"
)

// ReserveName is the file of a data directory that keeps some space of its file system, so that facts can be written when all other is
// used up. Its content is meaningless, and it may be removed.
const ReserveName = "reserve"

const (
	// spaceEvery is how often the file system of the data directory is looked at.
	spaceEvery = time.Second
	// fullLooks is how many looks in a row must find it full before the reserve is released: a subjob that fills the disk is ended
	// by its supervisor meanwhile, and would use up the reserve too.
	fullLooks = 2
)

// Space watches the free space of the data directory's file system, and owns the reserve there: either the reserve is held, or there is a
// shortage and jobs are refused. NoteAppend and Refusal are safe for concurrent use; all else belongs to one goroutine at a time: that
// which opens the daemon, then that of Watch.
type Space struct {
	log     *slog.Logger
	trouble *trouble.State
	dir     string
	root    bool // the daemon is root, for whom file systems keep blocks
	reserve *volume.Reserve
	looks   int // in a row that found it full
	// journalFull is set if the last append of the journal failed for want of space: that knows of quotas too, which a file system does not
	// tell. It is what the append met, volume.HiddenQuota or, of anything else, volume.Whole.
	journalFull atomic.Pointer[volume.Limit]
	// shortage is set from the release of the reserve until it is held again.
	shortage atomic.Pointer[error]
}

// New watches the space of a data directory. Shortages are reported to the nodes.
func New(dir string, t *trouble.State, log *slog.Logger) *Space {
	return &Space{log: log, trouble: t, dir: dir, root: os.Geteuid() == 0, reserve: volume.NewReserve(filepath.Join(dir, ReserveName), dir)}
}

// NoteAppend notes how the last append of the journal went.
func (s *Space) NoteAppend(err error) {
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

// Refusal is why no job is accepted now, nil if jobs are: a new job would take the space that ends of running subjobs need.
func (s *Space) Refusal() error {
	if cause := s.shortage.Load(); cause != nil {
		return errkind.Errorf(errkind.Exhausted, "%w: ask again once it is over, with the same request id", *cause)
	}
	return nil
}

// Watch checks the space until ctx is done.
func (s *Space) Watch(ctx context.Context) {
	for {
		select {
		case <-time.After(spaceEvery):
			s.check()
		case <-ctx.Done():
			return
		}
	}
}

// check releases the reserve when the file system is full, and takes it again when there is space for it. Without the reserve
// nothing is sold and no job is accepted: what is free then is for the ends of what runs.
func (s *Space) check() {
	state, err := volume.LookOwn(s.dir)
	full := err == nil && state.Full(s.root)
	if met := s.journalFull.Load(); met != nil {
		if !full && *met == volume.HiddenQuota { // the free space of a file system says nothing about a quota
			state = volume.State{Limit: *met}
		}
		full = true
	}
	if !full {
		s.looks = 0
		if !s.reserve.Held() {
			s.Hold()
		}
		return
	}
	if s.looks++; s.looks < fullLooks {
		return
	}
	if s.reserve.Held() {
		if err := s.reserve.Release(); err != nil {
			s.log.Error("the disk is full, and its reserve can't be given up", "error", err)
		}
	}
	if s.shortage.Load() == nil {
		s.short(state, state.Text(s.root)+", and the reserve is in use")
	}
}

// Hold takes the reserve if there is space for it, and else says that the disk is full.
func (s *Space) Hold() {
	if err := s.reserve.Hold(s.root); err != nil {
		if s.shortage.Load() == nil {
			state, _ := volume.LookOwn(s.dir)
			if volume.OverQuota(err) && !state.Full(s.root) {
				state = volume.State{Limit: volume.HiddenQuota}
			}
			s.short(state, err.Error())
		}
		return
	}
	if s.shortage.Swap(nil) != nil {
		s.trouble.Report(source, &protocol.Condition{})
		s.log.Info("there is room in the data directory again")
	}
}

// source is who reports a full disk.
const source = "disk"

// short notes and logs that the disk, or a quota there, is full, with what uses the space of the data directory, and has the nodes sell
// nothing.
func (s *Space) short(of volume.State, what string) {
	cause := fmt.Errorf("no space left on device %s, where the data directory is: %s; %s",
		volume.Name(s.dir), what, usage.Of(s.dir))
	if of.Limit != volume.Whole {
		cause = fmt.Errorf("disk quota exceeded: %s, where the data directory is, is used up: %s; %s",
			of.Name(s.dir), what, usage.Of(s.dir))
	}
	s.shortage.Store(&cause)
	s.log.Error("the disk is full", "reason", cause.Error(), "todo", "make room; the daemon goes on by itself")
	s.trouble.Report(source, &protocol.Condition{Unhealthy: true, Text: cause.Error()})
}

// Failed is the error of a start that failed. Of a full disk it says what takes the space; after any other error the reserve is taken
// again, if the directory is ours.
func (s *Space) Failed(err error, ours bool) error {
	if !disk.Full(err) {
		if ours { // else the reserve is another daemon's
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

// Release gives the reserve up for a start: the daemon has to write before it can free anything.
func (s *Space) Release() error {
	if err := s.reserve.Release(); err != nil {
		return fmt.Errorf("give up the reserve of the data directory: %w", err)
	}
	return nil
}
