package watches

import (
	"slices"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestAChangeWakesThoseWhoWaitForIt and nobody else; a signal stays until it is read, and several are one. Who has stopped leaves
// nothing behind.
func TestAChangeWakesThoseWhoWaitForIt(t *testing.T) {
	var w Watches
	a, stopA := w.Watch("a", "shared")
	b, stopB := w.Watch("b", "shared")
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
		w.Wake(facts)
	}
	for _, tc := range []struct {
		changed []job.ID
		a, b    bool
	}{{[]job.ID{"a"}, true, false}, {[]job.ID{"", "b", "b"}, false, true}, {[]job.ID{"other"}, false, false},
		{[]job.ID{"shared"}, true, true}} {
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
	if len(w.own) != 0 {
		t.Errorf("%d jobs are watched by nobody", len(w.own))
	}
}

// TestChanges: each job is told once however often it changed, what came while nobody looked waits, and who has stopped hears nothing.
func TestChanges(t *testing.T) {
	var w Watches
	c, stop := w.Changes()
	other, _ := w.Changes()
	select {
	case <-c.Some():
		t.Error("a signal before anything changed")
	default:
	}
	w.Wake([]protocol.Fact{{Job: "a"}, {Kind: protocol.Booted}, {Job: "b"}})
	w.Wake([]protocol.Fact{{Job: "a"}})
	<-c.Some()
	if got := c.Take(); len(got) != 2 || !slices.Contains(got, "a") || !slices.Contains(got, "b") {
		t.Errorf("%q", got)
	}
	if got := c.Take(); len(got) != 0 {
		t.Errorf("again %q", got)
	}
	w.Wake([]protocol.Fact{{Kind: protocol.Booted}})
	select {
	case <-c.Some():
		t.Error("a signal without a job")
	default:
	}
	stop()
	w.Wake([]protocol.Fact{{Job: "c"}})
	if got := c.Take(); len(got) != 0 {
		t.Errorf("after the end %q", got)
	}
	<-other.Some()
	if got := other.Take(); len(got) != 3 || !slices.Contains(got, job.ID("c")) {
		t.Errorf("the other has %q", got)
	}
}
