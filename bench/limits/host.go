package main

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

const (
	// window is how far ahead a host plans, and most how many waiting jobs, as Slurm does by default (bf_window, bf_max_job_test).
	window, most = 24 * time.Hour, 500
	// mostNodes of a host.
	mostNodes = 256
)

// set of nodes, by number.
type set [mostNodes / 64]uint64

// firstNodes is the set of the first n nodes.
func firstNodes(n int) (s set) {
	for i := range n {
		s[i/64] |= 1 << (i % 64)
	}
	return s
}

func (s *set) has(node int) bool { return s[node/64]&(1<<(node%64)) != 0 }

func (s *set) add(o *set) {
	for i := range s {
		s[i] |= o[i]
	}
}

func (s *set) intersect(o *set) {
	for i := range s {
		s[i] &= o[i]
	}
}

func (s *set) remove(o *set) {
	for i := range s {
		s[i] &^= o[i]
	}
}

func (s *set) count() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// lowest are its n nodes with the lowest numbers; all if there are fewer.
func (s *set) lowest(n int) (of set) {
	for i, w := range s {
		for ; w != 0 && n > 0; n-- {
			of[i] |= w & -w
			w &= w - 1
		}
	}
	return of
}

// job is one of the host's own users.
type job struct {
	user string
	// submitted is when it comes. It runs for run, and its user asked for limit, which is no shorter.
	submitted  quantity.Instant
	run, limit time.Duration
	nodes      int

	// began is when it was started, on these nodes. Written by host.start alone.
	began quantity.Instant
	on    set
}

// atLimit is when a job that runs is over at the latest, over when it ends by itself.
func (j *job) atLimit() quantity.Instant { return j.began.Add(j.limit) }
func (j *job) over() quantity.Instant    { return j.began.Add(j.run) }

// plan is which nodes are free when: each slot until the next begins, the last for good. It has at least one.
type plan struct{ slots []slot }

type slot struct {
	from quantity.Instant
	free set
}

// split returns the slot that begins at an instant, which is no earlier than the first's begin, and makes it if there is none.
func (p *plan) split(at quantity.Instant) int {
	i, there := slices.BinarySearchFunc(p.slots, at, func(s slot, at quantity.Instant) int { return cmp.Compare(s.from, at) })
	if !there {
		p.slots = slices.Insert(p.slots, i, slot{at, p.slots[i-1].free})
	}
	return i
}

// take has nodes taken over [from, to).
func (p *plan) take(from, to quantity.Instant, nodes *set) {
	begin := p.split(from)
	for i := range p.slots[begin:p.split(to)] {
		p.slots[begin+i].free.remove(nodes)
	}
}

// earliest is when so many nodes are first free for so long, and which. Never: there are not as many.
func (p *plan) earliest(nodes int, length time.Duration) (quantity.Instant, set) {
	for i := range p.slots {
		free := p.slots[i].free
		for k := i + 1; k < len(p.slots) && p.slots[k].from < p.slots[i].from.Add(length); k++ {
			free.intersect(&p.slots[k].free)
		}
		if free.count() >= nodes {
			return p.slots[i].from, free.lowest(nodes)
		}
	}
	return quantity.Never, set{}
}

// host plans as Slurm's backfill does: in order of submission each job gets the nodes that are free soonest for as long as its limit, so
// that it delays none before it. Nodes are given whole. Everything is planned anew whenever a job comes or ends.
type host struct {
	all set
	// coming, waiting and running jobs, the first two in order of submission.
	coming, waiting, running []*job
}

// newHost has jobs come, which are in order of submission, and are left as they are.
func newHost(nodes int, jobs []job) *host {
	h := &host{all: firstNodes(nodes)}
	for _, j := range jobs {
		h.coming = append(h.coming, &j)
	}
	return h
}

// reservation is what a waiting job is meant to get.
type reservation struct {
	job  *job
	from quantity.Instant
	on   set
}

// plan is what those that wait are meant to get if those that run end when ends says, which is now at the soonest.
func (h *host) plan(now quantity.Instant, ends func(*job) quantity.Instant) (list []reservation) {
	p := plan{[]slot{{now, h.all}}}
	for _, j := range h.running {
		p.take(now, ends(j), &j.on)
	}
	for _, j := range h.waiting[:min(len(h.waiting), most)] {
		from, on := p.earliest(j.nodes, j.limit)
		if from.Sub(now) > window {
			continue
		}
		p.take(from, from.Add(j.limit), &on)
		list = append(list, reservation{j, from, on})
	}
	return list
}

// next is when the next job comes or ends.
func (h *host) next() quantity.Instant {
	at := quantity.Never
	if len(h.coming) > 0 {
		at = h.coming[0].submitted
	}
	for _, j := range h.running {
		at = min(at, j.over())
	}
	return at
}

// turn ends what is over, takes what comes and starts what may start, and says what is meant for the others.
func (h *host) turn(now quantity.Instant) (ended, started []*job, meant []reservation) {
	h.running = slices.DeleteFunc(h.running, func(j *job) bool {
		if j.over() <= now {
			ended = append(ended, j)
		}
		return j.over() <= now
	})
	for len(h.coming) > 0 && h.coming[0].submitted <= now {
		h.waiting = append(h.waiting, h.coming[0])
		h.coming = h.coming[1:]
	}
	for _, r := range h.plan(now, (*job).atLimit) {
		if r.from > now {
			meant = append(meant, r)
			continue
		}
		r.job.began, r.job.on = now, r.on
		started = append(started, r.job)
		h.waiting = slices.DeleteFunc(h.waiting, func(j *job) bool { return j == r.job })
	}
	h.running = append(h.running, started...)
	return ended, started, meant
}
