package ends

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
)

// Kind of jobs that lose alike when their gap ends unforeseen.
type Kind struct {
	Queue, Template string
	Kind            job.Kind
}

// toll is what the latest subjobs of a kind that were cut short had worked, and what of that was saved.
type toll struct {
	worked, saved time.Duration
	seen          int
}

// halved is after how many of them the past counts half.
const halved = 32

// tolls are kept of the MostKinds kinds that paid last.
type tolls struct {
	of   map[Kind]*toll
	paid []Kind
}

func newTolls() tolls { return tolls{of: map[Kind]*toll{}} }
