package backfill

import (
	"math"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
)

// Discipline is how rigid jobs wait for one another.
type Discipline struct {
	// Reserve is how many of the waiting rigid jobs, in order, hold a reservation.
	Reserve int
	// Overtake says that those behind them may start out of order.
	Overtake bool
	// Gangs: only jobs of several slices are in that order. Those of one slice only answer windows, as divisible jobs do: the policy orders
	// them together. Where it has an index, gangs are in its order too, and hold their places by that (order.go).
	Gangs bool
}

// Default is the name of the discipline when none is named.
const Default = "gangs"

// Names of the disciplines, in the order in which they are listed.
func Names() []string { return []string{"gangs", "fcfs", "skip", "easy", "conservative"} }

// Named finds a discipline. The error, of kind Invalid, names those there are.
func Named(name string) (Discipline, error) {
	switch name {
	case "gangs":
		return Discipline{Reserve: 1, Overtake: true, Gangs: true}, nil
	case "fcfs":
		return Discipline{Reserve: 1}, nil
	case "skip":
		return Discipline{Overtake: true}, nil
	case "easy":
		return Discipline{Reserve: 1, Overtake: true}, nil
	case "conservative":
		return Discipline{Reserve: math.MaxInt, Overtake: true}, nil
	}
	return Discipline{}, errkind.Errorf(errkind.Invalid, "planner %q is none for live work; choose one of %s", name,
		strings.Join(Names(), ", "))
}

// Lines reports whether a job of width slices waits in line for a reservation.
func (d Discipline) Lines(width int) bool { return !d.Gangs || width > 1 }
