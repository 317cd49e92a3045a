package airlock

import (
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Step is what is done to a task: the cheapest that is legal comes first.
type Step uint8

const (
	// Suspend freezes it, and moves its memory out as far as there is room.
	Suspend Step = iota + 1
	// Resume makes it go on.
	Resume
	// Readdress asks it to leave a checkpoint and yield: what is left of it goes on elsewhere.
	Readdress
	// Reclaim ends it at once.
	Reclaim
)

var stepNames = [...]string{"", "suspend", "resume", "readdress", "reclaim"}

// String is the step for people.
func (s Step) String() string { return stepNames[s] }

// Cause is why a step is taken.
type Cause uint8

const (
	// Deficit: memory is short, and it is among the lowest that together cover what is missing.
	Deficit Cause = iota + 1
	// Eased: there is room for it again.
	Eased
	// Waited: its entry is to end, and it can yield.
	Waited
	// Overtime: its timer is over.
	Overtime
	// Foreseen: at this growth memory would be full before a task that has outgrown its plan could leave a checkpoint.
	Foreseen
	// Brink: memory is about to end, and it is the lowest.
	Brink
	// Cramped: it is suspended and has outgrown its plan, and would not fit again though memory is calm.
	Cramped

	// Causes is one more than the last.
	Causes = iota + 1
)

var causeNames = [Causes]string{
	"", "memory is short", "there is room again", "it was suspended for long", "its time in suspension is over",
	"memory would end before it could leave a checkpoint", "memory is about to end",
	"it has outgrown its plan, and there is no room for it again",
}

// String is the cause for people.
func (c Cause) String() string { return causeNames[c] }

// Action is one step.
type Action struct {
	// Task is its place in the snapshot.
	Task  int
	Token job.Token
	Step  Step
	Cause Cause
	// Relief that is expected of it, or what it takes again.
	Relief quantity.Amount
}

// Decision is what is to be done, with the numbers that it follows from.
type Decision struct {
	Reading
	// Deficit is what is to be made free, Underway what earlier steps will, Covered what these will.
	Deficit, Underway, Covered quantity.Amount
	// ParkedTasks and Parked bytes, and Room for more bytes, before these steps.
	ParkedTasks  int
	Parked, Room quantity.Amount
	// Blocked is the lowest task that could neither be suspended nor yield; -1: none. Tasks above it give way in its place until memory
	// reaches the emergency line, where it is ended.
	Blocked int
	// Actions in the order of the key, those that were foreseen before the others. Valid until the next decision.
	Actions []Action
}

// String explains the decision.
func (d *Decision) String() string {
	s := d.Reading.String()
	if d.Deficit > 0 {
		s += fmt.Sprintf("; %d MiB are to be made free, %d MiB will be, these steps make %d MiB", d.Deficit>>20, d.Underway>>20,
			d.Covered>>20)
	}
	if d.ParkedTasks > 0 {
		s += fmt.Sprintf("; %d suspended with %d MiB outside", d.ParkedTasks, d.Parked>>20)
	}
	if d.Blocked >= 0 {
		s += "; the lowest can't be helped by anything that is legal yet"
	}
	for _, a := range d.Actions {
		s += fmt.Sprintf("; %v %v (%d MiB), since %v", a.Step, a.Token, a.Relief>>20, a.Cause)
	}
	return s
}

// Airlock has the room that a decision needs. It keeps nothing from one to the next.
type Airlock struct {
	cfg Config
	// heap of the tasks to look at, by key, and all of them: those from next on were popped. highest: the order is descending, otherwise
	// ascending; both are of the present decision.
	heap, all          []ranked
	next               int
	highest, ascending bool
	acts               [MaxTasks]Action
	d                  Decision
}

type ranked struct {
	key  uint64
	task int32
}

// New returns an Airlock. The configuration must be valid with its defaults.
func New(cfg Config) *Airlock {
	cfg = cfg.WithDefaults()
	err := cfg.Validate()
	invariant.Check(err == nil, "airlock: New with a configuration that was not validated: %v", err)
	return &Airlock{cfg: cfg, heap: make([]ranked, 0, MaxTasks)}
}

// growth of a task within the horizon: none for one that is suspended.
func (a *Airlock) growth(g quantity.Amount) quantity.Amount {
	return quantity.Amount(quantity.MulDiv(int64(max(0, g)), int64(a.cfg.Horizon), int64(time.Second)))
}

// lack is what is to be made free at a reading: down to the calm line, in an emergency to the severe one. It is never nothing: one that
// stalls has memory.
func (a *Airlock) lack(r *Reading) quantity.Amount {
	line := r.calm
	if r.Level == Emergency {
		line = r.severe
	}
	return max(1, r.Used+a.growth(r.Growth)-line)
}
