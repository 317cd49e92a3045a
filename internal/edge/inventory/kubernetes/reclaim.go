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

// reclaim is what is given back for one Pod that waits.
type reclaim struct {
	uid     types.UID
	waiter  *tenant
	kin     kin
	machine string
	// devices that are kept for it, and how many of extended resources: what it asks for. claims are those of its claims that get devices here: others may share them.
	devices []place
	counted bool
	claims  []string
	// of is the Workload it is for, and part which of its Pods, while they are still to come; from when on and until when they will want it, 0 for now; made is since when
	// it stands, and open that nobody knows yet when they come: then nothing is cut short.
	of                types.UID
	part              int
	from, until, made quantity.Instant
	open              bool
	// closes are the slices that nobody is to have from then on.
	closes []job.SliceID
	// slices of ours whose subjobs are cut short, at an instant; freed is when none of ours was seen there any more, 0 before.
	slices    []job.SliceID
	at, freed quantity.Instant
	notice    time.Duration
}

// who waits, for people.
func (g *reclaim) who() string {
	return g.waiter.waitsFor()
}

func (t *tenant) waitsFor() string {
	return first(t.kind, "pod") + " " + t.Namespace + "/" + t.Name + ", which waits for it"
}

// later says whether it is wanted at a time that is known, and not now.
func (g *reclaim) later() bool { return g.from != 0 }

// shuts are the slices that it closes beside the devices that are kept.
func (g *reclaim) shuts() []job.SliceID {
	if g.later() {
		return g.closes
	}
	return g.slices
}

// holds close a slice at once, and cut short what runs there when its notice is over; or from when on it is wanted, which is told as soon as that is known.
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

// kin is what Pods that are alike have in common: their owner (a Pod without one is its own), and their shape.
type kin struct {
	owner types.UID
	shape string
}

// reclaims are all places that are kept, by the Pods they are for, and what is remembered of those that were.
type reclaims struct {
	by map[types.UID]*reclaim
	// resting is until when no search is made for Pods of a shape, since the last one found nothing; pausing the same for one Pod or Workload. Entries stay for a while after that:
	// whoever was tried least recently is tried first.
	resting map[string]quantity.Instant
	pausing map[types.UID]quantity.Instant
	// shunned are Pods and Workloads that are left alone, since a place was kept for them in vain; failed is what is known of all Pods that are like one of those.
	shunned map[types.UID]shun
	failed  map[kin]*failure
	// roomy is since when there seems to be room for a Pod.
	roomy map[types.UID]quantity.Instant
	// come are Workloads for whose Pods nothing is kept any more before they are there: all have come, or did not in time; false: something else held them back for too long. number tells places apart that are kept for Pods that are not there.
	come   map[types.UID]bool
	number int
	// early is how many are kept for Pods that are not there.
	early int
}

// shun is until when nothing is kept for a Pod or a Workload, and how often that came to nothing.
type shun struct {
	until quantity.Instant
	times int
}

// failure is how often places were kept in vain for Pods that are alike, when last, on which machines, and until when all of them are left alone.
type failure struct {
	shun
	last     quantity.Instant
	machines []string
}

const (
	// mostFailures is how many places are kept in vain for Pods that are alike before all of them are left alone, and not only those who did not come.
	mostFailures = 3
	// mostFailed bounds how many machines are remembered of one kin.
	mostFailed = 64
)

func newReclaims() reclaims {
	return reclaims{
		by: map[types.UID]*reclaim{}, resting: map[string]quantity.Instant{}, pausing: map[types.UID]quantity.Instant{}, shunned: map[types.UID]shun{}, failed: map[kin]*failure{},
		roomy: map[types.UID]quantity.Instant{}, come: map[types.UID]bool{},
	}
}

// on are those on a machine, in order of Pod.
func (r *reclaims) on(machine string) (list []*reclaim) {
	for _, g := range r.by {
		if g.machine == machine {
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b *reclaim) int { return cmp.Compare(a.uid, b.uid) })
	return list
}

// due is when a Pod may be tried again; 0: nobody has tried it.
func (r *reclaims) due(uid types.UID, shape string) quantity.Instant {
	return max(r.resting[shape], r.pausing[uid])
}

// may says whether a place may be looked for now for a Pod. For Pods like one that did not come to its place it is one at a time.
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

// vain notes that a place was kept for nothing: its Pod is left alone for a while, and those like it have theirs elsewhere.
func (r *reclaims) vain(now quantity.Instant, g *reclaim) {
	if g.of != "" {
		r.come[g.of] = true // of Pods that may yet come nothing is known, and nothing is held against them
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

// shun leaves a Pod or a Workload alone, each time for longer.
func (r *reclaims) shun(now quantity.Instant, whom types.UID) {
	s := r.shunned[whom]
	s.until = now.Add(alone(s.times))
	s.times++
	r.shunned[whom] = s
}

// alone is for how long somebody is left alone for whom that has been done so often before.
func alone(times int) time.Duration { return min(leaves<<min(times, 10), mostLeaves) }

// avoids says whether places were kept in vain, lately, for Pods of an owner.
func (r *reclaims) avoids(now quantity.Instant, owners []types.UID) bool {
	for of, f := range r.failed {
		if slices.Contains(owners, of.owner) && now < max(f.until, f.last.Add(leaves)) {
			return true
		}
	}
	return false
}

// covers is the place in which a claim gets its devices, beside one; nil: none does. More are places that are about to be kept.
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

// forget lets go of what is known of Pods that wait no more.
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
