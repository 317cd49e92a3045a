package atomizer

import (
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// View is what a job knows of itself at the moment it is asked.
type View struct {
	Spec *job.Spec
	// Committed and Claimed units are not for sale any more.
	Committed, Claimed job.Ranges
	// Running is how many claims stand.
	Running int
	Learned *protocol.Learned
	// Resume is the checkpoint the next piece starts from; zero for a first start, which costs no restore.
	Resume job.Token
	// Skipped is how many of the committed units were bad.
	Skipped int64
	// Continues is the range of the running piece that this one would follow without a stop; empty otherwise. Neither
	// restore nor checkpoint is paid then.
	Continues job.Range
	// Hopeful plans with the fastest run time ever observed, the declared one if there is none yet, and no margin: the last
	// resort of a job whose usual run time no longer fits the longest window, since one slow run must not keep it out for
	// ever. The piece is then the least useful one, and it gets the whole window.
	Hopeful bool
	// Option to run with, one of the job's own; nil for none.
	Option *job.Option

	// Items below this unit are not looked at: they were proposed before, in the same window.
	from int64
	// forSale is how many units are left where Committed does not tell (FromCall); 0: it does.
	forSale int64
}

// Window is an offered gap as an atomizer sees it.
type Window struct {
	// ID is its number in the round, for variants.
	ID       uint64
	Capacity trp.Vector
	// Speed of the job on the slice (job.Spec.SpeedOn) in parts per thousand; 0 where it can not run.
	Speed      int64
	Start, End quantity.Instant
	// Open: nothing is known to come at its end, which is only as far as windows are sold.
	Open bool
}

// Piece is a proposed subjob.
type Piece struct {
	Range job.Range
	// Run is the time of the work itself, Wall adds start, restore and checkpoint, Length the grace: what a lease must hold.
	Run, Wall, Length time.Duration
	// Demand is the least capacity at which the piece is safe.
	Demand trp.Vector
}

// Why a job is not interested in a window.
type Why uint8

const (
	// Interested: it is.
	Interested Why = iota
	// NoFreeWork: everything left is claimed or committed.
	NoFreeWork
	// AtParallelism: as many subjobs run as the job allows.
	AtParallelism
	// Unsafe: the next piece would pass the slice's memory with a chance above theta.
	Unsafe
	// TooShort: the window does not hold the least useful piece.
	TooShort
	// NotForever: a rigid job without a walltime needs a gap without a known end.
	NotForever
	// Barred: its owner says that it can not run on slices of this kind.
	Barred
)

// Refusal is why, with what would have been needed.
type Refusal struct {
	Why Why
	// Least memory of the next unit, when Unsafe.
	Least quantity.Amount
	// Need is the shortest useful window, when TooShort.
	Need time.Duration
}

// firstMargin is the stated margin on a declared run time, in parts per thousand, until something was observed.
const firstMargin = 1250

// unit is the planned time of one unit on a slice of this speed: the learned quantile or the declared time, times the
// margin. It is at least a nanosecond.
func (v *View) unit(speed int64) time.Duration {
	rate, margin := v.Spec.PerUnit, int64(firstMargin)
	if v.Learned.Rate > 0 {
		rate, margin = v.Learned.Rate, 1000
	}
	if v.Learned.Margin > 0 {
		margin = v.Learned.Margin
	}
	if v.Hopeful {
		rate, margin = v.Spec.PerUnit, 1000
		if len(v.Learned.Rates) > 0 {
			rate = slices.Min(v.Learned.Rates)
		}
	}
	return max(1, time.Duration(quantity.MulDiv(int64(v.stretched(rate)), margin, speed)))
}

// stretched is a run time with what the program waits meanwhile for a processor, as its last subjobs did.
func (v *View) stretched(run time.Duration) time.Duration {
	if v.Hopeful || v.Learned.Busy <= 0 {
		return run
	}
	return time.Duration(quantity.MulDiv(int64(run), 1000, 1000-min(v.Learned.Busy, 999)))
}

// mostTime bounds run times, so that sums of a few stay within 63 bits: 146 years.
const mostTime = time.Duration(math.MaxInt64 / 2)

// RunTime is the planned time of n units at this speed, at most 146 years. The speed is above 0.
func (v *View) RunTime(n, speed int64) time.Duration {
	return min(mostTime, time.Duration(quantity.MulDiv(int64(v.unit(speed)), n, 1)))
}
