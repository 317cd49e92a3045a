package atomizer

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
)

// MostVariants is how many variants of one job are proposed for one window, at most.
const MostVariants = 64

// overlap is by how much two variants of the same work overlap at least: a market may count time in milliseconds.
const overlap = time.Millisecond

// Propose appends what the job would cut from w, as variants to choose from, and returns out (JASDA, arXiv 2510.14599,
// statements J1 and J3; which alternatives there are is ours). At most most of them, 1 to MostVariants, in this order:
//   - the piece of Fit, which is the longest, from the start of the window;
//   - the same under each of the job's options that is safe there;
//   - of independent items whose share does not fill the window, a chain: the next units, from where that piece ends, as
//     far as the parallelism goes;
//   - half of the time;
//   - one that begins as late as it can, so that others may go first, unless nothing is known to come after the window;
//   - a quarter of the time.
//
// Each is complete and safe. Two that share a unit of work overlap in time, so that plain interval scheduling never sells
// it twice: a delayed one is moved towards the others as far as that takes. Rigid jobs, and those whose usual run
// time fits no window (View.Hopeful), propose the one piece of Fit, as do those that measure.
//
// Ids are places in out, from 1 on: for all windows of one answer append to one slice. Nothing is allocated while out has
// room.
func Propose(v *View, w Window, most int, now quantity.Instant, out []protocol.Variant) []protocol.Variant {
	first, refusal := Fit(v, w)
	if refusal.Why != Interested || most < 1 {
		return out
	}
	p := proposal{view: v, window: w, out: out, mine: len(out), most: len(out) + min(most, MostVariants), left: max(1, v.Left())}
	p.urgency = score.Laxity(v.finish(w.Speed, now), v.Spec.Deadline)
	p.add(first, w.Start, "")
	if v.Spec.Kind == job.Rigid || v.Hopeful || v.Measures() || most == 1 {
		return p.out
	}
	p.options()
	p.chain(first)
	half := p.shorter(first, 2)
	p.delayed(first, half)
	p.shorter(first, 4)
	return p.out
}

// proposal is the answer of one job for one window, as it grows.
type proposal struct {
	view   *View
	window Window
	out    []protocol.Variant
	// mine is where this window's variants begin in out, most where they must end.
	mine, most int
	// left units are for sale; urgency of the deadline in millionths.
	left, urgency int64
}

// full says whether there are as many variants as are wanted.
func (p *proposal) full() bool { return len(p.out) == p.most }

// add appends a piece that begins at start, unless there are enough variants, or an earlier one shares units with it and does not overlap
// it in time: clearing could then sell those units twice.
func (p *proposal) add(x Piece, start quantity.Instant, option string) {
	if p.full() || start < p.window.Start || start.Add(x.Length) > p.window.End {
		return
	}
	for i := p.mine; i < len(p.out); i++ {
		o := &p.out[i]
		if o.Range.Overlaps(x.Range) && (start.Add(x.Wall) <= o.Start || o.Start.Add(o.Wall) <= start) {
			return
		}
	}
	p.out = append(p.out, protocol.Variant{
		ID: uint32(len(p.out) + 1), Window: p.window.ID, Range: x.Range, Start: start, Run: x.Run, Wall: x.Wall, Demand: x.Demand,
		Option: option,
		Score:  p.declare(x),
	})
}

// declare is what the job says a piece is worth to it, in millionths.
func (p *proposal) declare(x Piece) int64 {
	f := score.Job{Progress: score.Progress(x.Range.Len(), p.left), Laxity: p.urgency, Overhead: score.Overhead(x.Wall-x.Run, x.Wall)}
	return f.Of(p.view.Spec.Worth)
}

// options proposes the first piece under each option.
func (p *proposal) options() {
	if p.view.Option != nil || !p.view.Continues.Empty() {
		return // they are chosen already
	}
	v := *p.view
	for i := range v.Spec.Options {
		if p.full() {
			return
		}
		v.Option = &v.Spec.Options[i]
		if x, r := Fit(&v, p.window); r.Why == Interested {
			p.add(x, p.window.Start, v.Option.Name)
		}
	}
}

// chain proposes the units that follow, each piece from where the one before ends.
func (p *proposal) chain(x Piece) {
	if p.view.Spec.Kind != job.Items || !p.view.Continues.Empty() {
		return
	}
	v, w := *p.view, p.window
	for !p.full() {
		v.Running++
		v.from = x.Range.To
		w.Start = w.Start.Add(x.Length)
		var r Refusal
		if x, r = Fit(&v, w); r.Why != Interested {
			return
		}
		p.add(x, w.Start, p.optionName())
	}
}

// shorter proposes what fits an n-th of the first piece's time, from as early as it can overlap the others. It returns an
// empty piece if that is not worth it.
func (p *proposal) shorter(first Piece, n time.Duration) Piece {
	if p.full() {
		return Piece{}
	}
	w := p.window
	w.End = w.Start.Add(first.Length / n)
	x, r := Fit(p.view, w)
	if r.Why != Interested || x.Range.From != first.Range.From || x.Range.To >= first.Range.To || !p.view.worthIt(x) {
		return Piece{}
	}
	last := p.window.Start
	for i := p.mine; i < len(p.out); i++ {
		if o := &p.out[i]; o.Range.Overlaps(x.Range) {
			last = max(last, o.Start)
		}
	}
	p.add(x, max(p.window.Start, last.Add(overlap-x.Wall)), p.optionName())
	return x
}

// delayed proposes the first piece, or half of it, with the most time before it: at the end of the window, or where it
// still overlaps all others of the same work. It is worth it if a job like this one could use that time.
func (p *proposal) delayed(first, half Piece) {
	if p.full() || p.window.Open || p.window.End == quantity.Never || !p.view.Continues.Empty() {
		return
	}
	least := LeastWindow(p.view, p.view.speed(p.window.Speed))
	for _, x := range [...]Piece{first, half} {
		if x.Range.Empty() {
			return
		}
		start := p.window.End.Add(-x.Length)
		for i := p.mine; i < len(p.out); i++ {
			if o := &p.out[i]; o.Range.Overlaps(x.Range) {
				start = min(start, o.Start.Add(o.Wall-overlap))
			}
		}
		if start.Sub(p.window.Start) >= least {
			p.add(x, start, p.optionName())
			return
		}
	}
}

// optionName of a view that has chosen one.
func (p *proposal) optionName() string {
	if p.view.Option == nil {
		return ""
	}
	return p.view.Option.Name
}

// worthIt says whether a piece keeps the job's largest share of overhead (OverheadMax), its start-up apart, which every
// process has.
func (v *View) worthIt(x Piece) bool {
	startup := v.startup()
	if !v.Continues.Empty() {
		startup = 0
	}
	return v.Spec.OverheadMax == 0 || int64(x.Wall-x.Run-startup) <= quantity.MulDiv(int64(x.Wall), int64(v.Spec.OverheadMax), 1000)
}

// finish is when the job would end if it ran from now on without a pause at this speed.
func (v *View) finish(speed int64, now quantity.Instant) quantity.Instant {
	if v.Spec.Kind == job.Rigid {
		return now.Add(v.Spec.WalltimeAt(v.speed(speed)))
	}
	return now.Add(v.RunTime(v.Ahead(), v.speed(speed)))
}
