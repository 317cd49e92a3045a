// Package measure turns what happened in a simulation into metrics. It is told the same few events whatever mechanism ran,
// so that every figure means the same for all of them. docs/metrics.md has the formulas.
package measure

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/workload"
)

// Class is a kind of slice and how many there are.
type Class struct {
	Name  string
	Count int
	// Weight of one in thousandths of a whole GPU; Memory of one.
	Weight int64
	Memory quantity.Amount
}

// Window is the time over which use is measured: [From, To); To of 0 is the end of the run. Waits and completions are
// those of jobs submitted in it, however long these take.
type Window struct{ From, To quantity.Instant }

// Slot numbers a live job densely; the driver uses a slot again after Done.
type Slot int32

// Piece is one run of a job, whole or cut. A run on slices of several classes is told as one piece for each class, all of
// them with the same times and the whole work.
type Piece struct {
	Slot Slot
	// Units of the job that it was to do; empty for a job as a whole.
	Units job.Range
	// Class of the slices it held, First the number of the first one in the cluster, Slices how many.
	Class  uint8
	First  int32
	Slices int32
	// Start and End of its hold on the slices, by virtual time.
	Start, End quantity.Instant
	// Work that it completed for good, at speed 1000; Useful is the part of its time that this took, Overhead what restore,
	// checkpoint, start and waiting for the deadline took. What is left of End - Start is lost.
	Work, Useful, Overhead time.Duration
	// Peak use of one slice, Demand that was planned with, Excess whether the peak passed the slice's capacity.
	Peak, Demand quantity.Amount
	// Startup is the part of Overhead in which its program started, or tried to. Stayed: it went on in one that was there.
	Startup time.Duration
	Stayed  bool
	Excess  bool
	Outcome job.Outcome
}

// Observer hears what happens, in order of time. Job values are only valid during the call.
type Observer interface {
	// Arrived: a job was submitted.
	Arrived(at quantity.Instant, s Slot, j *workload.Job)
	// Began: a run of the job began to hold n slices of a class.
	Began(at quantity.Instant, s Slot, class uint8, n int32)
	// Ended: a run is over, its slices are free and its worth is known. The driver may tell it later than p.End, since a
	// result travels; until then nothing else begins on these slices.
	Ended(at quantity.Instant, p *Piece)
	// Done: the job has its final state, and all its runs have Ended. The slot may be given to another job afterwards.
	Done(at quantity.Instant, s Slot, state job.State)
	// Sent: n messages between parties of the mechanism.
	Sent(n int)
}
