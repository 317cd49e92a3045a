package atomizer

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// cut takes the longest piece from free.From, up to limit, that is safe on the window's capacity and, with restore,
// checkpoint and grace, ends within it: there must be an x' > x with r + T(x,x') + k <= D, Pr(peak > c) <= theta, and
// T(x,x') >= tau_min or x' finishing what is free. A cut does not leave a remainder below tau_min if a shorter one
// avoids it. k is 0 where the piece finishes the job (SJA with our definitions, adr 0005).
func cut(v *View, w Window, free job.Range, limit int64) (Piece, Refusal) {
	s := v.Spec
	restore, checkpoint := v.overhead()
	room := w.End.Sub(w.Start) - s.Launch.Grace
	unit := v.unit(w.Speed)
	safe, scale := v.Safe(), v.Scale()
	useful := v.useful(free, w.Speed)
	if v.Measures() {
		limit = min(limit, useful)
	}

	reach := safe.Reach(free.From, w.Capacity[trp.Memory], limit, scale)
	if reach <= free.From {
		return Piece{}, Refusal{Why: Unsafe, Least: safe.LeastOver(free.From, free.From+1, scale)}
	}
	if reach < limit && v.upTo(free, reach) < useful {
		return Piece{}, Refusal{Why: Unsafe, Least: safe.LeastOver(free.From, reach+1, scale)}
	}
	to := v.upTo(free, reach)
	last := v.lastCheckpoint(free.From, to)
	if need := restore + v.RunTime(to-free.From, w.Speed) + last; need > room {
		// Cut by time, on the grid; a checkpoint must then be left.
		last = checkpoint
		units := int64(max(0, room-restore-last) / unit)
		to = v.floor(free.From, free.From+units)
	}
	if to < useful {
		need := restore + v.RunTime(useful-free.From, w.Speed) + v.lastCheckpoint(free.From, useful)
		return Piece{}, Refusal{Why: TooShort, Need: need + s.Launch.Grace}
	}
	if v.Hopeful {
		// The least useful piece gets the whole window: how long it takes is anybody's guess.
		p := Piece{Range: job.Range{From: free.From, To: useful}, Run: room - restore - v.lastCheckpoint(free.From, useful), Wall: room}
		p.Length = p.Wall + s.Launch.Grace
		p.Demand[trp.Memory] = safe.LeastOver(free.From, useful, scale)
		return p, Refusal{}
	}
	if rest := free.To - to; rest > 0 && to < limit && v.RunTime(rest, w.Speed) < s.TauMin {
		keep := quantity.MulDiv(int64(s.TauMin), 1, int64(unit))
		if shorter := v.floor(free.From, free.To-keep); shorter > free.From && v.RunTime(shorter-free.From, w.Speed) >= s.TauMin {
			to, last = shorter, checkpoint
		}
	}
	run := v.RunTime(to-free.From, w.Speed)
	p := Piece{Range: job.Range{From: free.From, To: to}, Run: run, Wall: restore + run + last}
	p.Length = p.Wall + s.Launch.Grace
	p.Demand[trp.Memory] = safe.LeastOver(free.From, to, scale)
	return p, Refusal{}
}

// overhead is what a piece pays before its first unit, the start included, and for the checkpoint at its end. A first
// start restores nothing; a continuation pays neither.
func (v *View) overhead() (before, checkpoint time.Duration) {
	switch {
	case !v.Continues.Empty():
		return 0, 0
	case v.Resume.Zero():
		return v.startup(), v.stretched(v.Spec.Checkpoint)
	}
	return v.startup() + v.stretched(v.Spec.Restore), v.stretched(v.Spec.Checkpoint)
}

// floor rounds a cut point down to the grid; from itself if that leaves nothing. Inside a suspect range single units
// are cut whatever the grid, until the bad one is alone.
func (v *View) floor(from, to int64) int64 {
	if v.suspected(from) {
		return max(from, to)
	}
	return max(from, to/v.Spec.Grid*v.Spec.Grid)
}

// suspected reports whether a unit is in a suspect range.
func (v *View) suspected(unit int64) bool {
	for _, s := range v.Learned.Suspects {
		if s.Range.From <= unit && unit < s.Range.To {
			return true
		}
	}
	return false
}

// upTo is the last cut point of the free range that is not beyond to.
func (v *View) upTo(free job.Range, to int64) int64 {
	if to >= free.To {
		return free.To
	}
	return v.floor(free.From, to)
}

// lastCheckpoint is what the checkpoint at the end of [from, to) costs: nothing where that finishes the job.
func (v *View) lastCheckpoint(from, to int64) time.Duration {
	if to == v.Spec.Total && v.Committed.Len()+v.Claimed.Len()+to-from == v.Spec.Total {
		return 0
	}
	_, checkpoint := v.overhead()
	return checkpoint
}

// useful is the first cut point of the free range at which a piece is useful: tau_min long, or all of it; any where it measures.
func (v *View) useful(free job.Range, speed int64) int64 {
	units := int64(1)
	if !v.Measures() {
		units = max(1, quantity.MulDiv(int64(v.Spec.TauMin), 1, int64(v.unit(speed))))
	}
	if units >= free.Len() {
		return free.To
	}
	if v.suspected(free.From) {
		return free.From + units
	}
	return v.align(free.From, free.From+units, free.To)
}

// least is the first cut point after from: the next point of the grid or the end of the free range.
func (v *View) least(from, end int64) int64 {
	return min(end, (from/v.Spec.Grid+1)*v.Spec.Grid)
}

// LeastWindow is the shortest window the job could use where it runs at this speed, above 0, whatever its memory.
func LeastWindow(v *View, speed int64) time.Duration {
	if v.Spec.Kind == job.Rigid {
		return RigidLength(v.Spec, speed)
	}
	free := job.NextFree(0, v.Spec.Total, v.Committed, v.Claimed)
	restore, checkpoint := v.overhead()
	least := v.RunTime(v.least(free.From, free.To)-free.From, speed)
	return restore + max(least, min(v.Spec.TauMin, v.RunTime(free.Len(), speed))) + checkpoint + v.Spec.Launch.Grace
}

// MostWindow is the longest window that one piece of the job could use where it runs at this speed, above 0: all that is free next.
func MostWindow(v *View, speed int64) time.Duration {
	if v.Spec.Kind == job.Rigid {
		return RigidLength(v.Spec, speed)
	}
	free := job.NextFree(0, v.Spec.Total, v.Committed, v.Claimed)
	restore, checkpoint := v.overhead()
	return restore + v.RunTime(free.Len(), speed) + checkpoint + v.Spec.Launch.Grace
}

// LeastDemand is the memory at which the least useful piece of the job is safe where it runs at this speed, above 0.
func LeastDemand(v *View, speed int64) quantity.Amount {
	if v.Spec.Kind == job.Rigid {
		return v.Safe().LeastOver(0, v.Spec.Total, v.Scale())
	}
	free := job.NextFree(0, v.Spec.Total, v.Committed, v.Claimed)
	return v.Safe().LeastOver(free.From, v.useful(free, speed), v.Scale())
}

// align rounds a cut point up to the grid, at most end.
func (v *View) align(from, to, end int64) int64 {
	g := v.Spec.Grid
	up := (to + g - 1) / g * g
	if up <= from {
		up += g
	}
	return min(up, end)
}
