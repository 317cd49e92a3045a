package backfill

import (
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
)

// Guest is a part of a gang that another zone is home to, or of one of our own that is too large for our slices alone (docs/adr/0045). It stands in line as any
// gang does and its place is reserved, from when on its home says. Nothing is started there: its home asks the nodes.
type Guest struct {
	// NotBefore is when its place begins at the earliest; 0: now.
	NotBefore quantity.Instant
}

// wide says whether a job waits for more than one slice, or for others elsewhere.
func (j *Job) wide() bool { return j.width() > 1 || j.Guest != nil }

// from is when a place for the job may begin at the earliest.
func (j *Job) from(now quantity.Instant) quantity.Instant {
	if j.Guest != nil {
		return max(now, j.Guest.NotBefore)
	}
	return now
}

// holds says whether the place that a job had may be its place still. A guest's that is kept begins, and is there until its home has asked for it, or it is over.
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

// taking says whether its home is taking a guest's place.
func (j *Job) taking() bool {
	return j.Guest != nil && j.rankBefore > 0 && slices.ContainsFunc(j.place.Slices, func(s *Slice) bool { return s.takenBy(j.Name()) })
}

// since is from when on the job's place must be free to be had still.
func (j *Job) since(now quantity.Instant) quantity.Instant {
	if j.Guest != nil {
		return max(now, j.place.Start)
	}
	return j.place.Start
}

// lend finds the earliest place of a guest from an instant on, as close together as it can be. Openings are by the present, and not looked at.
func (pl *Planner) lend(from quantity.Instant, j *Job) (Placement, bool) {
	best, found := pl.scan(from, j)
	if !found {
		best, found = pl.apart(from, j, pl.roomsFor(j))
	}
	return best, found
}

// Offer is the earliest place that a guest could have from an instant on around those of all other reserved jobs. worthy: it would be kept, if nobody comes in between. It changes nothing
// that is decided.
func (pl *Planner) Offer(now, from quantity.Instant, j *Job) (p Placement, worthy, found bool) {
	p, found = pl.Search(from, j, pl.Nodes(), func(s *Slice) []protocol.Gap { return pl.roomBeside(now, s, j) })
	if !found || !pl.byIndex || j.rank > 0 || pl.floor.Due(j.Submitted(), j.Spec()) <= now {
		return p, found, found
	}
	return p, pl.outweighs(now, j, &p, func(s *Slice) []protocol.Gap { return s.Free(now, nil) }), true
}

// roomBeside is the slice's free time for a guest, its own place included.
func (pl *Planner) roomBeside(now quantity.Instant, s *Slice, j *Job) []protocol.Gap {
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

// Could is how many slices could ever run a job together, as far as nothing keeps them for good, wherever they lie.
func (pl *Planner) Could(now quantity.Instant, j *Job) (n int) {
	pl.findFits(now, j)
	for _, s := range pl.slices {
		if pl.fits[s.Class().At()] && !j.Avoids(s) && s.Lasting(now) {
			n++
		}
	}
	return n
}

// Took says that a guest runs on its place, which is given back as a reservation: the budget of the late pays for it since it was held.
func (pl *Planner) Took(j *Job) {
	if j.rank > 0 {
		pl.charge(&pl.reserved[j.rank-1])
	}
}
