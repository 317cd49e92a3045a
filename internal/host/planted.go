package host

import "time"

// dispatchEarly is the planted bug AckBeforeFacts: effects leave, and only a while later the facts are stored. Ordinary
// builds never call it; see package planted.
func (h *Host) dispatchEarly() {
	facts, steps := h.out.Facts, h.steps
	h.out.Facts = nil
	h.dispatch()
	h.out.Facts, h.steps = facts, steps
	time.Sleep(20 * time.Millisecond)
}
