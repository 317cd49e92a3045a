package interest

import (
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/quantity"
)

const (
	// tenure is for how long since its start a program is a reason to pass over others: those who wait know when that is over.
	tenure = 30 * time.Minute
	// mostKin jobs in the policy's order, of each queue where it orders by these, are looked at for one that can go on in the program that
	// stays.
	mostKin = 256
)

// kin is the job that is given a window instead of the one that the policy asks first, since it can go on in the program that stays on the
// slice, and nobody pays for a start: the first in the order that can, of the same queue and with no lower priority, so that no queue's
// share and no owner's word is passed over. nil: there is none, or the one that is asked first can itself.
func (x *Interest) kin(now quantity.Instant, pick *index.Job, s *window.Slice, w *window.Window) (*index.Job, atomizer.Piece) {
	r := s.Resident()
	if r == nil || pick == nil || pick.Residence() == r.Number || now.Sub(r.Since) >= tenure {
		return nil, atomizer.Piece{}
	}
	queue, _ := pick.Queue()
	for _, g := range x.index.Groups() {
		jobs, looked := g.On(s.Class().At()), 0
		if jobs == nil {
			continue
		}
		for j := range jobs.Within(w.Length(now)) {
			if looked++; looked > mostKin {
				break
			}
			if j.Residence() != r.Number || j.Spec().Priority < pick.Spec().Priority {
				continue
			}
			if its, _ := j.Queue(); its != queue {
				continue
			}
			if p, refusal := x.est.Cut(j, s, now, w.End()); refusal.Why == atomizer.Interested && p.Resident {
				return j, p
			}
		}
	}
	return nil, atomizer.Piece{}
}
