package interest

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// anySpeed stands for slices of every speed.
const anySpeed = -1

// pass offers the windows of the slices of some speed, the smallest first. It visits the slices in turn, and of the quiet ones those of
// classes that a job which changed could use. Invariant: for the others it counts the rounds that nobody could use, many at once, as if
// each had been held.
type pass struct {
	x     *Interest
	now   quantity.Instant
	speed int64
	news  bool
	// missed are by class the rounds that nobody could use, not counted yet; latest orders classes by the latest of them.
	missed []missed
	latest []int
	// behind are the slices that are visited last, since a program stays there that nobody goes on in, and would end.
	behind []*window.Slice
}

// offerTurn offers the windows of the slices in turn that have a speed, the smallest first; but where a program stays that a job can go on
// in before all others, and where nobody can behind them.
func (x *Interest) offerTurn(now quantity.Instant, speed int64, news bool, out *protocol.Out) {
	p := pass{x: x, now: now, speed: speed, news: news, missed: x.missed[:0], latest: x.latest[:0]}
	for range x.board.Classes() {
		p.missed = append(p.missed, missed{latest: -1})
	}
	p.want()
	if x.board.Staying() > 0 {
		p.reunite(out)
	}
	for i := p.next(0); i >= 0; i = p.next(i + 1) {
		p.skip(i)
		if s := x.board.Slices()[i]; s.Resident() != nil { // whoever took it would end the program
			p.behind = append(p.behind, s)
			continue
		}
		p.visit(i, out)
		p.refresh()
	}
	p.skip(len(x.board.Slices()))
	p.count()
	for _, s := range p.behind {
		p.visit(s.At(), out)
		p.refresh()
	}
	x.missed, x.latest = p.missed[:0], p.latest[:0]
}

// refresh minds the jobs that a visit has changed.
func (p *pass) refresh() {
	if p.x.index.Stale() {
		p.count()
		p.x.index.Refresh(p.now)
		p.want()
	}
}

// covers says whether the pass is for slices of a class.
func (p *pass) covers(c *window.Class) bool { return p.speed == anySpeed || c.Speed == p.speed }

// want finds the classes that a job which changed could use.
func (p *pass) want() {
	for _, c := range p.x.board.Classes() {
		p.missed[c.At()].wanted = p.covers(c) && slices.ContainsFunc(p.x.index.Fresh(), func(j *index.Job) bool {
			return j.Active() && (!j.Entry().Indexed() || j.Entry().Uses(c.At(), index.Never-1))
		})
	}
}

// next is the place of the next slice to be visited, from one on; -1 if there is none.
func (p *pass) next(from int) int {
	b := p.x.board
	i := b.InTurn(from)
	for i >= 0 && !p.covers(b.Slices()[i].Class()) {
		i = b.InTurn(i + 1)
	}
	if p.news {
		for _, c := range b.Classes() {
			if p.missed[c.At()].wanted {
				if k := c.NextQuiet(from); k >= 0 && (i < 0 || k < i) {
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
	for _, c := range p.x.board.Classes() {
		v := &p.missed[c.At()]
		if !v.wanted && p.covers(c) {
			if n, last := c.QuietBelow(v.from, below); n > 0 {
				v.n, v.latest = v.n+n, last
				p.x.rounds += uint64(n)
			}
		}
		v.from = below + 1 // the slice there is visited
	}
}

// visit offers the windows of a slice.
func (p *pass) visit(i int, out *protocol.Out) {
	x, s := p.x, p.x.board.Slices()[i]
	x.board.Done(s)
	for k := range s.Windows() {
		w := &s.Windows()[k]
		generation := x.index.Generation()
		switch {
		case w.Start() > p.now || w.Offered() && (!p.news || w.Heard() == generation) || generation == 0:
		case w.Round() != 0 || s.Sold(w): // agents are waited for; what is left is announced in the next step
		default:
			waits := x.enrol(p.now, s, w, func(j *index.Job) bool { return j.Fresh() && j.Generation() > w.Heard() })
			if !waits {
				x.offer(p.now, s, w, nil, out)
			}
		}
	}
	if s.Asked(p.now) && !s.Waits() {
		x.board.Quiet(s)
	}
}

// count makes the changed jobs count the rounds that they could not use, the latest last.
func (p *pass) count() {
	p.latest = p.latest[:0]
	n := 0
	for i := range p.missed {
		if p.missed[i].n > 0 {
			p.latest = append(p.latest, i)
			n += p.missed[i].n
		}
	}
	if n == 0 {
		return
	}
	slices.SortFunc(p.latest, func(a, b int) int { return cmp.Compare(p.missed[a].latest, p.missed[b].latest) })
	for _, j := range p.x.index.Fresh() {
		switch e := j.Entry(); {
		case !j.Active():
		case e.Eligibility() != explain.Eligible:
			j.Counts().Several(e.Eligibility(), int64(n), p.now)
		default:
			for _, i := range p.latest {
				j.Counts().SeveralRefusals(e.Refusal(i), int64(p.missed[i].n), p.now)
			}
		}
	}
	for i := range p.missed {
		p.missed[i].n = 0
	}
}
