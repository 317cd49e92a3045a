package sim

import (
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/workload"
)

// list is a source of jobs that are given.
type list []workload.Job

func (l *list) Next(j *workload.Job) (bool, error) {
	if len(*l) == 0 {
		return false, nil
	}
	*j, *l = (*l)[0], (*l)[1:]
	return true, nil
}

// heard writes down what an observer hears.
type heard struct {
	lines  []string
	pieces []measure.Piece
}

func (h *heard) say(format string, args ...any) {
	h.lines = append(h.lines, fmt.Sprintf(format, args...))
}

func (h *heard) Arrived(at quantity.Instant, s measure.Slot, _ *workload.Job) {
	h.say("%v arrived %d", at.Sub(0), s)
}
func (h *heard) Began(at quantity.Instant, s measure.Slot, class uint8, n int32) {
	h.say("%v began %d on %d of %d", at.Sub(0), s, n, class)
}
func (h *heard) Ended(at quantity.Instant, p *measure.Piece) {
	h.say("%v ended %d: %v, work %v useful %v overhead %v", at.Sub(0), p.Slot, p.Outcome, p.Work, p.Useful, p.Overhead)
	h.pieces = append(h.pieces, *p)
}
func (h *heard) Done(at quantity.Instant, s measure.Slot, state job.State) {
	h.say("%v done %d: %v", at.Sub(0), s, state)
}
func (h *heard) Sent(n int) { h.say("sent %d", n) }

// oneJob is a block of a minute of work whose memory is mean in its second half, and half of that before.
func oneJob(mean quantity.Amount) workload.Job {
	return workload.Job{
		Kind: job.Rigid, Slices: 1, Units: 60, Grid: 1, Parallelism: 1, Work: time.Minute, Declared: time.Minute, Submit: sec,
		Restore: 5 * time.Second, Checkpoint: 3 * time.Second, Startup: 7 * time.Second,
		Memory: workload.Memory{Phases: []trp.Phase{{UpTo: 30, Mean: mean / 2}, {UpTo: 60, Mean: mean}}},
	}
}
