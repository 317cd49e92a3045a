package node

import (
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
)

// phase is what a lease is doing, from LeaseMade to LeaseGone. It changes by a turn alone, and turns has every one that is legal.
type phase uint8

const (
	// leaseSold: it is to begin, or its place is still in use.
	leaseSold phase = iota
	// leaseStarting: Start was sent, and whether it runs is not known. So is after a boot whatever was not seen to run before.
	leaseStarting
	// leaseUnwanted: as starting, and to be stopped as soon as it is seen to run.
	leaseUnwanted
	// leaseRunning: its process was seen.
	leaseRunning
	// leaseSuspending: it runs, and Suspend is sent until it stands still, or can't.
	leaseSuspending
	// leaseSuspended: it stands still. Its lease goes on.
	leaseSuspended
	// leaseResuming: it stands still, and Resume is sent until it goes on.
	leaseResuming
	// leaseStopping: it runs or stands still, and Stop is sent until it is gone.
	leaseStopping
	// leaseStuck: processes of it remain that can't be ended, and its slices are quarantined.
	leaseStuck
	// leaseStoring: its process tree is confirmed gone, what it has left is being stored, and its time is free. How it ended is not known yet.
	leaseStoring
	// leaseEnded: its process tree is confirmed gone, and Result is sent until the home has it.
	leaseEnded
	// leaseSettled: the home has the result, and Settle is sent until the directories are where they belong.
	leaseSettled
	// leaseGone: nothing of it is left, and nothing names it but what is about to forget it.
	leaseGone

	phases = iota
)

// turn is what changes a phase: a fact, or, marked soft, a word that a restart forgets.
type turn uint8

const (
	issued   turn = iota // soft: its time has come; or a boot, which knows of no Start that was sent
	halted               // soft: its home wants it gone, or its node does
	suspends             // soft: it is to stand still
	stands               // soft: it does
	thaws                // soft: it is to go on; or a boot has found it standing still
	moves                // soft: it does
	began                // SubjobStarted
	strands              // Quarantined, with its token
	vacates              // SubjobVacated
	over                 // SubjobEnded
	settles              // ResultSettled
	leaves               // LeaseGone

	turnCount = iota
)

// soft turns are words that a restart forgets.
func (t turn) soft() bool { return t < began }

// none marks a turn that is illegal in a phase.
const none = phase(phases)

// turns is the table. A fold of facts has seen no soft turn: to a fact a phase is as good as the one that a restart would find in its place.
var turns = [phases][turnCount]phase{ //nolint:gochecknoglobals // a table, written to by nobody
	//                issued         halted         suspends         stands          thaws          moves         began          strands     vacates       over        settles       leaves
	leaseSold:       {leaseStarting, none, none, none, none, none, leaseRunning, leaseStuck, none, leaseEnded, none, none},
	leaseStarting:   {none, leaseUnwanted, none, none, none, none, leaseRunning, leaseStuck, none, leaseEnded, none, none},
	leaseUnwanted:   {none, leaseUnwanted, none, none, none, none, leaseStopping, leaseStuck, none, leaseEnded, none, none},
	leaseRunning:    {none, leaseStopping, leaseSuspending, none, leaseResuming, none, none, leaseStuck, leaseStoring, leaseEnded, none, none},
	leaseSuspending: {none, leaseStopping, none, leaseSuspended, leaseResuming, leaseRunning, none, leaseStuck, leaseStoring, leaseEnded, none, none},
	leaseSuspended:  {none, leaseStopping, none, none, leaseResuming, none, none, leaseStuck, leaseStoring, leaseEnded, none, none},
	leaseResuming:   {none, leaseStopping, leaseSuspending, none, none, leaseRunning, none, leaseStuck, leaseStoring, leaseEnded, none, none},
	leaseStopping:   {none, leaseStopping, none, none, none, none, none, leaseStuck, leaseStoring, leaseEnded, none, none},
	leaseStuck:      {none, leaseStuck, none, none, none, none, leaseStuck, leaseStuck, leaseStoring, leaseEnded, none, none},
	leaseStoring:    {none, leaseStoring, none, none, none, none, none, none, none, leaseEnded, none, none},
	leaseEnded:      {none, none, none, none, none, none, none, none, none, none, leaseSettled, none},
	leaseSettled:    {none, none, none, none, none, none, none, none, none, none, none, leaseGone},
	leaseGone:       {none, none, none, none, none, none, none, none, none, none, none, none},
}

var (
	phaseNames = [phases]string{ //nolint:gochecknoglobals // as turns
		"sold", "starting", "unwanted", "running", "suspending", "suspended", "resuming", "stopping", "stuck", "storing", "ended", "settled", "gone",
	}
	turnNames = [turnCount]string{ //nolint:gochecknoglobals // as turns
		"issued", "halted", "suspends", "stands", "thaws", "moves", "began", "strands", "vacates", "over", "settles", "leaves",
	}
)

func (p phase) String() string { return phaseNames[p] }

// turn changes what a lease is doing. An illegal turn is a bug, or facts that are not this node's.
func (n *Node) turn(l *lease, t turn) {
	next := turns[l.phase][t]
	if next == none {
		invariant.Check(false, "node: fact %d: lease %v is %v, and can't be turned (%s)", n.applying, l.token, l.phase, turnNames[t])
		return
	}
	n.memory.turned(l.phase, next)
	l.phase = next
}

// issued: the executor may know of it, and it has not ended.
func (l *lease) issued() bool { return l.phase > leaseSold && l.phase < leaseEnded }

// runs: its process was seen, and nobody has asked it to end.
func (l *lease) runs() bool { return l.phase >= leaseRunning && l.phase <= leaseResuming }

// seen: its process was seen at some time.
func (l *lease) seen() bool { return l.at != 0 }

// vacated: its process tree is confirmed gone and its time is free, whether or not it is known how it ended.
func (l *lease) vacated() bool { return l.phase >= leaseStoring }

// stuck: processes of it remain that can't be ended.
func (l *lease) stuck() bool { return l.phase == leaseStuck }

// unwanted: its home wants it gone, or its node does.
func (l *lease) unwanted() bool { return l.why != "" }

// ended: its process tree is confirmed gone, or nothing was ever started.
func (l *lease) ended() bool { return l.phase >= leaseEnded }

// settled: its home has the result.
func (l *lease) settled() bool { return l.phase >= leaseSettled }

// ending is how a lease ended, and what became of it.
type ending struct {
	result *job.Result // nil before the end
	// bare: it ended without anything having been given to the executor.
	bare bool
	// settling is what the home committed of it.
	settling job.Range
}
