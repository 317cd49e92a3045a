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
	// Hopeful plans with the fastest run time ever observed, the declared one if there is none yet (none at all where none is
	// declared), and no margin: the last resort of a job whose usual run time no longer fits the longest window, since one slow
	// run must not keep it out for ever. The piece is then the least useful one, and it gets the whole window.
	Hopeful bool
	// Start is what the piece's start will take, where that is known of the slice; nil: what is known of the job counts.
	Start *Start
	// Option to run with, one of the job's own; nil for none.
	Option *job.Option

	// Items below this unit are not looked at: they were proposed before, in the same window.
	from int64
	// forSale is how many units are left where Committed does not tell (FromCall); 0: it does.
	forSale int64
}

// Start is what the start of a piece takes: at its node until its program begins, or goes on, and of that until it is ready for work.
// Resident: it goes on in a program that is there.
type Start struct {
	Prepare, Process time.Duration
	Resident         bool
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
	// Resident: it was cut to go on in a program that is there.
	Resident bool
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
	if v.Measures() && !v.Hopeful {
		return v.stretched(Trial(v.Spec, v.Learned, speed))
	}
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
		} else if v.Spec.Untimed() {
			rate = v.Learned.Rate
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

// firstTrial is how long a piece that measures may run at first, at speed 1; each that was too short is followed by one longerTrial times
// as long.
const firstTrial, longerTrial = time.Minute, 4

// Trial is how long a piece that measures may run at a speed above 0, its start and checkpoint apart: time to be used if it must, and given
// back if not. It is a guess, no less than what makes a run useful.
func Trial(spec *job.Spec, l *protocol.Learned, speed int64) time.Duration {
	most := max(firstTrial, spec.TauMin)
	for range min(l.Trials, 32) {
		most = min(mostTime, most*longerTrial)
	}
	return min(mostTime, time.Duration(quantity.MulDiv(int64(most), 1000, speed)))
}

// Measures reports whether the next piece is the one that tells how long a unit takes. It is the shortest there is, and runs alone.
func (v *View) Measures() bool { return v.Learned.Measures(v.Spec) }

// Parallelism is how many subjobs may run at once.
func (v *View) Parallelism() int {
	if v.Measures() {
		return 1
	}
	return v.Spec.Parallelism
}

// RunTime is the planned time of n units at this speed, at most 146 years. The speed is above 0.
func (v *View) RunTime(n, speed int64) time.Duration {
	if v.Measures() {
		n = min(n, 1) // a trial is of one length, however many units lie between two cut points
	}
	return min(mostTime, time.Duration(quantity.MulDiv(int64(v.unit(speed)), n, 1)))
}

// speed of the job under its option, in parts per thousand, where it has this one without; 0 stays 0.
func (v *View) speed(plain int64) int64 {
	if v.Option == nil {
		return plain
	}
	return quantity.MulDiv(plain, v.Option.Speed, 1000)
}

// Safe is the profile that plans use: what was learned where there is such a thing, else as submitted.
func (v *View) Safe() *trp.Table {
	if v.Learned.Safe != nil {
		return v.Learned.Safe
	}
	return &v.Spec.Safe
}

// Scale of the profile in parts per thousand: what memory kills have taught, times what the option takes.
func (v *View) Scale() int64 {
	scale := v.Learned.MemoryScale
	if v.Option == nil {
		return scale
	}
	if scale <= 0 {
		scale = trp.Unscaled
	}
	return quantity.MulDiv(scale, v.Option.Memory, 1000)
}

// Peak is the probable peak of a piece that is sold with a demand.
func (v *View) Peak(r job.Range, demand trp.Vector) trp.Peak {
	p := trp.Widened(v.Spec.Profile, v.Learned.Spread)
	return trp.PeakOver(&p, r.From, r.To, v.Scale(), v.Spec.Theta, demand[trp.Memory])
}

// Left is how many units are neither committed nor claimed.
func (v *View) Left() int64 {
	if v.forSale > 0 {
		return v.forSale
	}
	return v.Spec.Total - v.Committed.Len() - v.Claimed.Len()
}

// Ahead is how many units are not committed, for whoever estimates when the job will be done. Of a chain whose length nobody knows it is as
// much as is done already, and an hour's worth at least: the longer it has run the longer it is likely to.
func (v *View) Ahead() int64 {
	done := v.Committed.Len()
	if !v.Spec.Open() {
		return v.Spec.Total - done
	}
	if v.Measures() {
		return max(1, done)
	}
	return max(done, int64(openHour/v.unit(1000)), 1)
}

// openHour is how much a chain whose length nobody knows is taken to have before it at least.
const openHour = time.Hour

// Until a start of the job was seen, its first ones are planned with what unpacking its work directory may take: so much
// for each file and each MiB. That is two to five times what a quiet machine with a disk needs.
const (
	unpackFile = time.Millisecond
	unpackMiB  = 20 * time.Millisecond
)

// Prepare is what a start is planned to take at its node before the process begins: what earlier ones of the job took, or,
// where none is known yet, what unpacking its work directory may take. It is 0 where nothing is known and nothing is unpacked.
func (v *View) Prepare() time.Duration {
	l := v.Learned
	switch {
	case v.Spec.Kind == job.Rigid: // its place is planned by its spec alone (RigidLength)
		return Unpacking(&v.Spec.Launch)
	case v.Hopeful && len(l.Prepares) > 0:
		return slices.Min(l.Prepares)
	case v.Hopeful: // unpacking is done once: however long that takes, it must not keep the job out for ever
		return 0
	case l.Prepare > 0:
		return l.Prepare
	}
	return Unpacking(&v.Spec.Launch)
}

// Unpacking is how long unpacking a work directory may take, by its size.
func Unpacking(l *job.Launch) time.Duration {
	const mib = 1 << 20
	return time.Duration(l.Files)*unpackFile + time.Duration((l.Bytes+mib-1)/mib)*unpackMiB
}

// RigidLength is what a lease of a rigid job with a walltime must hold at this speed, above 0: unpacking does not count against the
// walltime. The planner of its place and the cut of its piece must agree to the nanosecond.
func RigidLength(spec *job.Spec, speed int64) time.Duration {
	return Unpacking(&spec.Launch) + spec.WalltimeAt(speed) + spec.Launch.Grace
}

// startup is what every start pays before its first unit: at its node, in its own process, and as a margin for a slow machine.
func (v *View) startup() time.Duration {
	if s := v.Start; s != nil {
		return s.Prepare + v.stretched(s.Process) + v.startMargin()
	}
	return v.Prepare() + v.stretched(v.process()) + v.startMargin()
}

// process is how long a process takes to its first unit: as declared or, of a job that declares no time at all, no longer than its shortest
// run.
func (v *View) process() time.Duration {
	if s := v.Spec; s.Startup > 0 || !s.Untimed() || v.Hopeful {
		return s.Startup
	}
	return v.Learned.Start
}

// startMargin is what a start gets on top after pieces in a row that completed nothing: 1 s, 4 s, 16 s. The margin multiplies run
// times; where a busy machine takes longer to begin a process than short units run, no factor would make up for that.
func (v *View) startMargin() time.Duration {
	fruitless := v.Learned.Failures
	if v.Learned.Busy > 0 { // those that wanted for a processor count with those that were ended from outside
		fruitless += v.Learned.Kills
	}
	if v.Hopeful || fruitless <= 0 {
		return 0
	}
	return time.Second << (2 * min(fruitless-1, 2))
}

// FromCall is what the agent of an external job knows of its job and of one window from the call alone, so that it can
// answer with Propose as a built-in job would. What is not for sale counts as committed. It knows nothing of what was
// learned (an agent that has a model of its own sets Learned), and takes it that one more subjob may run and no second.
func FromCall(spec *job.Spec, c *protocol.Call, a *protocol.Advert) (View, Window) {
	v := View{Spec: spec, Running: spec.Parallelism - 1, Learned: &protocol.Learned{MemoryScale: c.Memory}, forSale: c.Left}
	done := int64(0)
	for _, free := range c.Free {
		v.Committed = v.Committed.Add(job.Range{From: done, To: free.From})
		done = free.To
	}
	v.Committed = v.Committed.Add(job.Range{From: done, To: spec.Total})
	if !c.First && spec.Kind == job.Steps { // items restore nothing
		v.Resume = job.Token{Epoch: 1, Seq: 1}
	}
	return v, Window{ID: a.Window, Capacity: a.Capacity, Speed: a.Speed, Start: a.Start, End: a.End, Open: a.Open}
}
