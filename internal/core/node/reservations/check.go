package reservations

import (
	"errors"
	"time"

	"sluice.dev/sluice/internal/core/civil"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
)

// check lists everything that is wrong with a person's reservation, which may have begun at most past ago.
func check(now quantity.Instant, r *protocol.Reservation, past time.Duration) error {
	var problems []error
	problem := func(format string, args ...any) {
		problems = append(problems, errkind.Errorf(errkind.Invalid, format, args...))
	}
	switch r.Kind {
	case protocol.ForDrain, protocol.ForMaintenance, protocol.ForReclaim, protocol.ForServing, protocol.ForGeometry, protocol.ForOwner:
	default:
		problem("kind %v (%d) can't be reserved by people; use drain, maintenance, reclaim, serving, geometry or owner", r.Kind, r.Kind)
	}
	length := r.End.Sub(r.Start)
	switch {
	case r.End <= r.Start:
		problem("it ends at %s, which is not after its start at %s", timeline.Clock(r.End), timeline.Clock(r.Start))
	case r.Every == 0 && r.End <= now:
		problem("it ended at %s, and it is %s now", timeline.Clock(r.End), timeline.Clock(now))
	case r.Every == 0 && now.Sub(r.Start) > past:
		problem("it starts at %s, %v ago; start it now or later", timeline.Clock(r.Start), now.Sub(r.Start))
	}
	switch {
	case !r.Calendar.None():
		if err := r.Calendar.Check(); err != nil {
			problems = append(problems, err)
		} else if !timeline.Sound(r) {
			problem("it is not the first occurrence of its calendar, which begins on day %d", r.Calendar.Date)
		}
	case r.Calendar != (civil.Calendar{}):
		problem("its calendar has no step; give one, or no calendar")
	case r.Every < 0:
		problem("it repeats every %v; give a positive time, or 0 for once", r.Every)
	case r.Every > 0 && r.End == quantity.Never:
		problem("it repeats every %v but has no end; give one", r.Every)
	case r.Every > 0 && r.Every < timeline.MinEvery:
		problem("it repeats every %v; the shortest is %v", r.Every, timeline.MinEvery)
	case r.Every > 0 && r.Every < length:
		problem("it repeats every %v but lasts %v; make it shorter or repeat it less often", r.Every, length)
	}
	return errors.Join(problems...)
}

// mostOverlaps bounds the reported overlaps of one reservation.
const mostOverlaps = 16

// overlaps are people's other reservations on a slice that share time with r, the first ones.
func overlaps(s *inventory.Slice, r *protocol.Reservation, own uint64) (list []protocol.Reservation) {
	for q := range s.Reservations {
		if q.ID == own || q.Kind == protocol.ForRigid || len(list) == mostOverlaps {
			continue
		}
		// One of two that repeat is looked at for as long as the other's first occurrence: who reserves serving hours twice has them meet
		// there.
		if _, hit := timeline.Overlap(&q, r.Start, r.End); hit {
			list = append(list, q)
		} else if _, hit := timeline.Overlap(r, q.Start, q.End); hit {
			list = append(list, q)
		}
	}
	return list
}

// same returns the id of a standing reservation with the same content, 0 if there is none.
func same(s *inventory.Slice, r protocol.Reservation) uint64 {
	for q := range s.Reservations {
		if r.ID = q.ID; q == r {
			return q.ID
		}
	}
	return 0
}

// stands is same for people, whose "from now on" said twice is one reservation: one that does not repeat may have begun earlier if it ends
// with r.
func stands(s *inventory.Slice, r protocol.Reservation) uint64 {
	for q := range s.Reservations {
		p := r
		if p.ID = q.ID; r.Every == 0 && q.Start < r.Start {
			p.Start = q.Start
		}
		if p == q {
			return q.ID
		}
	}
	return 0
}
