//go:build kubernetes

package kubernetes

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// reclaim is a place that is kept for one Pod of somebody else's: what it gets, and which of our subjobs are cut short for it.
type reclaim struct {
	uid     types.UID
	waiter  *tenant
	kin     kin
	machine string
	// devices are kept for it; with counted, so are the extended resources that it asks for. claims are those of its claims that get their devices here; other Pods may share them.
	devices []place
	counted bool
	claims  []string
	// Set while the Pod does not exist yet: of is its Workload and part its pod set. It will want the place from from until until (0: now); made is when the place was kept.
	// With open the time is not known yet: the slices are closed and nothing is cut short.
	of                types.UID
	part              int
	from, until, made quantity.Instant
	open              bool
	// closes are the slices that are not for sale from from on.
	closes []job.SliceID
	// slices are ours whose subjobs are cut short at at; freed is when all of these were first seen gone, 0 before.
	slices    []job.SliceID
	at, freed quantity.Instant
	notice    time.Duration
}

// who names the waiter for people.
func (g *reclaim) who() string {
	return g.waiter.waitsFor()
}

func (t *tenant) waitsFor() string {
	return first(t.kind, "pod") + " " + t.Namespace + "/" + t.Name + ", which waits for it"
}

// later reports whether the place is for a known time rather than for now. That time may be past by up to patience.
func (g *reclaim) later() bool { return g.from != 0 }

// shuts lists the slices that are closed for it, beside the devices that are kept.
func (g *reclaim) shuts() []job.SliceID {
	if g.later() {
		return g.closes
	}
	return g.slices
}

// holds are its reservations on each of these slices: closed at once, and truncated when notice is over; for a later place, truncated when it is wanted, which
// is said now; for an open one, only closed.
func (g *reclaim) holds() []protocol.Reservation {
	switch {
	case g.later():
		return []protocol.Reservation{{Kind: protocol.ForReclaim, Start: g.from, End: g.until, Source: g.who(), Truncate: true}}
	case g.open:
		return []protocol.Reservation{{Kind: protocol.ForReclaim, End: quantity.Never, Source: g.who()}}
	}
	return []protocol.Reservation{
		{Kind: protocol.ForReclaim, End: quantity.Never, Source: g.who()},
		{Kind: protocol.ForReclaim, Start: g.at, End: quantity.Never, Source: g.who(), Truncate: true},
	}
}

// kin identifies Pods that are alike: the same owner (a bare Pod is its own) and the same shape.
type kin struct {
	owner types.UID
	shape string
}

// reclaims are the places that are kept, by Pod, and what is remembered of earlier ones. Guarded by Inventory.mu.
type reclaims struct {
	by map[types.UID]*reclaim
	// resting is until when no search is made for a shape, after one that found nothing; pausing the same for one Pod or Workload. Entries outlive their time by leaves,
	// since waiters are ordered by them.
	resting map[string]quantity.Instant
	pausing map[types.UID]quantity.Instant
	// shunned are Pods and Workloads for which a place was kept in vain; failed counts the same by kin.
	shunned map[types.UID]shun
	failed  map[kin]*failure
	// roomy is since when a Pod that waits seems to have room without our help.
	roomy map[types.UID]quantity.Instant
	// come are Workloads that were dealt with. true: their Pods came or missed their time, and nothing is kept ahead any more; false: another admission check held them back for
	// longer than opens, and places are kept again only once they are admitted.
	// number makes the IDs of places for Pods that do not exist yet.
	come   map[types.UID]bool
	number int
	// early counts the places that are kept for Pods that do not exist yet.
	early int
}

// shun is until when nothing is kept for a Pod or Workload, and how many places were kept for it in vain.
type shun struct {
	until quantity.Instant
	times int
}

// failure is the history of places kept in vain for one kin: how often, when last, on which machines, and until when all of the kin are left alone.
type failure struct {
	shun
	last     quantity.Instant
	machines []string
}

const (
	// mostFailures is how many places may be kept in vain for a kin before all of its Pods are left alone, not only those that did not come.
	mostFailures = 3
	// mostFailed bounds the machines remembered of one kin.
	mostFailed = 64
)

func newReclaims() reclaims {
	return reclaims{
		by: map[types.UID]*reclaim{}, resting: map[string]quantity.Instant{}, pausing: map[types.UID]quantity.Instant{}, shunned: map[types.UID]shun{}, failed: map[kin]*failure{},
		roomy: map[types.UID]quantity.Instant{}, come: map[types.UID]bool{},
	}
}

// on lists the places on a machine, by Pod.
func (r *reclaims) on(machine string) (list []*reclaim) {
	for _, g := range r.by {
		if g.machine == machine {
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b *reclaim) int { return cmp.Compare(a.uid, b.uid) })
	return list
}

// due is when a Pod may be searched for again; 0: it was never tried.
func (r *reclaims) due(uid types.UID, shape string) quantity.Instant {
	return max(r.resting[shape], r.pausing[uid])
}

// may reports whether a search for a Pod is allowed now. Of a kin with failures one place is kept at a time.
func (r *reclaims) may(now quantity.Instant, uid types.UID, of kin) bool {
	if r.by[uid] != nil || len(r.by)-r.early >= mostReclaims || now < r.due(uid, of.shape) || now < r.shunned[uid].until {
		return false
	}
	f := r.failed[of]
	if f == nil {
		return true
	}
	if now < f.until {
		return false
	}
	for _, g := range r.by {
		if g.kin == of {
			return false
		}
	}
	return true
}

// vain records that a place was kept for nothing: its Pod is left alone for a while, and its kin are tried on other machines first.
func (r *reclaims) vain(now quantity.Instant, g *reclaim) {
	if g.of != "" {
		r.come[g.of] = true // its Pods do not exist yet, so nothing is held against them
		return
	}
	r.shun(now, g.uid)
	f := r.failed[g.kin]
	if f == nil {
		f = &failure{}
		r.failed[g.kin] = f
	}
	if f.last = now; !slices.Contains(f.machines, g.machine) {
		f.machines = append(f.machines, g.machine)
		f.machines = f.machines[max(0, len(f.machines)-mostFailed):]
	}
	if f.times++; f.times >= mostFailures {
		f.until = now.Add(alone(f.times - mostFailures))
	}
}

// shun leaves a Pod or Workload alone, longer each time.
func (r *reclaims) shun(now quantity.Instant, whom types.UID) {
	s := r.shunned[whom]
	s.until = now.Add(alone(s.times))
	s.times++
	r.shunned[whom] = s
}

// alone is the pause after so many earlier ones: leaves, doubling up to mostLeaves.
func alone(times int) time.Duration { return min(leaves<<min(times, 10), mostLeaves) }

// avoids reports whether places were kept in vain for Pods of one of these owners lately.
func (r *reclaims) avoids(now quantity.Instant, owners []types.UID) bool {
	for of, f := range r.failed {
		if slices.Contains(owners, of.owner) && now < max(f.until, f.last.Add(leaves)) {
			return true
		}
	}
	return false
}

// covers finds the place, other than beside, in which a claim gets its devices, also among more, which are about to be kept; nil if none.
func (r *reclaims) covers(claim string, beside *reclaim, more []*reclaim) *reclaim {
	for _, g := range more {
		if slices.Contains(g.claims, claim) {
			return g
		}
	}
	for _, g := range r.by {
		if g != beside && slices.Contains(g.claims, claim) {
			return g
		}
	}
	return nil
}

// forget drops what is remembered of Pods that no longer wait, and entries that have expired.
func (r *reclaims) forget(now quantity.Instant, still map[types.UID]bool) {
	for uid := range r.roomy {
		if !still[uid] {
			delete(r.roomy, uid)
		}
	}
	for shape, until := range r.resting {
		if now >= until.Add(leaves) {
			delete(r.resting, shape)
		}
	}
	for uid, until := range r.pausing {
		if now >= until.Add(leaves) {
			delete(r.pausing, uid)
		}
	}
	for uid, s := range r.shunned {
		if now >= s.until.Add(mostLeaves) {
			delete(r.shunned, uid)
		}
	}
	for of, f := range r.failed {
		if now >= max(f.until, f.last).Add(mostLeaves) {
			delete(r.failed, of)
		}
	}
}
