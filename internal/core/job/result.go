package job

import (
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Outcome is how a subjob's process ended.
type Outcome uint8

const (
	// Done: exit 0, complete up to the end of its range.
	Done Outcome = iota + 1
	// Yielded: exit 85, checkpointed and gave the rest back.
	Yielded
	// ExitFailed: another exit code, or a signal nobody of ours sent.
	ExitFailed
	// MemoryKilled: it passed its slice's memory and was stopped for it. Not a failure: the profile is raised.
	MemoryKilled
	// DeadlineKilled: it was still running at its deadline.
	DeadlineKilled
	// Stopped: cancelled, truncated or drained by us.
	Stopped
	// LimitKilled: it wrote more than its caps allow, or wanted more processes.
	LimitKilled
	// StartFailed: the process could not be started (missing command, no permission). Detail says why.
	StartFailed
	// Lost: its supervisor died under a daemon that lived, or its processes could not be ended. The program may have caused either, so it
	// counts as the job's failure. Progress in the progress file still counts.
	Lost
	// NodeFailed: its node could not run it, for want of disk, descriptors or memory, or a disk that works; or its machine, its GPU or
	// its daemon failed. Detail says what. It is not the job's failure: the job is tried again, with pauses; if it had begun
	// (Start), in a row at most as often as the zone's MaxKills says.
	NodeFailed
)

// Outcomes is how many there are, with the zero one.
const Outcomes = int(NodeFailed) + 1

var outcomeNames = [Outcomes]string{"", "done", "yielded", "failed", "memory", "deadline", "stopped", "limit", "start-failed", "lost",
	"node-failed"}

// String is the outcome's name on the wire and for people.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "unknown"
}

// Result is what the node observed of one subjob, from start to confirmed end.
type Result struct {
	Outcome Outcome
	// ExitCode of the command, or -1; Signal that ended it, or 0.
	ExitCode, Signal int
	// Progress is the unit up to which work is complete, within [from, to]; what counts.
	Progress int64
	// Checkpoint says that a whole checkpoint belonging to Progress was left.
	Checkpoint bool
	// Start and End of the process by the node's clock; Start is 0 if it never started.
	Start, End quantity.Instant
	// FirstProgress is when the first unit was reported complete, 0 if unknown: what came before it was restore.
	FirstProgress quantity.Instant
	// Peak is the largest use observed over the run, of the whole process tree.
	Peak trp.Vector
	// Detail is a short text for people: the last lines of stderr, or what could not be done.
	Detail string
	// Prepare is how much of the lease's time had passed when the process started; 0 if it never did. Unpack is the part of it in which the
	// job's work directory was unpacked, which happens once on a node.
	Prepare, Unpack time.Duration
	// Waited is how long of its run it could not go on since others had the processors, or its control group had used up its time
	// on them; at most Ran, and no more than what was seen. 0 where it never waited, and where nobody looks.
	Waited time.Duration
	// Idle is the time of its run that no unit has cost: its command went on after all were done, or its adapter rested. 0 where nobody
	// looks.
	Idle time.Duration
	// Startup is how long its program took from its start until it was ready for work; 0 where nobody says. Stayed: it went on in a program
	// that was there already, and paid no start.
	Startup time.Duration
	Stayed  bool
	// Tried is what it has found out of a sweep's trials; nil: nothing.
	Tried *Tried
	// Ended: the program of a chain whose length nobody knows is done with all of it. Progress is its length.
	Ended bool
	// LeftNothing: neither output nor checkpoint, and no word in its logs. The store has no name of it, and its machine's head looks
	// for none.
	LeftNothing bool
}

// Ran is how long the process ran; 0 if it never started.
func (r *Result) Ran() time.Duration {
	if r.Start == 0 {
		return 0
	}
	return r.End.Sub(r.Start)
}

// Own is how long it would have run for its units on a machine with a processor for it: what may be learned of the program.
func (r *Result) Own() time.Duration { return max(0, r.Ran()-r.wait()-max(0, r.Idle)) }

// Busy is the share of its run that it waited for a processor, in parts per thousand.
func (r *Result) Busy() int64 {
	if r.Ran() <= 0 {
		return 0
	}
	return quantity.MulDiv(int64(r.wait()), 1000, int64(r.Ran()))
}

func (r *Result) wait() time.Duration { return min(max(0, r.Waited), max(0, r.Ran())) }

// Noticed is the share, in parts per thousand, from which people are told that a machine was busy: less is normal.
const Noticed = 100

// Machine is the remark that the machine was busy, for the end of a sentence; empty where that does not matter.
func (r *Result) Machine() string { return MachineBusy(r.Busy()) }

// MachineBusy says the same of a share.
func MachineBusy(permille int64) string {
	if permille < Noticed {
		return ""
	}
	return fmt.Sprintf("the machine was busy %d%% of its time", permille/10)
}

// State is the phase of a job's life.
type State uint8

const (
	// Waiting for a window; Why says for what.
	Waiting State = iota
	// Running: at least one subjob holds a lease.
	Running
	// Paused by its owner.
	Paused
	// Finished, Failed, Cancelled, Expired and Never are final.
	Finished
	// Failed: the work itself failed.
	Failed
	// Cancelled by its owner.
	Cancelled
	// Expired: the deadline its owner gave has passed.
	Expired
	// Impossible (the verdict Never): it can never run on the configured slices.
	Impossible
)

var stateNames = [...]string{"PENDING", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED", "EXPIRED", "NEVER"}
var stateCodes = [...]string{"PD", "R", "S", "CD", "F", "CA", "DL", "NV"}

// String is the Slurm-like long name.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "UNKNOWN"
}

// Code is the Slurm-like short name.
func (s State) Code() string {
	if int(s) < len(stateCodes) {
		return stateCodes[s]
	}
	return "??"
}

// Final reports whether nothing can change the state any more.
func (s State) Final() bool { return s >= Finished }

// Verdict is a state with its reason: an outcome, not an error.
type Verdict struct {
	State  State
	Reason string
}
