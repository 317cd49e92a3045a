// Package invariant stops the process when one of our own promises is broken. A broken invariant is our bug, never the
// user's: the journal holds what was true before, and going on would write what is not.
package invariant

import (
	"fmt"
)

// Broken is the value a failed check panics with.
type Broken struct{ Message string }

// Error makes Broken readable where it is recovered for a report.
func (b Broken) Error() string { return "broken invariant (a bug in Sluice): " + b.Message }

// Check panics with Broken if ok is false.
func Check(ok bool, format string, args ...any) {
	if !ok {
		panic(Broken{Message: fmt.Sprintf(format, args...)})
	}
}
