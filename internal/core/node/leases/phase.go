package leases

// Phase is what a lease is doing, from LeaseMade to LeaseGone. It changes by an event alone, and transitions has every change that is
// legal.
type Phase uint8

const (
	// Sold: it is to begin, or its place is still in use.
	Sold Phase = iota
	// Starting: Start was sent, and whether it runs is not known. So is after a boot whatever was not seen to run before.
	Starting
	// Unwanted: as Starting, and to be stopped as soon as it is seen to run.
	Unwanted
	// Running: its process was seen.
	Running
	// Suspending: it runs, and Suspend is sent until it is frozen, or can't be.
	Suspending
	// Suspended: it is frozen. Its lease goes on.
	Suspended
	// Resuming: it is frozen, and Resume is sent until it goes on.
	Resuming
	// Stopping: it runs or is suspended, and Stop is sent until it is gone.
	Stopping
	// Stuck: processes of it remain that can't be ended, and its slices are quarantined.
	Stuck
	// Storing: its process tree is confirmed gone, what it has left is being stored, and its time is free. How it ended is not known yet.
	Storing
	// Ended: its process tree is confirmed gone, and Result is sent until the home has it.
	Ended
	// Settled: the home has the result, and Settle is sent until the directories are where they belong.
	Settled
	// Gone: nothing of it is left, and only its removal is pending.
	Gone

	phases = iota
)

// event is what changes a phase: a fact, or, marked soft, a message that a restart forgets.
type event uint8

const (
	onIssue     event = iota // soft: its time has come; or a boot, which knows of no Start that was sent
	onHalt                   // soft: its home wants it gone, or its node does
	onSuspend                // soft: it is to be suspended
	onSuspended              // soft: it is
	onResume                 // soft: it is to go on; or a boot has found it suspended
	onMoving                 // soft: it does
	onStarted                // SubjobStarted
	onStuck                  // Quarantined, with its token
	onVacated                // SubjobVacated
	onEnded                  // SubjobEnded
	onSettled                // ResultSettled
	onGone                   // LeaseGone

	events = iota
)

// never marks an event that is illegal in a phase.
const never = Phase(phases)

// transitions is the table. A fold of facts has seen no soft event: to a fact a phase is as good as the one that a restart would find in
// its place.
var transitions = [phases][events]Phase{ //nolint:gochecknoglobals // a table, written to by nobody
	//          issue     halt      suspend     still      resume    moving   started   stuck  vacated  ended  settled  gone
	Sold:       {Starting, never, never, never, never, never, Running, Stuck, never, Ended, never, never},
	Starting:   {never, Unwanted, never, never, never, never, Running, Stuck, never, Ended, never, never},
	Unwanted:   {never, Unwanted, never, never, never, never, Stopping, Stuck, never, Ended, never, never},
	Running:    {never, Stopping, Suspending, never, Resuming, never, never, Stuck, Storing, Ended, never, never},
	Suspending: {never, Stopping, never, Suspended, Resuming, Running, never, Stuck, Storing, Ended, never, never},
	Suspended:  {never, Stopping, never, never, Resuming, never, never, Stuck, Storing, Ended, never, never},
	Resuming:   {never, Stopping, Suspending, never, never, Running, never, Stuck, Storing, Ended, never, never},
	Stopping:   {never, Stopping, never, never, never, never, never, Stuck, Storing, Ended, never, never},
	Stuck:      {never, Stuck, never, never, never, never, Stuck, Stuck, Storing, Ended, never, never},
	Storing:    {never, Storing, never, never, never, never, never, never, never, Ended, never, never},
	Ended:      {never, never, never, never, never, never, never, never, never, never, Settled, never},
	Settled:    {never, never, never, never, never, never, never, never, never, never, never, Gone},
	Gone:       {never, never, never, never, never, never, never, never, never, never, never, never},
}

var (
	phaseNames = [phases]string{ //nolint:gochecknoglobals // as transitions
		"sold", "starting", "unwanted", "running", "suspending", "suspended", "resuming", "stopping", "stuck", "storing", "ended",
		"settled", "gone",
	}
	eventNames = [events]string{ //nolint:gochecknoglobals // as transitions
		"issue", "halt", "suspend", "still", "resume", "moving", "started", "stuck", "vacated", "ended", "settled", "gone",
	}
)

func (p Phase) String() string { return phaseNames[p] }

// Still: a lease in this phase is suspended, or is about to be.
func (p Phase) Still() bool { return p == Suspending || p == Suspended }
