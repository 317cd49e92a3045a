package giving

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/reclaim"
	"sluice.dev/sluice/internal/core/status"
)

// What becomes of a subjob that a place is kept on.
const (
	chosen    = "chosen"
	truncated = "truncated"
	withdrawn = "withdrawn"
	spared    = "spared"
)

// mostSteps bounds the steps that are kept about subjobs that stop, and as many about those that are spared. The oldest go first.
const mostSteps = 256

// record is what was decided about subjobs of late. Soft: it is for people, and nothing follows from it.
type record struct {
	stops, spares []status.ReclaimStep
	// last is the newest step about a subjob that stops.
	last map[job.Token]latest
}

// latest names a step about a subjob: it is noted once.
type latest struct {
	wish reclaim.ID
	step string
}

// candidate is a subjob that is to stop for a place, as it was before that was known.
type candidate struct {
	place *reclaim.Place
	slice job.SliceID
	Sold
}

// note records what has become of the subjobs in the way of places, and who is spared for these, unless it is recorded.
func (r *record) note(now quantity.Instant, list []candidate, n Node) {
	noted := map[reclaim.ID]bool{}
	for _, c := range list {
		is := latest{c.place.Wish, chosen}
		after := n.Sold(c.slice)
		i := slices.IndexFunc(after, func(l Sold) bool { return l.Token == c.Token })
		end := quantity.Instant(0)
		switch {
		case i < 0:
			is.step = withdrawn
		case after[i].End < c.End:
			is.step, end = truncated, after[i].End
		default:
			end = after[i].End
		}
		was := r.last[c.Token]
		if was == is || was.wish == is.wish && is.step == chosen {
			continue
		}
		if r.last == nil {
			r.last = map[job.Token]latest{}
		}
		if r.last[c.Token] = is; is.step == withdrawn {
			delete(r.last, c.Token) // nobody says that it is over
		}
		r.stops = r.add(r.stops, c.step(now, is.step, c.place.Basis(), end))
		if was.wish != is.wish && !noted[is.wish] {
			noted[is.wish] = true
			r.spare(now, c.place, n)
		}
	}
}

// spare records who would have stopped for a place in another's stead.
func (r *record) spare(now quantity.Instant, p *reclaim.Place, n Node) {
	for i := range p.Spared {
		w := &p.Spared[i]
		for _, id := range w.Stops {
			for _, l := range n.Sold(id) {
				r.spares = r.add(r.spares, candidate{p, id, l}.step(now, spared, p.Sparing(w), l.End))
			}
		}
	}
}

func (c candidate) step(now quantity.Instant, what, why string, end quantity.Instant) status.ReclaimStep {
	return status.ReclaimStep{
		At: now, Wish: string(c.place.Wish), Who: reclaim.NameOf(c.place.Who), Job: c.Job, Generation: c.Generation, Token: c.Token,
		Slice: c.slice, Step: what, Why: why, End: end,
	}
}

func (*record) add(list []status.ReclaimStep, s status.ReclaimStep) []status.ReclaimStep {
	if len(list) == mostSteps {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, s)
}

// steps are all that are kept, in order.
func (r *record) steps() []status.ReclaimStep {
	all := slices.Concat(r.stops, r.spares)
	slices.SortStableFunc(all, func(a, b status.ReclaimStep) int { return cmp.Compare(a.At, b.At) })
	return all
}

// placed says what is kept for a wish, and which subjobs stop for it.
func placed(w *status.Wish, p *reclaim.Place, sold func(job.SliceID) []Sold) {
	w.Machine, w.From, w.Open, w.Slices, w.Lost, w.Left = p.Machine, p.From, p.Open, slices.Clone(p.Stops), p.Cost.Lost, p.Cost.Left
	for _, d := range p.Devices {
		w.Devices = append(w.Devices, d.Pool+"/"+d.Device)
	}
	switch {
	case len(p.Stops) == 0 || p.Open:
	case p.From != 0:
		w.At = p.From
	default:
		w.At = p.At
	}
	for _, id := range p.Stops {
		for _, l := range sold(id) {
			w.Subjobs = append(w.Subjobs, status.WishSubjob{Job: l.Job, Token: l.Token, Slice: id, End: l.End})
		}
	}
}
