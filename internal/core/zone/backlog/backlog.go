// Package backlog says what a zone's jobs and slices mean for a pool of pilots (core/supply): which jobs wait that its slices could serve,
// in the order of their worth, and which slices serve them already. It must not know how pilots are asked for.
package backlog

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone/sites"
)

const (
	// most jobs are looked at for a pool: by far more than its pilots serve at once.
	most = 256
	// mostRead bounds the jobs among which these are found. Of more, some that are spread over all of them are read.
	mostRead = 1 << 13
)

// Zone is what is asked of the zone.
type Zone interface {
	// Live are its jobs without a verdict, in no order that means anything.
	Live() []*home.Job
	// Listed is what the market keeps of a job.
	Listed(j *home.Job) *index.Job
	// Waits is why a job is sold nothing now, whatever is offered.
	Waits(now quantity.Instant, j *home.Job) explain.Reason
	// Estimator orders jobs, and Classes are those of the slices that there are.
	Estimator() *index.Estimator
	Classes() []*window.Class
	// Options: jobs may run in any of the ways that they declare.
	Options() bool
}

// found is a job that a pool could serve.
type found struct {
	demand supply.Demand
	rank   policy.Candidate
}

// Demand is what waits that pilots of a pool could serve, in the order of the zone's policy: of the most first by priority and age. Left
// out are jobs that are paused or end, or whose queue's cap is reached; those that rest after a failure will go on soon, and count. Also
// left out are jobs that need several slices at once, as pilots do not begin together; rigid jobs without a walltime, since every pilot
// ends; and external ones, of which only their agents know what they could use.
func Demand(now quantity.Instant, pool *supply.Pool, z Zone) []supply.Demand {
	kinds := make([]*window.Class, len(pool.Slices))
	for i, s := range pool.Slices {
		kinds[i] = window.NewClass(i, &protocol.Slice{Capacity: s.Capacity, Speed: s.Speed, Model: s.Model, Profile: s.Profile})
	}
	if len(pool.Lengths) == 0 {
		return nil
	}
	var all []found
	for _, j := range candidates(now, z) {
		if f, ok := look(now, pool, kinds, z, j); ok {
			all = append(all, f)
		}
	}
	p := z.Estimator().Policy()
	slices.SortFunc(all, func(a, b found) int { return p.Compare(&a.rank, &b.rank) })
	list := make([]supply.Demand, len(all))
	for i := range all {
		list[i] = all[i].demand
	}
	return list
}

// candidates are the first jobs by priority and age that could be sold to more slices than they have.
func candidates(now quantity.Instant, z Zone) (list []*home.Job) {
	live := z.Live()
	for i := range explain.Sample(len(live), mostRead) {
		if j := live[i]; j.Width() == 1 && !j.Spec.External && width(j) > 0 && serves(z.Waits(now, j)) {
			list = append(list, j)
		}
	}
	slices.SortFunc(list, func(a, b *home.Job) int {
		return cmp.Or(cmp.Compare(b.Spec.Priority, a.Spec.Priority), cmp.Compare(a.Submitted, b.Submitted), cmp.Compare(a.ID, b.ID))
	})
	return list[:min(len(list), most)]
}

// serves reports whether more slices would serve a job, if not at once.
func serves(why explain.Reason) bool {
	return why == explain.Eligible || why == explain.Resting || why == explain.TurnedDown
}

// width is on how many more slices a job may run.
func width(j *home.Job) int {
	v := j.View()
	n := max(1, v.Parallelism()) - j.Busy()
	if q := j.Queue(); q.Cap != 0 {
		n = min(n, q.Cap-q.Holding())
	}
	return n
}

// look says what a job could use of a pool's slices; false: nothing.
func look(now quantity.Instant, pool *supply.Pool, kinds []*window.Class, z Zone, j *home.Job) (f found, ok bool) {
	d := &f.demand
	best := -1
	limit := pool.Lengths[len(pool.Lengths)-1] - pool.Start - pool.HandOver
	for i, c := range kinds {
		u, fits := uses(j, c, z.Options(), limit)
		if !fits {
			d.Barred = append(d.Barred, -1-i)
			continue
		}
		if best < 0 || u.left < d.Left {
			best, d.Left, d.Least, d.Costs = i, u.left, u.least, u.costs
		}
	}
	if best < 0 {
		return found{}, false
	}
	slices.Sort(d.Barred)
	d.Job, d.Width, d.Whole = j.ID, width(j), j.Spec.Kind == job.Rigid
	for _, c := range z.Classes() {
		// Where its shortest piece takes far longer than on a pilot, a gap that holds it there may be none.
		if u, fits := uses(j, c, z.Options(), limit); !fits || u.least > 2*d.Least {
			d.Barred = append(d.Barred, c.At())
		}
	}
	c := kinds[best]
	v := j.View()
	p := atomizer.Piece{Wall: d.Least, Demand: trp.Vector{trp.Memory: atomizer.LeastDemand(&v, max(1, c.SpeedOf(j.Spec)))}}
	f.rank = z.Estimator().Candidate(now, z.Listed(j), c, now.Add(d.Least), &p)
	return f, true
}

// use is what a job makes of a class of slices: how long what is left of it takes there, its shortest useful piece, and what each costs.
type use struct{ left, least, costs time.Duration }

// uses asks a job's atomizer, in each of the ways in which it may run; false: no slice of the class serves it, however long it is free.
// As for windows, a job whose least piece fits into nothing by what was learned of it is planned by its fastest run (Estimator.Fit).
func uses(j *home.Job, c *window.Class, options bool, limit time.Duration) (use, bool) {
	v := j.View()
	v.Running = 0 // of its width its running subjobs are left out
	if longest := j.Queue().MaxWindow; longest > 0 && v.Spec.Divisible() {
		limit = min(limit, longest)
	}
	ways := 0
	if options {
		ways = len(v.Spec.Options)
	}
	for i := -1; i < ways; i++ {
		if i >= 0 {
			v.Option = &v.Spec.Options[i]
		}
		u, ok := fit(v, c)
		if ok && u.least > limit && v.Spec.Divisible() {
			left := u.left
			v.Hopeful = true
			u, ok = fit(v, c)
			v.Hopeful, u.left = false, left
			ok = ok && (j.Queue().MaxWindow == 0 || u.least <= j.Queue().MaxWindow)
		}
		if ok {
			return u, true
		}
	}
	return use{}, false
}

// fit asks for the shortest window that serves a job: one without length is too short for whatever has a piece that is safe there.
func fit(v atomizer.View, c *window.Class) (use, bool) {
	speed := c.SpeedOf(v.Spec)
	if v.Option != nil {
		speed = quantity.MulDiv(speed, v.Option.Speed, 1000)
	}
	_, no := atomizer.Fit(&v, atomizer.Window{Capacity: c.Whole, Speed: c.SpeedOf(v.Spec)})
	if no.Why != atomizer.TooShort || speed <= 0 {
		return use{}, false
	}
	if v.Spec.Kind == job.Rigid {
		return use{left: no.Need, least: no.Need}, true
	}
	free := job.NextFree(0, v.Spec.Total, v.Committed, v.Claimed)
	return use{
		left: v.RunTime(v.Left(), speed), least: no.Need, costs: atomizer.MostWindow(&v, speed) - v.RunTime(free.Len(), speed),
	}, true
}

// Slots are the slices of all machines, each with the first time that is for sale there. Busy are the jobs with claims: where a machine has
// one on a slice that it has not offered since the zone came up, it has something, whatever else it has.
func Slots(now quantity.Instant, all *sites.Sites, busy []*home.Job) (list []supply.Slot) {
	var gaps []protocol.Gap
	for s := range all.All() {
		x := supply.Slot{Node: s.Node(), Free: sold(now, s), Usable: s.Usable() && !s.InDoubt(now), Class: s.Class().At()}
		x.Until = x.Free
		gaps = s.Free(now, gaps)
		for _, g := range gaps {
			if g.End > x.Free {
				if g.Start <= x.Free {
					x.Until = g.End
				}
				break
			}
		}
		list = append(list, x)
	}
	for _, j := range busy {
		for i := range j.Claims() {
			c := &j.Claims()[i]
			for _, id := range slices.Concat([]job.SliceID{c.Slice}, c.Also) {
				if all.FindOffered(id) == nil {
					end := max(c.End, now+1)
					list = append(list, supply.Slot{Node: c.NodeOf(id), Free: end, Until: end})
				}
			}
		}
	}
	return list
}

// sold is until when a slice is sold without a pause, or asked for; now if it is not.
func sold(now quantity.Instant, s *sites.Slice) quantity.Instant {
	var all []protocol.Gap
	for _, r := range s.Reserved() {
		if r.Kind == protocol.ForLease || r.Kind == protocol.ForHold {
			all = append(all, protocol.Gap{Start: r.Start, End: r.End})
		}
	}
	for _, x := range s.Sold() { // a claim stands until its result is known, so its machine is not done with it
		all = append(all, protocol.Gap{Start: x.Start, End: max(x.End, now+1)})
	}
	for _, a := range s.Asks() {
		all = append(all, protocol.Gap{Start: a.Start, End: a.End})
	}
	slices.SortFunc(all, func(a, b protocol.Gap) int { return cmp.Compare(a.Start, b.Start) })
	end := now
	for _, g := range all {
		if g.Start <= end {
			end = max(end, g.End)
		}
	}
	return end
}
