package airlock

import (
	"cmp"
	"errors"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

// MaxTasks is how many tasks a table may have.
const MaxTasks = 1024

// Order is which comes first in the survival key.
type Order uint8

const (
	// ClassFirst compares classes before priorities. The default: what can be cut gives way before what would be lost whole (ADR 0046 has
	// both measured).
	ClassFirst Order = iota
	// PriorityFirst compares priorities before classes.
	PriorityFirst
)

// String is the order for people, as a daemon's file has it.
func (o Order) String() string { return [...]string{"class", "priority"}[o] }

// Outgrown is what it counts in the survival key that a task has more memory than was planned for it.
type Outgrown uint8

const (
	// OutgrownFirst: a task that has outgrown its plan is hit before all that keep to theirs, so that no task pays with its own work for
	// memory that another was never given.
	OutgrownFirst Outgrown = iota
	// OutgrownAlike: it does not count.
	OutgrownAlike
)

// Config is where the lines are. Zero values take the default named with them. Shares are of the host's memory, in parts per thousand.
type Config struct {
	// Severe is the line from which on memory is made free, Calm the one below which what was suspended goes on, Emergency the one from
	// which on the lowest is ended at once, unless what is missing has room outside. Default 920, 850, 970.
	Severe, Calm, Emergency int64
	// Horizon: who is to run out of memory within it is over the severe line, within Brink over the emergency line. Default 2 s and 200 ms.
	Horizon, Brink time.Duration
	// Stall is the share of time for which tasks were stalled for want of memory, in parts per thousand, that is severe by itself. Default
	// 200.
	Stall int64
	// Timer ends every entry. Yield is the time for a checkpoint: this long before the entry's end a task that can is asked to leave one
	// and yield, and this long before memory would be full one that has outgrown its plan. Default 30 s and 10 s.
	Timer, Yield time.Duration
	// Entries is how many times one task may be suspended. Default 3.
	Entries uint8
	// CoolDown is the time between two tasks that go on. Default 5 s.
	CoolDown time.Duration
	// MostTasks and MostBytes, a share, bound what is suspended at once. Default 64 and 500.
	MostTasks int
	MostBytes int64
	// Least is the relief, a share, below which a task is passed over. Default 1.
	Least    int64
	Order    Order
	Outgrown Outgrown
}

// WithDefaults fills what was left out.
func (c Config) WithDefaults() Config {
	c.Severe = cmp.Or(c.Severe, 920)
	c.Calm = cmp.Or(c.Calm, 850)
	c.Emergency = cmp.Or(c.Emergency, 970)
	c.Stall = cmp.Or(c.Stall, 200)
	c.MostBytes = cmp.Or(c.MostBytes, 500)
	c.Least = cmp.Or(c.Least, 1)
	c.Horizon = cmp.Or(c.Horizon, 2*time.Second)
	c.Brink = cmp.Or(c.Brink, 200*time.Millisecond)
	c.Timer = cmp.Or(c.Timer, 30*time.Second)
	c.Yield = cmp.Or(c.Yield, 10*time.Second)
	c.CoolDown = cmp.Or(c.CoolDown, 5*time.Second)
	c.Entries = cmp.Or(c.Entries, 3)
	c.MostTasks = cmp.Or(c.MostTasks, 64)
	return c
}

// Validate returns every problem of a configuration with its defaults filled in, as one error of kind Invalid, or nil.
func (c Config) Validate() error {
	var problems []error
	problem := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, errkind.Errorf(errkind.Invalid, format, args...))
		}
	}
	problem(c.Calm <= 0 || c.Calm >= c.Severe || c.Severe >= c.Emergency || c.Emergency > 1000,
		"airlock: the lines are calm %d, severe %d and emergency %d; each must be above the one before, within 1 and 1000", c.Calm,
		c.Severe, c.Emergency)
	problem(c.Brink <= 0 || c.Brink >= c.Horizon || c.Horizon > time.Minute,
		"airlock: Brink is %v and Horizon %v; it must be 0 < Brink < Horizon <= 1m", c.Brink, c.Horizon)
	problem(c.Yield <= 0 || c.Yield >= c.Timer || c.Timer > time.Hour,
		"airlock: Yield is %v and Timer %v; it must be 0 < Yield < Timer <= 1h", c.Yield, c.Timer)
	problem(c.CoolDown < 0, "airlock: CoolDown is %v; it can't be negative", c.CoolDown)
	problem(c.Stall < 1 || c.Stall > 1000, "airlock: Stall is %d; it must be within 1 and 1000", c.Stall)
	problem(c.MostTasks < 0 || c.MostTasks > MaxTasks, "airlock: MostTasks is %d; it must be within 1 and %d", c.MostTasks, MaxTasks)
	problem(c.MostBytes < 0 || c.MostBytes > 1000, "airlock: MostBytes is %d; it must be within 1 and 1000", c.MostBytes)
	problem(c.Least < 0 || c.Least > 1000, "airlock: Least is %d; it must be within 1 and 1000", c.Least)
	problem(c.Order > PriorityFirst, "airlock: there is no order %d", c.Order)
	problem(c.Outgrown > OutgrownAlike, "airlock: there is no way %d with what has outgrown its plan", c.Outgrown)
	if len(problems) == 0 {
		return nil
	}
	return errkind.Errorf(errkind.Invalid, "%w", errors.Join(problems...))
}
