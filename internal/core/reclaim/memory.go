package reclaim

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

const (
	// patience is how long a free place is kept for a wish that does not come. It must be waiting for something that is not modelled here,
	// and is left alone for leaves, doubling each time up to mostLeaves. longest is how long after its notice a subjob of ours may take to
	// be gone: it has to store what it did.
	patience   = time.Minute
	leaves     = 10 * time.Minute
	mostLeaves = 6 * time.Hour
	longest    = 10 * time.Minute
	// pauses is a little more than kube-scheduler's longest back-off (10 s), within which it retries a Pod for which there is room.
	pauses = 12 * time.Second
	// rests is the pause after a search that found no place.
	rests = 10 * time.Second
	// mostPlaces bounds the places kept at once for wishes that wait (mostEarly those kept ahead), mostLooks the searches for these in one
	// pass. A search takes the cheapest place on enough machines that would do; while it finds none it goes on to mostMachines, and a later
	// one begins elsewhere. mostDevices is the most devices sought for one request; a larger count is treated as this.
	mostPlaces   = 256
	mostLooks    = 4
	enough       = 128
	mostMachines = 512
	mostDevices  = 16
	// opens is how long slices are closed, with nothing cut short, for a group that is let in and that something else holds back.
	opens = 10 * time.Minute
	// mostFailures is how many places may be kept in vain for a kin before all of its wishes are left alone, not only those that did not
	// come.
	mostFailures = 3
	// mostFailed bounds the machines remembered of one kin.
	mostFailed = 64
)

// memory is what is remembered of earlier decisions. All of it is soft.
type memory struct {
	// places that are kept, by wish.
	places map[ID]*Place
	// resting is until when no search is made for a shape, after one that found nothing; pausing the same for one wish or group. Entries
	// outlive their time by leaves, since wishes are ordered by them.
	resting map[string]quantity.Instant
	pausing map[ID]quantity.Instant
	// shunned are wishes and groups for which a place was kept in vain; failed counts the same by kin.
	shunned map[ID]shun
	failed  map[Kin]*failure
	// roomy is since when a wish seems to have room without our help.
	roomy map[ID]quantity.Instant
	// come are groups that were dealt with. true: their members came or missed their time, and nothing is kept ahead any more; false:
	// something else held them back for longer than opens, and places are kept again only once they are admitted.
	come map[ID]bool
	// number makes the IDs of places for members that have not come.
	number int
	// early counts the places that are kept for these.
	early int
}

// shun is until when nothing is kept for a wish or group, and how many places were kept for it in vain.
type shun struct {
	until quantity.Instant
	times int
}

// failure is the history of places kept in vain for one kin: how often, when last, on which machines, and until when all of the kin are
// left alone.
type failure struct {
	shun
	last     quantity.Instant
	machines []string
}

func newMemory() memory {
	return memory{
		places: map[ID]*Place{}, resting: map[string]quantity.Instant{}, pausing: map[ID]quantity.Instant{},
		shunned: map[ID]shun{}, failed: map[Kin]*failure{}, roomy: map[ID]quantity.Instant{}, come: map[ID]bool{},
	}
}

// due is when a wish may be searched for again; 0: it was never tried.
func (r *memory) due(id ID, shape string) quantity.Instant {
	return max(r.resting[shape], r.pausing[id])
}

// may reports whether a search for a wish is allowed now. Of a kin with failures one place is kept at a time.
func (r *memory) may(now quantity.Instant, id ID, of Kin) bool {
	if r.places[id] != nil || len(r.places)-r.early >= mostPlaces || now < r.due(id, of.Shape) || now < r.shunned[id].until {
		return false
	}
	f := r.failed[of]
	if f == nil {
		return true
	}
	if now < f.until {
		return false
	}
	for _, g := range r.places { //sluice:sorted any one of them will do
		if g.Kin == of {
			return false
		}
	}
	return true
}

// vain records that a place was kept for nothing: its wish is left alone for a while, and its kin are tried on other machines first.
func (r *memory) vain(now quantity.Instant, g *Place) {
	if g.Group != "" {
		r.come[g.Group] = true // its member has not come yet, so nothing is held against it
		return
	}
	r.shun(now, g.Wish)
	f := r.failed[g.Kin]
	if f == nil {
		f = &failure{}
		r.failed[g.Kin] = f
	}
	if f.last = now; !slices.Contains(f.machines, g.Machine) {
		f.machines = append(f.machines, g.Machine)
		f.machines = f.machines[max(0, len(f.machines)-mostFailed):]
	}
	if f.times++; f.times >= mostFailures {
		f.until = now.Add(alone(f.times - mostFailures))
	}
}

// shun leaves a wish or group alone, longer each time.
func (r *memory) shun(now quantity.Instant, whom ID) {
	s := r.shunned[whom]
	s.until = now.Add(alone(s.times))
	s.times++
	r.shunned[whom] = s
}

// alone is the pause after so many earlier ones: leaves, doubling up to mostLeaves.
func alone(times int) time.Duration { return min(leaves<<min(times, 10), mostLeaves) }

// avoids reports whether places were kept in vain for wishes of one of these owners lately.
func (r *memory) avoids(now quantity.Instant, owners []string) bool {
	for of, f := range r.failed { //sluice:sorted any one of them will do
		if slices.Contains(owners, of.Owner) && now < max(f.until, f.last.Add(leaves)) {
			return true
		}
	}
	return false
}

// covers finds the place, other than beside, in which a claim gets its devices, also among more, which are about to be kept; nil if none.
// Of several, which should not be, it is that of the first wish by id.
func (r *memory) covers(claim string, beside *Place, more []*Place) (found *Place) {
	for _, g := range more {
		if slices.Contains(g.Claims, claim) {
			return g
		}
	}
	for _, g := range r.places { //sluice:sorted the first by id is found in any order
		if g != beside && slices.Contains(g.Claims, claim) && (found == nil || g.Wish < found.Wish) {
			found = g
		}
	}
	return found
}

// forget drops what is remembered of wishes that no longer wait, and entries that have expired.
func (r *memory) forget(now quantity.Instant, still func(ID) bool) {
	for id := range r.roomy { //sluice:sorted each is looked at alone
		if !still(id) {
			delete(r.roomy, id)
		}
	}
	for shape, until := range r.resting { //sluice:sorted each is looked at alone
		if now >= until.Add(leaves) {
			delete(r.resting, shape)
		}
	}
	for id, until := range r.pausing { //sluice:sorted each is looked at alone
		if now >= until.Add(leaves) {
			delete(r.pausing, id)
		}
	}
	for id, s := range r.shunned { //sluice:sorted each is looked at alone
		if now >= s.until.Add(mostLeaves) {
			delete(r.shunned, id)
		}
	}
	for of, f := range r.failed { //sluice:sorted each is looked at alone
		if now >= max(f.until, f.last).Add(mostLeaves) {
			delete(r.failed, of)
		}
	}
}
