package window

import (
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/bitset"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/trp"
)

// Class is slices that are alike to every job: two slices are of one class if and only if capacity, profile and speed are the same.
type Class struct {
	at int
	// Capacity is what pieces may need there now, Whole what the slices have: more, where their host's memory bears less (protocol.Slice).
	Capacity, Whole trp.Vector
	Profile         string
	// Speed of the slices, in parts per thousand.
	Speed int64
	// slices there are of it, and usable ones among them.
	slices, usable int
	// quiet are the places of its slices that are (Board.Quiet).
	quiet bitset.Set
	label string
}

// NewClass is the class of a slice, by its place among the classes.
func NewClass(at int, of *protocol.Slice) *Class {
	c := &Class{at: at, Capacity: of.Offered(), Whole: of.Capacity, Profile: of.Profile, Speed: of.Speed, label: of.Profile}
	if c.label == "" {
		c.label = fmt.Sprintf("%d MiB", c.Capacity[trp.Memory]>>20)
	}
	return c
}

// is says whether a slice is of the class.
func (c *Class) is(of *protocol.Slice) bool {
	return c.Capacity == of.Offered() && c.Whole == of.Capacity && c.Speed == of.Speed && c.Profile == of.Profile
}

// At is the place of the class among the classes.
func (c *Class) At() int { return c.at }

// Label is what people call the slices of a class.
func (c *Class) Label() string { return c.label }

// Slices is how many there are of it.
func (c *Class) Slices() int { return c.slices }

// Usable is how many slices of it may be sold to somebody.
func (c *Class) Usable() int { return c.usable }

// SpeedOf is how fast a job runs on slices of the class, in parts per thousand; 0 if it can not.
func (c *Class) SpeedOf(spec *job.Spec) int64 { return spec.SpeedOn(c.Profile, c.Speed) }

// Cost of a time on a slice of the class, as the budget of those who have waited too long counts it.
func (c *Class) Cost(d time.Duration) int64 { return starvation.Cost(d, c.Speed) }
