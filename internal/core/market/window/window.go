package window

import (
	"math"
	"time"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Endless is the length of a window without a known end.
const Endless = time.Duration(math.MaxInt64 - 1)

// Window is one offered gap. Invariant: between two announcements its time stands, and it is in at most one round that waits for agents.
type Window struct {
	id         uint64
	start, end quantity.Instant
	until      protocol.ReservationKind
	// offered: every waiting job has been asked, and since then every job that changed.
	offered bool
	// won: somebody was asked for it, and what is left is not announced yet.
	won bool
	// heard is the generation of the jobs in which all who had signalled were asked (mechanism sja, with agents): those that had
	// changed by then have been, too.
	heard uint64
	// round that it is in while agents are waited for, 0 if it is in none.
	round uint64
	// planned is when the first part of its plan that is not sold comes up for sale, 0 if there is none.
	planned quantity.Instant
}

// Of is a window that nobody has announced, such as the one behind a subjob that runs.
func Of(id uint64, start, end quantity.Instant) *Window {
	return &Window{id: id, start: start, end: end}
}

// ID of the window. One that only lost time at its front because the clock moved on keeps it.
func (w *Window) ID() uint64 { return w.id }

// Start is when it begins, End when it is over, Never if that is not known, and Until what ends it.
func (w *Window) Start() quantity.Instant { return w.start }

// End is when it is over, Never if that is not known.
func (w *Window) End() quantity.Instant { return w.end }

// Until is what ends it.
func (w *Window) Until() protocol.ReservationKind { return w.until }

// Length is what the window holds from now on, Endless if its end is not known.
func (w *Window) Length(now quantity.Instant) time.Duration {
	if w.end == quantity.Never {
		return Endless
	}
	return min(Endless-1, w.end.Sub(max(w.start, now)))
}

// Offered says whether every waiting job has been asked, and Won whether somebody was asked for it.
func (w *Window) Offered() bool { return w.offered }

// Won says whether somebody was asked for it.
func (w *Window) Won() bool { return w.won }

// Offer notes that every waiting job has been asked, Reopen that all are to be asked again.
func (w *Window) Offer() { w.offered = true }

// Reopen has everybody asked again.
func (w *Window) Reopen() { w.offered = false }

// Take notes that some of it was sold: what is left is announced again. Decline notes that everybody was asked and nothing was sold.
func (w *Window) Take() { w.offered, w.won = false, true }

// Decline notes that everybody was asked and nothing was sold.
func (w *Window) Decline() { w.offered, w.won = true, false }

// Heard is the generation of the jobs in which all who had signalled were asked.
func (w *Window) Heard() uint64 { return w.heard }

// Hear notes the generation of the jobs in which all who had signalled were asked.
func (w *Window) Hear(generation uint64) { w.heard = generation }

// Round is the one that it is in while agents are waited for, 0 if in none.
func (w *Window) Round() uint64 { return w.round }

// Await puts it in a round, 0 takes it out.
func (w *Window) Await(round uint64) { w.round = round }

// Planned is when the first part of its plan that is not sold comes up for sale, 0 if there is none.
func (w *Window) Planned() quantity.Instant { return w.planned }

// Plan has it come up for sale again at an instant, 0 if its plan is over.
func (w *Window) Plan(again quantity.Instant) { w.planned = again }

// Due says whether everybody is to be asked: for the first time, or since a part of its plan comes up for sale.
func (w *Window) Due(now quantity.Instant) bool {
	return !w.offered || w.planned != 0 && w.planned <= now
}
