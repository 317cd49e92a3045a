package preempt

import "sluice.dev/sluice/internal/lab/planner"

// Kinds in the order they are shown.
func Kinds() []planner.Kind {
	return []planner.Kind{Migrate(), SRPT(), LAS()}
}
