package sim

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Storm is memory that nobody has foreseen.
type Storm struct {
	At   quantity.Instant
	Node job.NodeID
	// Shape says whose it is and how it comes.
	Shape Shape
	Size  quantity.Amount
	// For is how long it takes to be there in full, or stays.
	For time.Duration
}

// Shape of a storm.
type Shape uint8

// The shapes. One process is struck by the first four: the next one with each storm, in order of token, or one that is drawn.
const (
	// Leak: it grows by Size evenly for For, and keeps that.
	Leak Shape = iota
	// Jump: Size is there at once, and gone after For.
	Jump
	// Sawtooth: four times in For it grows to Size and is gone again.
	Sawtooth
	// ForkBomb: it doubles its part of Size every tenth of For, and keeps that.
	ForkBomb
	// Many: all that run there grow evenly for For, by Size together, and keep that.
	Many
	// Tmpfs: Size grows evenly for For and is gone; it is no process's, and who has written it is not known.
	Tmpfs
	// PageCache: the same of files that were read. Where memory is short the kernel drops it, so that all of it is available and no sensor
	// counts it.
	PageCache

	Shapes = iota
)

// ShapeNames are the shapes as a scenario writes them.
func ShapeNames() []string {
	return []string{"leak", "jump", "sawtooth", "fork-bomb", "many", "tmpfs", "page-cache"}
}

// extra is what a storm has taken when it has blown for so long; over: it is gone, or as large as it gets.
func (s *Storm) extra(blown time.Duration) (size quantity.Amount, over bool) {
	even := quantity.Amount(quantity.MulDiv(int64(s.Size), int64(min(blown, s.For)), int64(s.For)))
	switch over = blown >= s.For; s.Shape {
	case Jump, Tmpfs, PageCache:
		if over {
			return 0, true
		}
		if s.Shape == Jump {
			return s.Size, false
		}
		return even, false
	case Sawtooth:
		if over {
			return 0, true
		}
		tooth := s.For / 4
		return quantity.Amount(quantity.MulDiv(int64(s.Size), int64(blown%max(1, tooth)), int64(max(1, tooth)))), false
	case ForkBomb:
		return s.Size >> max(0, 10-int(blown*10/s.For)), over
	default:
		return even, over
	}
}

// gust is a storm as it strikes one run, or a host: it blows only while that runs.
type gust struct {
	*Storm
	share int64 // of its size, one of so many
	blown time.Duration
	// of is the unit of its job that the run was in when it was struck, for the times-th time; 0 times: it is nobody's work.
	of    int64
	times int
}

// A storm that strikes one process is of the work that it strikes: who begins that unit again, because it was not complete when the
// process was ended, is struck again, three times in all. Else ending who grows would mend it, as it does not where a leak is in a program
// or in its data.

// relapse is a storm that strikes again whoever runs a unit of a job.
type relapse struct {
	*Storm
	job   job.ID
	unit  int64
	times int
}

// relapsed bounds how many times a storm strikes.
const relapsed = 3

// under is the unit of its job that a run is in.
func (h *hosts) under(r *run) int64 {
	if r.slot == none {
		return 0
	}
	j := &h.sim.jobs[r.slot].Job
	return max(0, min(r.entered(j, h.sim.now), j.Units)-1)
}

// over keeps the storms of a run that has ended with the unit that they struck undone.
func (h *hosts) over(r *run, res *job.Result) {
	if h.HostMemory == nil || r.slot == none {
		return
	}
	j := &h.sim.jobs[r.slot].Job
	_, done := j.Span(r.rng.From, max(r.rng.From, res.Progress))
	for i := range r.gusts {
		if g := &r.gusts[i]; g.times > 0 && g.times < relapsed && g.of >= done {
			h.pending = append(h.pending, relapse{g.Storm, r.start.Job, g.of, g.times + 1})
		}
	}
}

// relapses says whether a run is of a job that is struck again.
func (h *hosts) relapses(r *run) bool {
	return slices.ContainsFunc(h.pending, func(x relapse) bool { return x.job == r.start.Job })
}

// strikeAgain strikes the runs that are where storms struck before.
func (h *hosts) strikeAgain(runs []*run) {
	for _, r := range runs {
		if r.since != 0 || !h.relapses(r) {
			continue
		}
		from, _ := h.sim.jobs[r.slot].Span(r.rng.From, r.rng.To)
		at := h.under(r)
		h.pending = slices.DeleteFunc(h.pending, func(x relapse) bool {
			if x.job != r.start.Job || x.unit < from || x.unit > at {
				return false
			}
			r.gusts = append(r.gusts, gust{Storm: x.Storm, share: 1, of: x.unit, times: x.times})
			return true
		})
	}
}

func (g *gust) size() quantity.Amount {
	size, _ := g.extra(g.blown)
	return size / quantity.Amount(g.share)
}
