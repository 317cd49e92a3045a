package backfill

import (
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
)

// wide says whether a job waits for more than one slice, or for others elsewhere.
func (j *Job) wide() bool { return j.width() > 1 || j.Guest != nil }

// from is when a place for the job may begin at the earliest.
func (j *Job) from(now quantity.Instant) quantity.Instant {
	if j.Guest != nil {
		return max(now, j.Guest.NotBefore)
	}
	return now
}

// holds says whether the place that a job had may be its place still. A guest's that is kept begins, and is there until its home has asked
// for it, or it is over.
func (j *Job) holds(now quantity.Instant) bool {
	if j.Guest != nil {
		return j.place.Start >= j.Guest.NotBefore && (j.place.Start >= now || j.rankBefore > 0 && j.place.End > now)
	}
	return j.place.Start >= now
}

// takenBy says whether the slice's node holds time for a job, or has a lease of it: its home is turning its place into one.
func (s *Slice) takenBy(id job.ID) bool {
	return slices.ContainsFunc(s.Reserved(), func(r protocol.Reservation) bool {
		return r.Job == id && (r.Kind == protocol.ForHold || r.Kind == protocol.ForLease)
	})
}

// taking says whether its home is taking a guest's place, all of which is there still.
func (j *Job) taking() bool {
	return j.Guest != nil && j.rankBefore > 0 && !slices.ContainsFunc(j.place.Slices, (*Slice).removed) &&
		slices.ContainsFunc(j.place.Slices, func(s *Slice) bool { return s.takenBy(j.Name()) })
}

// since is from when on the job's place must be free to be had still.
func (j *Job) since(now quantity.Instant) quantity.Instant {
	if j.Guest != nil {
		return max(now, j.place.Start)
	}
	return j.place.Start
}

// beside is the slice's free time for a guest, its own place included.
func (s *Slice) beside(now quantity.Instant, j *Job) []protocol.Gap {
	if j.Avoids(s) {
		return nil
	}
	gaps := s.Free(now, nil)
	own := j.rank > 0 && slices.Contains(j.place.Slices, s)
	for _, g := range s.placed {
		if own && g.Start == j.place.Start && g.End == j.place.End {
			own = false // one of those that are alike, of which it has one
			continue
		}
		gaps = timeline.Carve(gaps, g.Start, g.End, protocol.ForRigid)
	}
	return gaps
}
