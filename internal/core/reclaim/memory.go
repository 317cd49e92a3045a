package reclaim

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

const (
	// unusedTimeout is how long a free place is kept for a wish that does not use it. It must be waiting for something that is not modelled
	// here, and backs off for firstBackoff, doubling each time up to maxBackoff. stopTimeout is how long after its notice a subjob of ours
	// may take to stop, since it has to write its checkpoint.
	unusedTimeout = time.Minute
	firstBackoff  = 10 * time.Minute
	maxBackoff    = 6 * time.Hour
	stopTimeout   = 10 * time.Minute
	// schedulerBackoff is slightly above kube-scheduler's longest back-off (10 s), within which it retries a Pod that would fit. So long is
	// room that is free kept for a wish, and what a scheduler's own preemption frees waited for.
	schedulerBackoff = 12 * time.Second
	// overdue is how long after its end one that leaves may still be there; then it is stuck, and costs what any other does.
	overdue = time.Minute
	// retryDelay is the delay after a search that found no place.
	retryDelay = 10 * time.Second
	// maxPlaces bounds the places kept at once for wishes that wait (maxAhead those kept ahead), maxSearches the searches for them in one
	// pass. A search takes the cheapest place on enoughMachines machines with one; while it finds none it goes on to maxMachines, and the
	// next search begins at another machine. maxDevices is the most devices sought for one request; a larger count is treated as this.
	maxPlaces      = 256
	maxSearches    = 4
	enoughMachines = 128
	maxMachines    = 512
	maxDevices     = 16
	// openTimeout is how long slices are closed, with nothing truncated, for a group that has its quota and waits for another admission
	// check.
	openTimeout = 10 * time.Minute
	// maxUnused is how many places a class may leave unused before all of its wishes back off, not only those that left one unused.
	maxUnused = 3
	// maxUnusedMachines bounds the machines remembered per class.
	maxUnusedMachines = 64
	// maxSpared bounds the ways that are remembered with a place.
	maxSpared = 8
)

// memory is the state that earlier passes left. Soft.
type memory struct {
	// places, by wish.
	places map[ID]*Place
	// shapeRetry is when a shape may be searched for again after a search that found nothing; retry the same for one wish or group. Entries
	// outlive their time by firstBackoff, since wishes are ordered by them.
	shapeRetry map[string]quantity.Instant
	retry      map[ID]quantity.Instant
	// misses are the searches that found nothing, by what may be searched for again after a delay.
	misses map[miss]Search
	// backoffs are the wishes and groups that left a place unused; unused is the same by class.
	backoffs map[ID]backoff
	unused   map[Equiv]*unusedPlaces
	// freeSince is since when there seems to be room for a wish without stopping anything, idle when a class last left such room that was
	// kept for it unused.
	freeSince map[ID]quantity.Instant
	idle      map[Equiv]quantity.Instant
	// nominations of the wishes that have one.
	nominations nominations
	// handled are groups for which nothing more is kept ahead. true: their members came or missed their time; false: another admission
	// check took longer than openTimeout, and places are kept again once they are admitted.
	handled map[ID]bool
	// serial numbers the places kept ahead; it is part of their IDs.
	serial int
	// ahead counts the places kept ahead. Derived from places.
	ahead int
}

// miss is a search that found nothing: for a shape, or for one wish or group.
type miss struct {
	shape string
	id    ID
}

// nominations are by wish.
type nominations map[ID]nomination

// nomination is on which machine a wish's scheduler makes room for it, since when that is known, and when anybody was last seen to leave
// there; 0: nobody was.
type nomination struct {
	machine     string
	since, left quantity.Instant
}

// backoff is until when nothing is kept for a wish or group, and how many places it left unused.
type backoff struct {
	until quantity.Instant
	times int
}

// unusedPlaces is the history of one class: how many places it left unused, when last, on which machines, and until when all of its wishes
// back off.
type unusedPlaces struct {
	backoff
	last     quantity.Instant
	machines []string
}

func newMemory() memory {
	return memory{
		places: map[ID]*Place{}, shapeRetry: map[string]quantity.Instant{}, retry: map[ID]quantity.Instant{}, misses: map[miss]Search{},
		backoffs: map[ID]backoff{}, unused: map[Equiv]*unusedPlaces{}, freeSince: map[ID]quantity.Instant{},
		idle: map[Equiv]quantity.Instant{}, nominations: nominations{}, handled: map[ID]bool{},
	}
}

// retryAt is when a wish may be searched for again; 0: at once.
func (r *memory) retryAt(id ID, shape string) quantity.Instant {
	return max(r.shapeRetry[shape], r.retry[id])
}

// maySearch reports whether a wish may be searched for now. A class that left places unused gets one place at a time.
func (r *memory) maySearch(now quantity.Instant, id ID, of Equiv) bool {
	if r.places[id] != nil || len(r.places)-r.ahead >= maxPlaces || now < r.retryAt(id, of.Shape) || now < r.backoffs[id].until {
		return false
	}
	f := r.unused[of]
	if f == nil {
		return true
	}
	if now < f.until {
		return false
	}
	for _, pl := range r.places { //sluice:sorted any one of them will do
		if pl.Equiv == of {
			return false
		}
	}
	return true
}

// recordUnused notes that a place was not used: its wish backs off, and its class prefers other machines.
func (r *memory) recordUnused(now quantity.Instant, pl *Place) {
	if pl.Group != "" {
		r.handled[pl.Group] = true // its member has not come yet, so it does not back off
		return
	}
	r.backOff(now, pl.Wish)
	f := r.unused[pl.Equiv]
	if f == nil {
		f = &unusedPlaces{}
		r.unused[pl.Equiv] = f
	}
	if f.last = now; !slices.Contains(f.machines, pl.Machine) {
		f.machines = append(f.machines, pl.Machine)
		f.machines = f.machines[max(0, len(f.machines)-maxUnusedMachines):]
	}
	if f.times++; f.times >= maxUnused {
		f.until = now.Add(backoffAfter(f.times - maxUnused))
	}
}

// backOff backs a wish or group off, longer each time.
func (r *memory) backOff(now quantity.Instant, whom ID) {
	s := r.backoffs[whom]
	s.until = now.Add(backoffAfter(s.times))
	s.times++
	r.backoffs[whom] = s
}

// backoffAfter is the backoff after a number of earlier ones: firstBackoff, doubling up to maxBackoff.
func backoffAfter(times int) time.Duration { return min(firstBackoff<<min(times, 10), maxBackoff) }

// ownerBacksOff reports whether wishes of one of these owners left places unused lately.
func (r *memory) ownerBacksOff(now quantity.Instant, owners []string) bool {
	for of, f := range r.unused { //sluice:sorted any one of them will do
		if slices.Contains(owners, of.Owner) && now < max(f.until, f.last.Add(firstBackoff)) {
			return true
		}
	}
	return false
}

// placeOf finds the place, other than except, in which a shared claim gets its devices, also among more, which are about to be kept; nil if
// none. There should be one at most; if not, it is that of the first wish by id.
func (r *memory) placeOf(claim string, except *Place, more []*Place) (found *Place) {
	for _, pl := range more {
		if slices.Contains(pl.Claims, claim) {
			return pl
		}
	}
	for _, pl := range r.places { //sluice:sorted the first by id is found in any order
		if pl != except && slices.Contains(pl.Claims, claim) && (found == nil || pl.Wish < found.Wish) {
			found = pl
		}
	}
	return found
}

// forget drops entries of wishes that no longer wait, and entries that have expired.
func (r *memory) forget(now quantity.Instant, waits func(ID) bool) {
	for id := range r.freeSince { //sluice:sorted each is looked at alone
		if !waits(id) {
			delete(r.freeSince, id)
		}
	}
	for id := range r.nominations { //sluice:sorted each is looked at alone
		if !waits(id) {
			delete(r.nominations, id)
		}
	}
	for of, since := range r.idle { //sluice:sorted each is looked at alone
		if now >= since.Add(firstBackoff) {
			delete(r.idle, of)
		}
	}
	for shape, until := range r.shapeRetry { //sluice:sorted each is looked at alone
		if now >= until.Add(firstBackoff) {
			delete(r.shapeRetry, shape)
			delete(r.misses, miss{shape: shape})
		}
	}
	for id, until := range r.retry { //sluice:sorted each is looked at alone
		if now >= until.Add(firstBackoff) {
			delete(r.retry, id)
			delete(r.misses, miss{id: id})
		}
	}
	for id, s := range r.backoffs { //sluice:sorted each is looked at alone
		if now >= s.until.Add(maxBackoff) {
			delete(r.backoffs, id)
		}
	}
	for of, f := range r.unused { //sluice:sorted each is looked at alone
		if now >= max(f.until, f.last).Add(maxBackoff) {
			delete(r.unused, of)
		}
	}
}
