package forecast

import (
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Source is what bounds a job's use, and so which guarantee its bound has.
type Source uint8

const (
	// Whole: nothing is known. Only a slice that nobody else can be harmed on will do, the whole capacity; the hardware
	// keeps that promise, not a forecast.
	Whole Source = iota
	// Queued: the peaks of its queue's jobs, one bound for the whole run. At most theta where the queue's jobs are exchangeable; a new kind
	// of job in an old queue breaks that, so its user watches the misses.
	Queued
	// Declared by its owner, raised to what its template was seen to use where that is more: as good as the declaration, and
	// of n runs seen, the next passes all with a chance of at most 1/(n+1).
	Declared
	// Taught by its template: at most theta.
	Taught
)

var sourceNames = [...]string{"the whole slice", "its queue's jobs", "its declared profile", "its template's runs"}

// String is the source for people.
func (s Source) String() string {
	if int(s) < len(sourceNames) {
		return sourceNames[s]
	}
	return "unknown"
}

// Rule is the profile of a job of total units, at least 1, at theta (parts per million), and where it is from. Declared is
// what its owner declared, compiled, nil where there is nothing; template and queue are the runs of its template and of its
// queue, nil where there are none. It gives no table where the source is Whole.
func Rule(declared *trp.Table, template, queue *Runs, total, theta int64) (trp.Table, Source) {
	seen := template != nil && len(template.List) > 0
	if seen {
		if t, ok := template.Table(total, theta); ok {
			return t, Taught
		}
	}
	switch {
	case declared != nil && seen:
		return raised(declared, template), Declared
	case declared != nil:
		return *declared, Declared
	}
	if queue != nil {
		if peak, ok := queue.Over(total, 0, total, theta); ok {
			if seen {
				most, _ := template.Over(total, 0, total, theta)
				peak = max(peak, most)
			}
			return trp.Table{Bounds: []int64{total}, Least: [][]quantity.Amount{{peak}}}, Queued
		}
	}
	return trp.Table{}, Whole
}

// raised is a declared table, no entry of it below what runs were seen to use.
func raised(declared *trp.Table, runs *Runs) trp.Table {
	t, _ := runs.table(declared.Bounds, 1)
	for i := range t.Least {
		for j := range t.Least[i] {
			t.Least[i][j] = max(t.Least[i][j], declared.Least[i][j])
		}
	}
	return t
}
