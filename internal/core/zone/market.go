package zone

import (
	"math"
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/bitset"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// advertised is what the market keeps from step to step, so that a step looks only at what has changed. All of it is soft.
type advertised struct {
	// slices by capacity, then id; unsorted if a capacity has changed since.
	slices   []*slice
	unsorted bool
	// dirty are the slices whose free time changed, open those with a window that has begun, reserved those with a
	// rigid job's place.
	dirty, open, reserved bitset.Set
	// turn are the slices whose windows are offered in this step.
	turn bitset.Set
	// paces are the speeds of the classes, the highest first.
	paces []int64
	// spare is room for a list of windows.
	spare []window
	// opens and closes are when the next window of a slice opens, and when one becomes too short; stales when a slice that
	// is left alone is to be looked at.
	opens, closes, stales alarm.Heap[*slice]
	classes               []*class
	// everybody is the one group of a policy that does not look at queues.
	everybody *group
	groups    []*group
	// touched are the jobs whose answers are to be taken down again, loud those that are asked each time.
	touched, loud []*state
	// fresh are the jobs that changed after the generation seen: windows that stand are offered to them alone.
	fresh []*state
	seen  uint64
	tally tally
	// pick is the job that comes first of those considered in a round, next the one that is compared with it.
	pick, next candidate
}

// piece is a materialized subjob: what is asked of a node.
type piece struct {
	atomizer.Piece
	start, end quantity.Instant
	// speed of the job there, in parts per thousand.
	speed         int64
	window, round uint64
	// option it runs with, and the bid that won it; nil where nobody bid.
	option string
	bid    *protocol.Bid
}

// candidate is an interested job in a round; job is nil if there is none.
type candidate struct {
	policy.Candidate
	job *state
}

// sell announces every window that opens now to every waiting job and asks a node for the winner's place. It returns
// when the next window opens.
func (z *Zone) sell(now quantity.Instant, out *protocol.Out) quantity.Instant {
	z.lapse(now)
	z.wakeSlices(now)
	z.listen(now)
	z.keepCaps(now)
	wake := z.planRigid(now, out)
	z.turn, z.dirty = z.dirty, z.turn
	for i := z.turn.Next(0); i >= 0; i = z.turn.Next(i + 1) {
		s := z.slices[i]
		z.announce(s, now)
		if s.stands = s.standing(now); s.stands {
			z.open.Put(i)
		} else {
			z.open.Drop(i)
		}
	}
	news := z.generation != z.seen
	if news {
		z.turn.Join(z.open)
	}
	if z.cfg.Market != nil {
		wake = min(wake, z.negotiate(now, news, out))
		clear(z.fresh)
		z.fresh, z.seen = z.fresh[:0], z.generation
		return min(wake, z.opens.Next(), z.unanswered())
	}
	// With as many windows as jobs to fill them the fast slices go first: nobody is to crawl on a small one while they stand
	// idle. Otherwise the small ones do, so that small pieces go to small slices and the large are left to others.
	if z.uncontended() {
		for _, pace := range z.paces {
			z.offerTurn(now, pace, news, out)
		}
	}
	z.offerTurn(now, anyPace, news, out)
	clear(z.fresh)
	z.fresh, z.seen = z.fresh[:0], z.generation
	return min(wake, z.opens.Next(), z.unanswered())
}

// anyPace stands for slices of every speed.
const anyPace = -1

// offerTurn offers the windows of the slices in turn that have a speed, the smallest first.
func (z *Zone) offerTurn(now quantity.Instant, pace int64, news bool, out *protocol.Out) {
	for i := z.turn.Next(0); i >= 0; i = z.turn.Next(i + 1) {
		s := z.slices[i]
		if pace != anyPace && s.class.pace != pace {
			continue
		}
		z.turn.Drop(i)
		for j := range s.windows {
			if w := &s.windows[j]; w.start <= now && (!w.offered || news) && z.generation > 0 {
				z.round(now, s, w, out)
			}
		}
	}
}

// uncontended says whether there is a window that has begun for every job that runs nowhere.
func (z *Zone) uncontended() bool { return len(z.live)-len(z.busy) <= z.open.Len() }

// wakeSlices marks the slices whose windows open or close now, or that are no longer left alone.
func (z *Zone) wakeSlices(now quantity.Instant) {
	for _, a := range []*alarm.Heap[*slice]{&z.opens, &z.closes, &z.stales} {
		for {
			s, ok := a.Due(now)
			if !ok {
				break
			}
			z.mark(s)
		}
	}
}

// round offers one window: signals of interest from every waiting job, an order by policy, and only then the piece. A
// window that was announced before is offered only to the jobs that have changed since: between changes nobody becomes
// eligible, since the window only shrinks.
func (z *Zone) round(now quantity.Instant, s *slice, w *window, out *protocol.Out) {
	z.listen(now)
	z.nextRnd++
	z.pick = candidate{}
	length := w.length(now)
	list := z.fresh
	if !w.offered {
		list = z.loud
		z.best(now, s.class, w)
	}
	fromIndex := z.pick.job
	for _, st := range list {
		z.offer(now, st, s, w, length)
	}
	st := z.pick.job
	if !w.offered {
		if st != nil && st == fromIndex {
			z.count(st) // the winner has not lost this round
			z.remember(s.class.at, length, now)
			st.counted = z.tally.end()
		} else {
			z.remember(s.class.at, length, now)
		}
	}
	w.offered = true
	if st == nil {
		return
	}
	for _, other := range list {
		if other != st && other.bids {
			other.counts.add(lostToPolicy, now)
		}
	}
	// The winner, and nobody else, cuts its piece now, with its progress as it is now.
	p, refusal := z.fit(st, s.class, now, w.end)
	invariant.Check(refusal.Why == atomizer.Interested, "job %s answered window %d of %s and declines it in the same instant", st.Job, w.id, s.id)
	end := now.Add(p.Length)
	if p.Length == time.Duration(math.MaxInt64) || st.Spec.Kind == job.Rigid && st.Spec.Walltime == 0 {
		end = quantity.Never
	}
	z.ask(now, st, s, nil, piece{Piece: p, start: now, end: end, speed: s.speed(st.Spec), window: w.id, round: z.nextRnd}, 0, out)
	s.class.give(given{slice: s.id, length: length, at: now, to: rival{job: st.Job, queue: st.Queue}})
	w.offered, w.won = false, true // what is left of it is announced again
}

// best finds the indexed job that the policy asks first for a window of a class.
func (z *Zone) best(now quantity.Instant, c *class, w *window) {
	motion, length := z.cfg.Policy.Motion(), w.length(now)
	for _, g := range z.groups {
		if c.at >= len(g.rankings) {
			continue
		}
		r := &g.rankings[c.at]
		if motion == policy.Still || motion == policy.WithinQueue {
			if st, ok := r.First(length); ok {
				z.consider(now, st, c, w.end, &atomizer.Piece{})
			}
			continue
		}
		for st := range r.Within(length) {
			if motion == policy.ByUse && z.pick.job != nil && st.uses(c, length) < z.pick.Used {
				continue
			}
			p, _ := z.fit(st, c, max(w.start, now), w.end)
			z.consider(now, st, c, w.end, &p)
		}
	}
}

// uses bounds what any piece of an indexed job uses of a window, in MiB-milliseconds.
func (s *state) uses(c *class, length time.Duration) int64 {
	a := &s.answers[c.at]
	return mib(a.demand) * min(a.wall, length).Milliseconds()
}

// offer asks one job and counts why it is not interested. bids says whether it is.
func (z *Zone) offer(now quantity.Instant, st *state, s *slice, w *window, length time.Duration) {
	c := s.class
	st.bids = false
	if st.alive == 0 {
		return
	}
	var p atomizer.Piece
	needsPiece := true
	if st.indexed {
		if st.deaf != interested || st.answers[c.at].need > length {
			st.countIn(&st.counts, c.at, length, 1, now)
			return
		}
		motion := z.cfg.Policy.Motion()
		needsPiece = motion != policy.Still && motion != policy.WithinQueue
	} else if why := z.deafness(now, st); why != interested {
		st.counts.add(why, now)
		return
	} else if st.avoids(s) {
		st.counts.add(turnedDown, now)
		return
	}
	if needsPiece {
		var refusal atomizer.Refusal
		if p, refusal = z.fit(st, c, now, w.end); refusal.Why != atomizer.Interested {
			st.counts.refusal(refusal, now)
			return
		}
	}
	st.bids = true
	z.consider(now, st, c, w.end, &p)
}

// consider keeps the job if the policy asks it before the one that was kept.
func (z *Zone) consider(now quantity.Instant, st *state, c *class, end quantity.Instant, p *atomizer.Piece) {
	z.next = candidate{z.candidate(now, st, c, end, p), st}
	if z.pick.job == nil || z.cfg.Policy.Compare(&z.next.Candidate, &z.pick.Candidate) < 0 {
		z.pick = z.next
	}
}

// candidate is what the policy sees of a job that could use [now, end) of a slice of a class.
func (z *Zone) candidate(now quantity.Instant, st *state, c *class, end quantity.Instant, p *atomizer.Piece) policy.Candidate {
	q := st.q
	window := z.window(st, c, now, end)
	return policy.Candidate{
		Job: st.Job, Priority: st.Spec.Priority, Submitted: st.Submitted, Attained: st.Attained + st.had(now), QueueAttained: q.attained + q.going.at(now),
		Weight: max(1, q.Weight), Laxity: z.laxity(st, c, now),
		Used: mib(p.Demand) * p.Wall.Milliseconds(), Offered: mib(c.capacity) * max(1, window.End.Sub(window.Start).Milliseconds()),
	}
}

// laxity is the time to the owner's deadline less the run time still needed on a class; the longest time without one.
func (z *Zone) laxity(st *state, c *class, now quantity.Instant) time.Duration {
	d, speed := st.deadline(), c.speed(st.Spec)
	switch {
	case d == quantity.Never || speed == 0:
		return time.Duration(math.MaxInt64)
	case st.Spec.Kind == job.Rigid:
		return d.Sub(now) - st.Spec.WalltimeAt(speed)
	}
	v := st.view()
	return d.Sub(now) - v.RunTime(st.Spec.Total-st.Committed.Len(), speed)
}

// finish is when a job would end if it went on without a pause on slices of a class, from now on.
func (s *state) finish(now quantity.Instant, c *class) quantity.Instant {
	speed := c.speed(s.Spec)
	switch {
	case speed == 0:
		return quantity.Never
	case s.Spec.Kind == job.Rigid:
		return now.Add(s.Spec.WalltimeAt(speed))
	}
	v := s.view()
	return now.Add(v.RunTime(s.Spec.Total-s.Committed.Len(), speed))
}

// ask proposes a piece to the node, which alone decides: the first of the five steps.
func (z *Zone) ask(now quantity.Instant, st *state, s *slice, also []job.SliceID, p piece, reservation uint64, out *protocol.Out) {
	id := z.newAsk()
	a := &ask{
		id: id, job: st, generation: st.Generation, slice: s, also: also, piece: p, expires: now.Add(z.cfg.AskTTL), asked: now, version: s.view.Version,
	}
	z.asks = append(z.asks, a)
	a.on(z, func(s *slice) { s.asks = append(s.asks, a) })
	st.asked = st.asked.Add(p.Range)
	st.asking++
	st.losses = st.losses[:0]
	st.q.asking += 1 + len(also)
	if p.bid != nil && !planted.In(planted.ForgetPledged) {
		st.q.pledged += p.bid.Price
	}
	z.touch(st)
	m := protocol.Message{
		Kind: protocol.Ask, To: protocol.Address{Role: protocol.Node, ID: string(s.view.Node)}, Ask: id, Job: st.Job, Epoch: st.Epoch,
		Generation: st.Generation, Slice: s.id, Also: also, Start: p.start, End: p.end, Demand: p.Demand,
	}
	if reservation != 0 {
		m.Reservation = &protocol.Reservation{ID: reservation, Kind: protocol.ForRigid, Job: st.Job}
	}
	z.send(out, m)
}

// newAsk numbers an ask. Ids of different lives of this zone are distinct, since a node answers a repeated id with the
// same grant: they start from the instant the zone came up, in nanoseconds, and no life makes one a nanosecond.
func (z *Zone) newAsk() uint64 {
	z.nextAsk = max(z.nextAsk, uint64(z.since)) + 1
	return z.nextAsk
}
