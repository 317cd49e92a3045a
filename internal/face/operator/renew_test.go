package operator

import (
	"testing"
	"time"
)

// TestALeaseIsGivenUpWithTimeToStop: a third of it is left when an operator stops that could not renew it, and several tries come before.
func TestALeaseIsGivenUpWithTimeToStop(t *testing.T) {
	for _, lease := range []time.Duration{time.Second, 15 * time.Second, time.Minute} {
		if left := lease - renewBy(lease); left < lease/3 {
			t.Errorf("of a lease of %v %v are left to stop in, want a third", lease, left)
		}
		if tries := renewBy(lease) / renewEvery(lease); tries < 3 {
			t.Errorf("a lease of %v is tried to be renewed %d times before it is given up", lease, tries)
		}
	}
}
