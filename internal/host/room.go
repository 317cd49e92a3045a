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
)

// ReserveName is the file of a data directory that takes a little room, so that facts can be written when all other is gone. It has no
// content that counts, and may be removed.
const ReserveName = "reserve"

const (
	// roomEvery is how often the file system of the data directory is looked at.
	roomEvery = time.Second
	// fullLooks is how many looks in a row find it full before the reserve is given up: whoever fills it is ended meanwhile by its
	// supervisor,
	// and would take the reserve too.
	fullLooks = 2
)

// room is the room of the data directory's file system. But for wanted and low it belongs to one goroutine at a time: of Open, then of
// Run's watchRoom.
type room struct {
	dir     string
	root    bool
	reserve *volume.Reserve
	looks   int // in a row that have found it full
	// wanted: the journal was refused what it wanted to write. It knows of quotas, too, of which the file system does not tell.
	wanted atomic.Bool
	// low is set from when the reserve was given up until there is room for it again.
	low atomic.Pointer[trouble]
}

func (r *room) set(dir string) {
	r.dir, r.root, r.reserve = dir, os.Geteuid() == 0, volume.NewReserve(filepath.Join(dir, ReserveName), dir)
}

// refusal is why nothing new is taken on, nil if it is: it would take what ends of subjobs need.
func (r *room) refusal() error {
	if t := r.low.Load(); t != nil {
		return errkind.Errorf(errkind.Exhausted, "%w: ask again once it is over, with the same request id", t.cause)
	}
	return nil
}

// watchRoom looks at the room until ctx is done.
func (h *Host) watchRoom(ctx context.Context) {
	for pause(ctx, roomEvery) {
		h.lookAtRoom()
	}
}

// lookAtRoom gives the reserve up when the file system is full, and takes it again when there is room. Without the reserve nothing is
// sold and
// nothing new is taken on: what is left is for the ends of what runs.
func (h *Host) lookAtRoom() {
	r := &h.room
	s, err := volume.Look(r.dir)
	full := r.wanted.Load() || err == nil && s.Full(r.root)
	if !full {
		r.looks = 0
		if !r.reserve.Held() {
			h.holdReserve()
		}
		return
	}
	if r.looks++; r.looks < fullLooks {
		return
	}
	if r.reserve.Held() {
		if err := r.reserve.Release(); err != nil {
			h.log.Error("the disk is full, and its reserve can't be given up", "error", err)
		}
	}
	if r.low.Load() == nil {
		h.setLow(s.Text(r.root) + ", and the reserve is in use")
	}
}

// holdReserve takes the reserve, if there is room for it.
func (h *Host) holdReserve() {
	r := &h.room
	if err := r.reserve.Hold(r.root); err != nil {
		if r.low.Load() == nil {
			h.setLow(err.Error())
		}
		return
	}
	if r.low.Swap(nil) != nil {
		h.ail(ailDisk, &protocol.Ailment{})
		h.log.Info("there is room in the data directory again")
	}
}

// ailDisk is who says that the disk is full.
const ailDisk = "disk"

// setLow says once that the disk is full, and who fills it.
func (h *Host) setLow(what string) {
	cause := fmt.Errorf("no space left on device %s, where the data directory is: %s; %s",
		volume.Name(h.room.dir), what, holders(h.room.dir))
	h.room.low.Store(&trouble{cause: cause})
	h.log.Error("the disk is full", "reason", cause.Error(), "todo", "make room; the daemon goes on by itself")
	h.ail(ailDisk, &protocol.Ailment{Ails: true, Text: cause.Error()})
}

// failed is the error of a start that did not come to its end. Where the disk is full it says who fills it; else the reserve is there
// again.
func (h *Host) failed(err error) error {
	r := &h.room
	if !disk.Full(err) {
		if h.lock != nil { // else it is another daemon's
			_ = r.reserve.Hold(r.root) // without it the next start does as well
		}
		return err
	}
	text := ""
	if s, failed := volume.Look(r.dir); failed == nil {
		text = s.Text(r.root) + "; "
	}
	return errkind.Errorf(errkind.Exhausted, "%w (on %s %s%s; make room and start it again)", err, volume.Name(r.dir), text, holders(r.dir))
}

// letGo gives the reserve up for a start: what the daemon has to write before it can make room has some.
func (r *room) letGo() error {
	if err := r.reserve.Release(); err != nil {
		return fmt.Errorf("give up the reserve of the data directory: %w", err)
	}
	return nil
}
