package sim

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/sim/resident"
)

// run is one subjob until it is settled.
type run struct {
	course
	party     int
	at        int // among the runs of its party
	places    []place
	version   int32 // grows when the course changes: an older event is void
	memory    footprint
	result    *job.Result
	killed    *job.Result // it was killed and is not gone yet
	abandoned bool        // its machine is gone for good
	news      notice
	// program that it runs in; nil: one of its own, which ends with it. closing: it was told to end, or nobody is there to give it more.
	program *resident.Program
	closing bool
}

// place is where a slice is.
type place struct {
	slice  *protocol.Slice
	class  uint8
	number int32 // within the cluster
}

// footprint is what a run has of its host's memory.
type footprint struct {
	// gusts are the storms that struck it.
	gusts []gust
	// since when it is suspended, 0: it is not.
	since quantity.Instant
	swapped
	was, grows quantity.Amount // at the last look
	asked      bool            // to yield, for memory
}

// swapped is what of a run lies in swap.
type swapped struct {
	// parked lies in swap, held is not given to it yet.
	parked, held quantity.Amount
	// wait is the share of the last beat for which it stalled for want of memory, in parts per thousand.
	wait int64
}

// waits is the part of a beat for which a run stalled for want of memory.
func (s *swapped) waits(beat time.Duration) time.Duration {
	return time.Duration(quantity.MulDiv(int64(beat), s.wait, 1000))
}

// thaw resumes a run: its events come later by as long as it was suspended. It takes its memory in swap again as it runs.
func (r *run) thaw(now quantity.Instant) {
	if r.memory.since == 0 {
		return
	}
	r.later(r.memory.since, now.Sub(r.memory.since))
	r.memory.since = 0
}

// notice is how much of a run of a job of the source was reported to the observer. A run's worth is known only when its home has committed
// or released its claim, and the next run may be on its slices by then. That one is reported when they are free for the observer too, which
// never sees two runs on one slice. The job's last report waits for its last run.
type notice struct {
	slot    int32  // of the job, none if the source has no such job or no report is left to send
	attempt int64  // which of the job's runs it is
	number  uint64 // of all runs, as they began
	begun   bool   // the observer has heard of its begin

	left      quantity.Instant // when the run had left its slices
	known     bool             // what of it counts is known
	committed job.Range
}

// hold is what a run has of one class.
type hold struct {
	class uint8
	first int32
	n     int32
}

// holds are the classes of a run's slices, each with how many there are.
func (r *run) holds() (list []hold) {
next:
	for _, p := range r.places {
		for i := range list {
			if list[i].class == p.class {
				list[i].n++
				continue next
			}
		}
		list = append(list, hold{class: p.class, first: p.number, n: 1})
	}
	return list
}

// capacity is the memory of the smallest of a run's slices.
func (r *run) capacity() quantity.Amount {
	least := r.places[0].slice.Capacity[trp.Memory]
	for _, p := range r.places {
		least = min(least, p.slice.Capacity[trp.Memory])
	}
	return least
}

// beginning is that it began at this instant.
func (r *run) beginning(at quantity.Instant) *protocol.Beginning {
	w := r.work()
	return &protocol.Beginning{Slice: w.Slice, Range: w.Range, At: at}
}

// conclusion is that it ended so.
func (r *run) conclusion(res *job.Result) *protocol.Conclusion {
	w := r.work()
	return &protocol.Conclusion{Slice: w.Slice, Range: w.Range, Result: res}
}
