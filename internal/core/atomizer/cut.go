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
// avoids it. k is 0 where the piece finishes the job (SJA; SYSTEMS 1.2, our definitions).
func cut(v *View, w Window, free job.Range, limit int64) (Piece, Refusal) {
	s := v.Spec
	restore, checkpoint := v.overhead()
	room := w.End.Sub(w.Start) - s.Launch.Grace
	unit := v.unit(w.Speed)

	safe := s.Safe.Reach(free.From, w.Capacity[trp.Memory], limit, v.Learned.MemoryScale)
	if safe <= free.From {
		return Piece{}, Refusal{Why: Unsafe, Least: s.Safe.LeastOver(free.From, free.From+1, v.Learned.MemoryScale)}
	}
	finishes := func(to int64) bool { return to == s.Total && v.Committed.Len()+v.Claimed.Len()+to-free.From == s.Total }

	to := safe
	last := checkpoint // what a checkpoint at the end costs
	if finishes(to) {
		last = 0
	}
	if need := restore + v.RunTime(to-free.From, w.Speed) + last; need > room {
		// Cut by time, on the grid; a checkpoint must then be left.
		last = checkpoint
		units := int64(max(0, room-restore-last) / unit)
		to = v.floor(free.From, free.From+units)
	} else if to < free.To {
		to = v.floor(free.From, to)
	}
	least := v.least(free.From, free.To)
	if to <= free.From {
		return Piece{}, Refusal{Why: TooShort, Need: restore + max(v.RunTime(least-free.From, w.Speed), s.TauMin) + checkpoint + s.Launch.Grace}
	}
	if rest := free.To - to; rest > 0 && to < limit && v.RunTime(rest, w.Speed) < s.TauMin {
		keep := quantity.MulDiv(int64(s.TauMin), 1, int64(unit))
		if shorter := v.floor(free.From, free.To-keep); shorter > free.From && v.RunTime(shorter-free.From, w.Speed) >= s.TauMin {
			to, last = shorter, checkpoint
		}
	}
	run := v.RunTime(to-free.From, w.Speed)
	if run < s.TauMin && to != free.To {
		if to == safe && safe < limit {
			return Piece{}, Refusal{Why: Unsafe, Least: s.Safe.LeastOver(free.From, safe+1, v.Learned.MemoryScale)}
		}
		return Piece{}, Refusal{Why: TooShort, Need: restore + s.TauMin + checkpoint + s.Launch.Grace}
	}
	p := Piece{Range: job.Range{From: free.From, To: to}, Run: run, Wall: restore + run + last}
	p.Length = p.Wall + s.Launch.Grace
	p.Demand[trp.Memory] = s.Safe.LeastOver(free.From, to, v.Learned.MemoryScale)
	return p, Refusal{}
}

// overhead is what a piece pays before its first unit, start-up included, and for the checkpoint at its end. A first
// start restores nothing; a continuation pays neither.
func (v *View) overhead() (before, checkpoint time.Duration) {
	switch {
	case !v.Continues.Empty():
		return 0, 0
	case v.Resume.Zero():
		return v.Spec.Startup, v.Spec.Checkpoint
	}
	return v.Spec.Startup + v.Spec.Restore, v.Spec.Checkpoint
}

// floor rounds a cut point down to the grid; from itself if that leaves nothing. Inside a suspect range single units
// are cut whatever the grid, until the bad one is alone.
func (v *View) floor(from, to int64) int64 {
	for _, s := range v.Learned.Suspects {
		if s.Range.From <= from && from < s.Range.To {
			return max(from, to)
		}
	}
	return max(from, to/v.Spec.Grid*v.Spec.Grid)
}

// least is the first cut point after from: the next point of the grid or the end of what is free.
func (v *View) least(from, end int64) int64 {
	return min(end, (from/v.Spec.Grid+1)*v.Spec.Grid)
}

// LeastWindow is the shortest window the job could use on a slice of this speed, whatever its memory.
func LeastWindow(v *View, speed int64) time.Duration {
	if v.Spec.Kind == job.Rigid {
		return v.Spec.Walltime + v.Spec.Launch.Grace
	}
	free := job.NextFree(0, v.Spec.Total, v.Committed, v.Claimed)
	restore, checkpoint := v.overhead()
	least := v.RunTime(v.least(free.From, free.To)-free.From, speed)
	return restore + max(least, min(v.Spec.TauMin, v.RunTime(free.Len(), speed))) + checkpoint + v.Spec.Launch.Grace
}
