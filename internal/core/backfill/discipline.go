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
}

// Names of the disciplines, in the order in which they are told.
func Names() []string { return []string{"fcfs", "skip", "easy", "conservative"} }

// Named finds a discipline. The error, of kind Invalid, names those there are.
func Named(name string) (Discipline, error) {
	switch name {
	case "fcfs":
		return Discipline{Reserve: 1}, nil
	case "skip":
		return Discipline{Overtake: true}, nil
	case "easy":
		return Discipline{Reserve: 1, Overtake: true}, nil
	case "conservative":
		return Discipline{Reserve: math.MaxInt, Overtake: true}, nil
	}
	return Discipline{}, errkind.Errorf(errkind.Invalid, "planner %q is none for live work; choose one of %s", name, strings.Join(Names(), ", "))
}
