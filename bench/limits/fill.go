package main

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/departure"
	"sluice.dev/sluice/internal/core/quantity"
)

const (
	// step is the host's unit of a pilot's length, shortest the least that is asked for, least that of a subjob.
	step, shortest, least = time.Minute, 2 * time.Minute, time.Minute
	// restore is what a subjob takes until it does what nobody has done before; a pilot takes the time for its start before the first.
	restore = 20 * time.Second
)

// work is a kind of what fills gaps.
type work struct {
	name string
	// saves is between two checkpoints; 0: at the end of each subjob alone, never: whenever it is told to end.
	saves time.Duration
}

const told time.Duration = -1

var works = []work{ //nolint:gochecknoglobals // read-only
	{"when told", told}, {"each 10 min", 10 * time.Minute}, {"each 30 min", 30 * time.Minute}, {"at a planned end", 0},
}

// kept is what counts of what a subjob has done. cut: it lost its place before its planned end.
func (w *work) kept(done time.Duration, cut bool) time.Duration {
	switch {
	case !cut || w.saves == told:
		return done
	case w.saves == 0:
		return 0
	}
	return done.Truncate(w.saves)
}

// belief is when jobs that run are taken to be over.
type belief func(f *fill, j *job) quantity.Instant

// learned believes what users were seen to use of their limits, at a chance in parts per million.
func learned(alpha int64) *belief {
	b := belief(func(f *fill, j *job) quantity.Instant { return f.shares.over(f.now, j, alpha) })
	return &b
}

// runs knows how long every job runs, which is all that there is to learn of limits.
func runs() *belief {
	b := belief(func(_ *fill, j *job) quantity.Instant { return j.over() })
	return &b
}

// way is one way to fill a host's gaps.
type way struct {
	name string
	// longest a pilot may be.
	longest time.Duration
	// ends is what of gaps' ends is believed beside the host's plan; nil: that alone. knows: the gaps' ends are known.
	ends  *belief
	knows bool
	// subjobs: pilots are as long as the host's plan allows, only their subjobs end when the gap is believed to end.
	subjobs bool

	pilots []pilot // of each node
	// asked is how many pilots were asked for, preempted how many lost their place.
	asked, preempted int
	kept             []time.Duration // of each of works
}

// pilot on one node, which is there until an instant; 0: there is none. It has a subjob over [begin, end), done by then or cut.
type pilot struct{ until, begin, end quantity.Instant }

// closed is when a pilot's time is not sold any more.
func (p *pilot) closed() quantity.Instant { return p.until.Add(-departure.HandOver) }

// end counts what a pilot's subjob has done by an instant at which it ended or was cut.
func (w *way) end(p *pilot, at quantity.Instant, cut bool) {
	for i := range works {
		w.kept[i] += works[i].kept(max(0, min(at, p.end).Sub(p.begin)-restore), cut && at < p.end)
	}
}

// claim is that a gap lasts until an instant.
type claim struct {
	at, until quantity.Instant
	// learned are the ends by each of believed.
	learned []quantity.Instant
}

// outcome of claims.
type outcome struct {
	// asked is how often a pilot was asked for, claimed how often that was with an end, over how many of those gaps were seen to end.
	asked, claimed, over int
	// early ended before it, of these newcomer by a job that was not there when it was claimed.
	early, newcomer int
	// failed ended before the end by each of believed.
	failed []int
}

// fill is a host whose gaps are filled in several ways at once. None of them changes what the host does.
type fill struct {
	host   *host
	nodes  int
	start  time.Duration // of a pilot
	shares *shares
	ways   []*way
	// believed are those whose claims are held against what came, for the first way's pilots.
	believed []*belief
	// taken is when jobs begin on each node.
	taken [][]quantity.Instant

	now     quantity.Instant
	busy    set
	meant   []reservation
	replays map[*belief]map[*job]quantity.Instant // of this instant
	claims  [][]claim                             // of each node
	outcome outcome
	// idle is the time of all gaps.
	idle time.Duration
}

// play has jobs come to a host, and returns what became of it. The stretch is over when the last job comes.
func play(nodes int, start time.Duration, jobs []job, ways []*way, believed []*belief) *fill {
	f := &fill{host: newHost(nodes, jobs), nodes: nodes, start: start, shares: newShares(), ways: ways, believed: believed,
		taken: make([][]quantity.Instant, nodes), claims: make([][]claim, nodes), outcome: outcome{failed: make([]int, len(believed))}}
	for _, w := range ways {
		w.pilots, w.kept = make([]pilot, nodes), make([]time.Duration, len(works))
	}
	end := jobs[len(jobs)-1].submitted
	for h := newHost(nodes, jobs); h.next() < end; {
		now := h.next()
		_, started, _ := h.turn(now)
		for _, j := range started {
			for node := range nodes {
				if j.on.has(node) {
					f.taken[node] = append(f.taken[node], now)
				}
			}
		}
	}
	for now := f.next(); now < end; now = f.next() {
		f.turn(now)
	}
	f.pass(end)
	for _, w := range ways {
		for i := range w.pilots {
			if p := &w.pilots[i]; p.until != 0 {
				w.end(p, end, false)
			}
		}
	}
	return f
}

// pass is that time passes.
func (f *fill) pass(now quantity.Instant) {
	f.idle += now.Sub(f.now) * time.Duration(f.nodes-f.busy.count())
	f.now = now
}

// next is when the host or a pilot has something to do.
func (f *fill) next() quantity.Instant {
	at := f.host.next()
	for _, w := range f.ways {
		for _, p := range w.pilots {
			if p.until != 0 {
				at = min(at, p.until)
			}
			if p.until != 0 && p.end > f.now {
				at = min(at, p.end)
			}
		}
	}
	return at
}

func (f *fill) turn(now quantity.Instant) {
	f.pass(now)
	for _, w := range f.ways {
		for i := range w.pilots {
			if p := &w.pilots[i]; p.until != 0 && p.until <= now {
				w.end(p, p.until, false)
				*p = pilot{}
			}
		}
	}
	f.replays = map[*belief]map[*job]quantity.Instant{}
	var ended, started []*job
	if f.host.next() <= now { // a host that planned anew whenever a pilot ends might start others than without pilots
		ended, started, f.meant = f.host.turn(now)
	}
	for _, j := range ended {
		f.busy.remove(&j.on)
		f.shares.saw(j)
	}
	for _, j := range started {
		f.busy.add(&j.on)
		for node := range f.nodes {
			if j.on.has(node) {
				f.preempt(node, j)
			}
		}
	}
	for node := range f.nodes {
		if !f.busy.has(node) {
			f.use(node)
		}
	}
}

// preempt gives a node to the host's job.
func (f *fill) preempt(node int, by *job) {
	for _, w := range f.ways {
		if p := &w.pilots[node]; p.until != 0 {
			w.preempted++
			w.end(p, f.now, true)
			*p = pilot{}
		}
	}
	o := &f.outcome
	for _, c := range f.claims[node] {
		o.over++
		if f.now < c.until {
			o.early++
			if by.submitted > c.at {
				o.newcomer++
			}
		}
		for i, at := range c.learned {
			if f.now < at {
				o.failed[i]++
			}
		}
	}
	f.claims[node] = nil
}

// planned is until when the host's plan leaves a node free, and for which job.
func (f *fill) planned(node int) (end quantity.Instant, by *job) {
	end = quantity.Never
	for i := range f.meant {
		if r := &f.meant[i]; r.from < end && r.on.has(node) {
			end, by = r.from, r.job
		}
	}
	return end, by
}

// likely is until when a gap lasts that the plan has end for a job, if what runs is over as is believed: when the job starts then.
func (f *fill) likely(end quantity.Instant, by *job, b *belief) quantity.Instant {
	if by == nil {
		return end
	}
	starts := f.replays[b]
	if starts == nil {
		starts = map[*job]quantity.Instant{}
		for _, r := range f.host.plan(f.now, func(j *job) quantity.Instant { return (*b)(f, j) }) {
			starts[r.job] = r.from
		}
		f.replays[b] = starts
	}
	if at, there := starts[by]; there {
		return min(end, at)
	}
	return end
}

// use has every way use a node that is free.
func (f *fill) use(node int) {
	end, by, looked := quantity.Never, (*job)(nil), false
	for i, w := range f.ways {
		p := &w.pilots[node]
		if p.until != 0 && (p.end > f.now || p.closed() <= f.now) {
			continue
		}
		if !looked {
			end, by = f.planned(node)
			looked = true
		}
		hard, until := end, end
		switch {
		case w.knows:
			at, _ := slices.BinarySearch(f.taken[node], f.now)
			hard = append(f.taken[node][at:len(f.taken[node]):len(f.taken[node])], quantity.Never)[0]
			until = hard
		case w.ends != nil:
			until = f.likely(end, by, w.ends)
		}
		if p.until != 0 {
			w.end(p, f.now, false)
			p.begin = f.now
			p.end = min(p.closed(), max(until, f.now.Add(least)))
			continue
		}
		if !w.ask(p, f.now, hard, until, f.start) {
			continue
		}
		if i == 0 {
			f.claim(node, end, by)
		}
	}
}

// ask asks for a pilot where the host leaves room until hard, and the gap is believed to last until. False: there is too little room.
func (w *way) ask(p *pilot, now, hard, until quantity.Instant, start time.Duration) bool {
	room := hard
	if !w.subjobs {
		room = min(hard, max(until, now.Add(shortest))) // a gamble is better than an idle node
	}
	length := min(w.longest, room.Sub(now)).Truncate(step)
	if length < shortest {
		return false
	}
	w.asked++
	*p = pilot{until: now.Add(length), begin: now.Add(start)}
	p.end = p.closed()
	if w.subjobs {
		p.end = min(p.end, max(until, p.begin.Add(least)))
	}
	return true
}

// claim notes what is said of a gap.
func (f *fill) claim(node int, end quantity.Instant, by *job) {
	f.outcome.asked++
	if by == nil {
		return
	}
	f.outcome.claimed++
	c := claim{at: f.now, until: end}
	for _, b := range f.believed {
		c.learned = append(c.learned, f.likely(end, by, b))
	}
	f.claims[node] = append(f.claims[node], c)
}
