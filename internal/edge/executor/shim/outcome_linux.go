package shim

import (
	"fmt"
	"syscall"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/volume"
)

// Ending is what is known of how a subjob's command ended, before it is judged.
type Ending struct {
	// ExitCode, or -1; Signal that ended it, or 0.
	ExitCode, Signal int
	// Cause is what the supervisor ended it for, 0 if it did not: MemoryKilled, LimitKilled, or DeadlineKilled and Stopped
	// from SIGTERM on. LimitKilled too where it failed by itself, of a process that it was refused.
	Cause job.Outcome
	// Forced: it was SIGKILLed for Cause rather than only asked.
	Forced bool
	// To is the largest end the program was ever given, FirstTo the one in its environment.
	To, FirstTo int64
	// Said is the content of the progress file, if Spoke.
	Said  Progress
	Spoke bool
	// Unfit is why output and checkpoint can't be published, if that is known already; else "".
	Unfit string
	// DiskFull: the file system of the run directory, or a quota there, was full when it ended, or shortly before; Short is which. Fills
	// is how this subjob filled it, "" if it was not ended for that. Unlinked is how many bytes it had there then in open files without a
	// name.
	DiskFull bool
	Short    volume.State
	Fills    string
	Unlinked int64
	// Whole: the checkpoint directory holds at least one plain file and was synced.
	Whole bool
}

// well says whether the program ended by itself and successfully: it is done, or has yielded.
func (e *Ending) well() bool {
	return !e.Forced && e.Signal == 0 && (e.ExitCode == 0 || e.ExitCode == YieldCode)
}

// YieldCode is the exit code of a program that left a checkpoint and gives the rest back.
const YieldCode = 85

// Judge turns an ending into outcome, progress and checkpoint of a result, with a line for people where the program did
// not keep the contract (docs/adr/0004-supervisor.md). The range starts at l.Range.From.
func Judge(l *Lease, e Ending) (r job.Result) {
	r.ExitCode, r.Signal = e.ExitCode, e.Signal
	r.Progress, r.Checkpoint = counted(l, e)
	if l.Adapter.Given() && e.Spoke {
		r.Idle = max(0, e.Said.Idle)
		if r.Tried = e.Said.Tried; r.Tried != nil {
			r.Tried.Scores, r.Tried.Hopeless = r.Tried.Scores[:min(len(r.Tried.Scores), MostScores)], max(0, r.Tried.Hopeless)
		}
	}
	switch {
	case e.Forced:
		r.Outcome, r.ExitCode = e.Cause, -1
	case e.Signal == 0 && e.ExitCode == YieldCode && !whole(l):
		r.Outcome = job.Yielded
	case e.Signal == 0 && e.ExitCode == 0:
		finished(l, e, &r)
	case e.Cause != 0:
		r.Outcome = e.Cause
	default:
		r.Outcome = job.ExitFailed
	}
	if r.Outcome != job.Done && r.Detail == "" {
		r.Detail = unheeded(l, e)
	}
	if r.Outcome == job.ExitFailed && r.Detail == "" {
		r.Detail = ended(e)
	}
	return r
}

// ended is how a program ended that failed by itself.
func ended(e Ending) string {
	if e.Signal != 0 {
		said := fmt.Sprintf("signal %d (%v)", e.Signal, syscall.Signal(e.Signal))
		if syscall.Signal(e.Signal) == syscall.SIGKILL {
			said += ", which Sluice did not send: the program itself did, a person, or the kernel for want of memory on the machine"
		}
		return said
	}
	return fmt.Sprintf("exit status %d", e.ExitCode)
}

// resumes reports whether what follows a subjob goes on from its checkpoint, whole whether it is all or nothing: nothing counts of it that
// is not done.
func resumes(l *Lease) bool { return l.Kind == job.Steps || l.Saves }

// whole see resumes.
func whole(l *Lease) bool { return l.Kind == job.Rigid && !l.Saves }

// unheeded is why the program's progress does not count, where it broke the contract; empty where it did not.
func unheeded(l *Lease, e Ending) string {
	p := e.Said.Progress
	switch {
	case !e.Spoke || whole(l) || p == l.Range.From:
		return ""
	case p < l.Range.From || p > e.To:
		return fmt.Sprintf("the progress file says %d, outside its part from %d to %d: it does not count", p, l.Range.From, e.To)
	case !resumes(l) || p == l.Total:
		return ""
	case e.Said.Checkpoint && !e.Whole:
		return fmt.Sprintf("the progress file says %d with a checkpoint, and SLUICE_CHECKPOINT_DIR has no file in it: it does not count", p)
	case e.Said.Checkpoint && l.Grid > 1 && p%l.Grid != 0:
		return fmt.Sprintf("the progress file says %d, no multiple of every: %d: a step between cut points does not count", p, l.Grid)
	case !e.Said.Checkpoint && e.Signal == 0 && e.ExitCode == YieldCode:
		return fmt.Sprintf("exit 85 with a progress file that says %d and not \"checkpoint\": true: it does not count", p)
	}
	return "" // between checkpoints, as any step is
}

// finished judges exit 0. It is a claim that everything up to SLUICE_TO is complete; a program that reread its lease
// file may have gone further, and one that exits because it was asked to must say how far it came.
func finished(l *Lease, e Ending, r *job.Result) {
	if e.Cause != 0 && (!e.Spoke || e.Said.Progress < e.FirstTo) {
		r.Outcome = e.Cause
		r.Detail = "exit 0 after SIGTERM without a progress file that says all is done: it does not count as done; exit 85 to yield"
		return
	}
	if l.Kind == job.Steps && e.FirstTo < l.Total && !e.Whole {
		r.Outcome = job.ExitFailed
		r.Detail = "exit 0 with an empty SLUICE_CHECKPOINT_DIR: a steps job must leave a checkpoint unless it has reached its total"
		return
	}
	r.Outcome = job.Done
	if r.Ended = l.Total == job.OpenTotal && l.Adapter.Given() && e.Spoke && e.Said.Ended && r.Progress > l.Range.From; r.Ended {
		return
	}
	if r.Progress < e.FirstTo {
		r.Progress, r.Checkpoint = e.FirstTo, e.Whole
	}
}

// counted is how much of the program's progress counts: within its range, at a cut point, and where the job goes on from checkpoints only
// with its own. Items complete beyond the last cut point are worked again; the work of a step between cut points can't be told apart from
// its checkpoint and does not count.
func counted(l *Lease, e Ending) (progress int64, checkpoint bool) {
	from, p := l.Range.From, e.Said.Progress
	if !e.Spoke || whole(l) || p <= from || p > e.To {
		return from, false
	}
	saved := e.Said.Checkpoint && e.Whole
	if resumes(l) && !saved && p < l.Total {
		return from, false
	}
	if l.Grid > 1 && p%l.Grid != 0 && p != l.Total {
		if resumes(l) {
			return from, false
		}
		p, saved = max(from, p-p%l.Grid), false
	}
	return p, saved
}
