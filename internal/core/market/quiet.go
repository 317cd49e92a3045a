package market

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/bitset"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// A slice is quiet while its window has begun, everybody has been asked and no agent is waited for: then only jobs that change may use it,
// and most that change may not. A pass visits the slices in turn, and the quiet ones of classes that such a job could use. For the others
// it counts the rounds that no job could use, many at once. Where jobs bid no slice is quiet.

// pass offers the windows of the slices of some speed, the smallest first.
type pass struct {
	f     *Floor
	now   quantity.Instant
	speed int64
	news  bool
	// unusable are by class the rounds that no job could use, not counted yet; tells orders classes by the latest of them.
	unusable []unusable
	tells    []int
}

// unusable is what a pass knows of a class: whether a changed job could use slices of it, the position from which that holds, the number of
// rounds that no job could use, and the position of the latest.
type unusable struct {
	wanted          bool
	from, n, latest int
}

// offerTurn offers the windows of the slices in turn that have a speed, the smallest first.
func (f *Floor) offerTurn(now quantity.Instant, speed int64, news bool, out *protocol.Out) {
	p := pass{f: f, now: now, speed: speed, news: news, unusable: f.unusable[:0], tells: f.tells[:0]}
	for range f.classes {
		p.unusable = append(p.unusable, unusable{latest: -1})
	}
	p.want()
	for i := p.next(0); i >= 0; i = p.next(i + 1) {
		p.skip(i)
		p.visit(i, out)
		if f.stale.Len() > 0 {
			p.count()
			f.refreshIndex(now)
			p.want()
		}
	}
	p.skip(len(f.slices))
	p.count()
	f.unusable, f.tells = p.unusable[:0], p.tells[:0]
}

// covers says whether the pass is for slices of a class.
func (p *pass) covers(c *Class) bool { return p.speed == anySpeed || c.Speed == p.speed }

// want finds the classes that a job which changed could use.
func (p *pass) want() {
	for _, c := range p.f.classes {
		p.unusable[c.at].wanted = p.covers(c) && slices.ContainsFunc(p.f.fresh.List(), func(j *Job) bool {
			return j.active > 0 && (!j.indexed || j.ineligible == Eligible && j.answers[c.at].need != never)
		})
	}
}

// next is the place of the next slice to be visited, from one on; -1 if there is none.
func (p *pass) next(from int) int {
	f := p.f
	i := f.turn.Next(from)
	for i >= 0 && !p.covers(f.slices[i].class) {
		i = f.turn.Next(i + 1)
	}
	if p.news {
		for _, c := range f.classes {
			if p.unusable[c.at].wanted {
				if k := c.quiet.Next(from); k >= 0 && (i < 0 || k < i) {
					i = k
				}
			}
		}
	}
	return i
}

// skip minds the quiet slices below a place that nobody could use.
func (p *pass) skip(below int) {
	if !p.news {
		return
	}
	for _, c := range p.f.classes {
		v := &p.unusable[c.at]
		if !v.wanted && p.covers(c) {
			if n := c.quiet.Count(v.from, below); n > 0 {
				v.n, v.latest = v.n+n, c.quiet.Last(below)
				p.f.nextRound += uint64(n)
			}
		}
		v.from = below + 1 // the slice there is visited
	}
}

// visit offers the windows of a slice.
func (p *pass) visit(i int, out *protocol.Out) {
	f, s := p.f, p.f.slices[i]
	f.turn.Drop(i)
	s.class.quiet.Drop(i)
	for k := range s.windows {
		w := &s.windows[k]
		switch {
		case w.start > p.now || w.offered && (!p.news || w.heard == f.generation) || f.generation == 0:
		case w.round != 0 || w.sold(s): // agents are waited for; what is left is announced in the next step
		case !f.callFor(p.now, s, w, func(j *Job) bool { return bool(j.fresh) && j.generation > w.heard }):
			f.ask(p.now, s, w, nil, out)
		}
	}
	if slices.ContainsFunc(s.windows, func(w window) bool { return w.start <= p.now && w.offered }) && !s.inRound() {
		s.class.quiet.Put(i)
	}
}

// count has the jobs that changed count the rounds that they could not use, the latest last.
func (p *pass) count() {
	p.tells = p.tells[:0]
	n := 0
	for i := range p.unusable {
		if p.unusable[i].n > 0 {
			p.tells = append(p.tells, i)
			n += p.unusable[i].n
		}
	}
	if n == 0 {
		return
	}
	slices.SortFunc(p.tells, func(a, b int) int { return cmp.Compare(p.unusable[a].latest, p.unusable[b].latest) })
	for _, j := range p.f.fresh.List() {
		switch {
		case j.active == 0:
		case j.ineligible != Eligible:
			j.counts.several(j.ineligible, int64(n), p.now)
		default:
			for _, i := range p.tells {
				refusal := j.answers[i].refusal
				j.counts.several(reasonOf[refusal.Why], int64(p.unusable[i].n), p.now).Refusal = refusal
			}
		}
	}
	for i := range p.unusable {
		p.unusable[i].n = 0
	}
}

// stir puts into turn the slices with a window that has begun: all where jobs bid, else those that are not quiet, which the pass
// finds by itself. A slice in turn is not quiet.
func (f *Floor) stir() {
	if f.cfg.Market != nil {
		f.turn.Join(&f.open)
		return
	}
	f.eligible.Clear()
	f.eligible.Join(&f.open)
	for _, c := range f.classes {
		f.eligible.Without(&c.quiet)
	}
	f.turn.Join(&f.eligible)
}

// quiets are the sets of quiet slices, by class.
func (f *Floor) quiets(do func(*bitset.Set)) {
	for _, c := range f.classes {
		do(&c.quiet)
	}
}
