package host

import (
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestAChangeWakesThoseWhoWaitForIt and nobody else; a signal stays until it is read, and several are one. Who has stopped leaves
// nothing behind.
func TestAChangeWakesThoseWhoWaitForIt(t *testing.T) {
	var h Host
	a, stopA := h.Watch("a", "shared")
	b, stopB := h.Watch("b", "shared")
	woken := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	change := func(names ...job.ID) {
		var facts []protocol.Fact
		for _, name := range names {
			facts = append(facts, protocol.Fact{Job: name})
		}
		h.watches.wake(facts)
	}
	for _, tc := range []struct {
		changed []job.ID
		a, b    bool
	}{{[]job.ID{"a"}, true, false}, {[]job.ID{"", "b", "b"}, false, true}, {[]job.ID{"other"}, false, false}, {[]job.ID{"shared"}, true, true}} {
		change(tc.changed...)
		if woken(a) != tc.a || woken(b) != tc.b || woken(a) || woken(b) {
			t.Errorf("%v: want %v and %v, once", tc.changed, tc.a, tc.b)
		}
	}
	change("a")
	change("a")
	if !woken(a) || woken(a) {
		t.Error("two changes that nobody read are not one signal")
	}
	stopA()
	if change("a", "shared"); woken(a) || !woken(b) {
		t.Error("stopping one stops the other, or not itself")
	}
	stopB()
	if len(h.watches.own) != 0 {
		t.Errorf("%d jobs are watched by nobody", len(h.watches.own))
	}
}
