package zone

import (
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// piece is a materialized subjob: what is asked of a node.
type piece struct {
	atomizer.Piece
	start, end quantity.Instant
	// speed of the job there, in parts per thousand.
	speed         int64
	window, round uint64
}

// candidate is an interested job in a round.
type candidate struct {
	policy.Candidate
	job *state
}

// market announces every window that opens now to every waiting job and asks a node for the winner's place. It returns
// when the next window opens.
func (z *Zone) market(now quantity.Instant, out *protocol.Out) quantity.Instant {
	z.lapse(now)
	z.keepCaps(now)
	wake := z.planRigid(now, out)
	var gaps []protocol.Gap
	for _, s := range z.slices {
		gaps = z.free(s, now, "", gaps)
		z.announce(s, now, gaps)
		for i := range s.windows {
			w := &s.windows[i]
			if w.start > now {
				wake = min(wake, w.start)
				continue
			}
			if w.generation != z.generation {
				z.round(now, s, w, out)
			}
		}
	}
	return min(wake, z.unanswered(now))
}

// round offers one window: signals of interest from every waiting job, an order by policy, and only then the piece. A
// window that was announced before is offered only to the jobs that have changed since: between changes nobody becomes
// eligible, since the window only shrinks.
func (z *Zone) round(now quantity.Instant, s *slice, w *window, out *protocol.Out) {
	full, count := w.generation == 0, 0 // jobs are counted in full rounds alone: in the others a job would count again
	if full {
		count = 1
		w.answers, w.asked, w.short, w.unsafe, w.barred, w.busy = 0, 0, 0, 0, 0, 0
	}
	z.nextRnd++
	round := z.nextRnd
	z.candidates = z.candidates[:0]
	for _, st := range z.live {
		if !full && st.generation <= w.generation {
			continue
		}
		if why := z.deaf(now, st); why != interested {
			st.counts.add(why, now)
			w.busy += count
			continue
		}
		p, refusal := z.fit(st, s, w, now)
		if refusal.Why != atomizer.Interested {
			st.counts.refusal(refusal, now)
			switch refusal.Why {
			case atomizer.Unsafe:
				w.unsafe += count
			case atomizer.TooShort, atomizer.NotForever:
				w.short += count
			case atomizer.Barred:
				w.barred += count
			default:
				w.busy += count
			}
			continue
		}
		w.answers++
		z.candidates = append(z.candidates, candidate{Candidate: z.candidate(now, st, s, w, &p), job: st})
	}
	w.generation = z.generation
	for len(z.candidates) > 0 {
		best := 0
		for i := 1; i < len(z.candidates); i++ {
			if z.cfg.Policy.Compare(&z.candidates[i].Candidate, &z.candidates[best].Candidate) < 0 {
				best = i
			}
		}
		st := z.candidates[best].job
		// The winner, and nobody else, cuts its piece now, with its progress as it is now. It may still decline: the next in
		// order is asked.
		w.asked++
		p, refusal := z.fit(st, s, w, now)
		if refusal.Why == atomizer.Interested {
			z.lost(best, now)
			end := now.Add(p.Length)
			if p.Length == time.Duration(math.MaxInt64) || st.Spec.Kind == job.Rigid && st.Spec.Walltime == 0 {
				end = quantity.Never
			}
			z.ask(now, st, s, nil, piece{Piece: p, start: now, end: end, speed: s.speed(st.Spec), window: w.id, round: round}, 0, out)
			w.generation = 0 // what is left of it is announced again
			return
		}
		st.counts.refusal(refusal, now)
		z.candidates[best] = z.candidates[len(z.candidates)-1]
		z.candidates = z.candidates[:len(z.candidates)-1]
	}
}

// lost counts the round for everybody but the winner.
func (z *Zone) lost(winner int, now quantity.Instant) {
	for i := range z.candidates {
		if i != winner {
			z.candidates[i].job.counts.add(lostToPolicy, now)
		}
	}
}

// ask proposes a piece to the node, which alone decides: the first of the five steps.
func (z *Zone) ask(now quantity.Instant, st *state, s *slice, also []job.SliceID, p piece, reservation uint64, out *protocol.Out) {
	id := z.newAsk()
	z.asks = append(z.asks, &ask{id: id, job: st, slice: s, also: also, piece: p, expires: now.Add(z.cfg.AskTTL), version: s.view.Version})
	st.asked = st.asked.Add(p.Range)
	st.asking++
	m := protocol.Message{
		Kind: protocol.Ask, To: protocol.Address{Role: protocol.Node, ID: string(s.view.Node)}, Ask: id, Job: st.Job, Epoch: st.Epoch,
		Slice: s.id, Also: also, Start: p.start, End: p.end, Demand: p.Demand,
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

// fit asks the job's atomizer, with the queue's bound on windows applied.
func (z *Zone) fit(st *state, s *slice, w *window, now quantity.Instant) (atomizer.Piece, atomizer.Refusal) {
	if st.Spec.Kind == job.Rigid && st.Spec.Slices > 1 {
		return atomizer.Piece{}, atomizer.Refusal{Why: atomizer.TooShort, Need: st.Spec.Walltime} // placed by planRigid
	}
	v, offered := st.view(), z.window(st, s, max(w.start, now), w.end)
	p, r := atomizer.Fit(&v, offered)
	if r.Why == atomizer.TooShort && st.Spec.Divisible() && offered.End.Sub(offered.Start) >= z.longest(st) {
		v.Hopeful = true
		return atomizer.Fit(&v, offered)
	}
	return p, r
}

// longest is the longest window a job can be offered.
func (z *Zone) longest(st *state) time.Duration {
	if most := st.q.MaxWindow; most > 0 {
		return min(z.cfg.Horizon, most)
	}
	return z.cfg.Horizon
}

// window is what a job sees of [start, end): bounded by its queue's maxWindow and, where no end is known, the horizon.
func (z *Zone) window(st *state, s *slice, start, end quantity.Instant) atomizer.Window {
	rigid := st.Spec.Kind == job.Rigid
	if end == quantity.Never && !rigid {
		end = start.Add(z.cfg.Horizon)
	}
	if most := st.q.MaxWindow; most > 0 && !rigid {
		end = min(end, start.Add(most))
	}
	return atomizer.Window{Capacity: s.view.Slice.Capacity, Speed: s.speed(st.Spec), Start: start, End: end}
}

// view is what the atomizer may know. Ranges that a node was asked for count as claimed.
func (s *state) view() atomizer.View {
	v := atomizer.View{
		Spec: s.Spec, Committed: s.Committed, Claimed: s.Claimed, Running: len(s.Claims), Learned: &s.Learned, Resume: s.Resume,
	}
	if planted.In(planted.SellTwice) {
		v.Claimed = nil
		return v
	}
	if len(s.asked) > 0 {
		v.Claimed = nil
		for _, r := range s.Claimed {
			v.Claimed = v.Claimed.Add(r)
		}
		for _, r := range s.asked {
			v.Claimed = v.Claimed.Add(r)
		}
		v.Running += s.asking
	}
	return v
}

// waits says why a job is not asked at all.
func (z *Zone) waits(now quantity.Instant, s *state) reason {
	q := s.q
	switch {
	case s.dropping.State != job.Waiting:
		return ending
	case s.Held:
		return held
	case s.notBefore > now:
		return resting
	case q.Cap > 0 && q.held+z.asking(q)+s.width() > q.Cap:
		return queueCap
	case q.kept != nil && q.kept != s && older(q.kept, s) < 0 && q.held+z.asking(q)+s.width()+q.kept.width() > q.Cap:
		return queueCap
	}
	return interested
}

// deaf says why a job does not answer windows: it waits, or a better place than any of them is planned for it.
func (z *Zone) deaf(now quantity.Instant, s *state) reason {
	if s.planned {
		return planned
	}
	return z.waits(now, s)
}

// width is how many slices one subjob of the job holds.
func (s *state) width() int { return max(1, s.Spec.Slices) }

// keepCaps finds, for every capped queue, the first gang that its cap keeps from running. What comes after it in the queue
// does not take the slices it waits for, or it would wait for ever.
func (z *Zone) keepCaps(now quantity.Instant) {
	kept := z.kept[:0]
	for _, s := range z.rigid {
		q := s.q
		if q.Cap == 0 || s.width() == 1 || s.width() > q.Cap || len(s.Claims) > 0 || s.asking > 0 || s.Held || s.notBefore > now || s.dropping.State != job.Waiting {
			continue
		}
		if i := slices.IndexFunc(kept, func(k *state) bool { return k.q == q }); i < 0 {
			kept = append(kept, s)
		} else if older(s, kept[i]) < 0 {
			kept[i] = s
		}
	}
	for _, k := range z.keeping {
		if !slices.Contains(kept, k) && k.q.kept == k {
			k.q.kept = nil
			z.freed(k.q)
		}
	}
	for _, k := range kept {
		k.q.kept = k
	}
	z.keeping, z.kept = kept, z.keeping
}

// older orders jobs as rigid ones are served: by priority, then age.
func older(a, b *state) int {
	return policy.ByAge(
		&policy.Candidate{Job: a.Job, Priority: a.Spec.Priority, Submitted: a.Submitted},
		&policy.Candidate{Job: b.Job, Priority: b.Spec.Priority, Submitted: b.Submitted},
	)
}

// asking counts the slices a queue's unanswered asks would hold.
func (z *Zone) asking(q *queue) (n int) {
	for _, a := range z.asks {
		if a.job.q == q {
			n += 1 + len(a.also)
		}
	}
	return n
}

func (z *Zone) candidate(now quantity.Instant, st *state, s *slice, w *window, p *atomizer.Piece) policy.Candidate {
	q := st.q
	window := z.window(st, s, now, w.end)
	mib := func(v trp.Vector) int64 { return int64(v[trp.Memory]>>20) + 1 }
	laxity := time.Duration(math.MaxInt64)
	if d := st.deadline(); d != quantity.Never {
		v := st.view()
		laxity = d.Sub(now) - v.RunTime(st.Spec.Total-st.Committed.Len(), s.speed(st.Spec))
		if st.Spec.Kind == job.Rigid {
			laxity = d.Sub(now) - st.Spec.WalltimeAt(s.speed(st.Spec))
		}
	}
	return policy.Candidate{
		Job: st.Job, Priority: st.Spec.Priority, Submitted: st.Submitted, Attained: st.Attained + st.going, QueueAttained: q.attained + q.going,
		Weight: max(1, q.Weight), Laxity: laxity,
		Used: mib(p.Demand) * p.Wall.Milliseconds(), Offered: mib(s.view.Slice.Capacity) * max(1, window.End.Sub(window.Start).Milliseconds()),
	}
}
