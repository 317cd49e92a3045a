package airlock

import (
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Ranking is what a task's place in the order of survival follows from, for people.
type Ranking struct {
	Token    job.Token
	Class    Class
	Priority int32
	Value    uint16
	// Ran is how long it has run, Footprint what it has, resident and parked: of both the power of two counts, of Footprint in MiB.
	Ran       time.Duration
	Footprint quantity.Amount
	// Planned is its probable peak, 0: not known. Outgrown: it has more than that, and an eighth.
	Planned  quantity.Amount
	Outgrown bool
}

// RankingOf is a task's place at a moment.
func RankingOf(now quantity.Instant, t *Task) Ranking {
	p := Ranking{
		Token: t.Token, Class: t.Class, Priority: t.Priority, Value: t.Value,
		Footprint: max(0, t.Resident+t.Parked), Planned: t.Planned, Outgrown: t.Outgrown(),
	}
	if t.Start != 0 && t.Start < now {
		p.Ran = now.Sub(t.Start)
	}
	return p
}

// Below says by what a task is hit before another that is above it: the first field of the key in which they differ.
func (c *Config) Below(low, high *Ranking) string {
	if c.Outgrown == OutgrownFirst && low.Outgrown && !high.Outgrown {
		return fmt.Sprintf("it has outgrown its plan, with %d MiB of %d", low.Footprint>>20, low.Planned>>20)
	}
	class, priority := "", ""
	if low.Class != high.Class {
		class = fmt.Sprintf("its class is %v, the other's %v", low.Class, high.Class)
	}
	if low.Priority != high.Priority {
		priority = fmt.Sprintf("its priority is %d, the other's %d", low.Priority, high.Priority)
	}
	if c.Order == PriorityFirst {
		class, priority = priority, class
	}
	switch {
	case class != "":
		return class
	case priority != "":
		return priority
	case low.Value != high.Value:
		return fmt.Sprintf("its queue's value band is %d, the other's %d", low.Value, high.Value)
	case residence(low.Ran) != residence(high.Ran):
		return fmt.Sprintf("it has run %v, the other %v", low.Ran.Round(time.Second), high.Ran.Round(time.Second))
	case footprint(low.Footprint) != footprint(high.Footprint):
		return fmt.Sprintf("it has %d MiB, the other %d", low.Footprint>>20, high.Footprint>>20)
	default:
		return fmt.Sprintf("they are alike, and its number %v comes before %v", low.Token, high.Token)
	}
}

// String is the class for people.
func (c Class) String() string { return [...]string{"fleeting", "lasting", "collective"}[c] }
