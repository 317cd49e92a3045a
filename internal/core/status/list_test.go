package status

import (
	"testing"

	"sluice.dev/sluice/internal/core/job"
)

// TestJobStates: the empty set is all states; a set has what was added, and says whether one of them is an end.
func TestJobStates(t *testing.T) {
	var all JobStates
	for state := job.Waiting; state <= job.Impossible; state++ {
		one := all.With(state)
		if !all.Has(state) || !one.Has(state) || one.Over() != state.Final() {
			t.Errorf("%v: in all %v, in its own set %v, over %v", state, all.Has(state), one.Has(state), one.Over())
		}
		for other := job.Waiting; other <= job.Impossible; other++ {
			if one.Has(other) != (other == state) || one.With(other).Over() != (state.Final() || other.Final()) {
				t.Errorf("%v in the set of %v: %v", other, state, one.Has(other))
			}
		}
	}
	if !all.Over() {
		t.Error("all states, and none is an end")
	}
}
