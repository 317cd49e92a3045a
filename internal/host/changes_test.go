package host

import (
	"slices"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestChanges: each job is told once however often it changed, what came while nobody looked waits, and who has stopped hears nothing.
func TestChanges(t *testing.T) {
	var h Host
	c, stop := h.Changes()
	other, _ := h.Changes()
	select {
	case <-c.Some():
		t.Error("a signal before anything changed")
	default:
	}
	h.watches.wake([]protocol.Fact{{Job: "a"}, {Text: "of no job"}, {Job: "b"}})
	h.watches.wake([]protocol.Fact{{Job: "a"}})
	<-c.Some()
	if got := c.Take(); len(got) != 2 || !slices.Contains(got, "a") || !slices.Contains(got, "b") {
		t.Errorf("%q", got)
	}
	if got := c.Take(); len(got) != 0 {
		t.Errorf("again %q", got)
	}
	h.watches.wake([]protocol.Fact{{Text: "of no job"}})
	select {
	case <-c.Some():
		t.Error("a signal without a job")
	default:
	}
	stop()
	h.watches.wake([]protocol.Fact{{Job: "c"}})
	if got := c.Take(); len(got) != 0 {
		t.Errorf("after the end %q", got)
	}
	<-other.Some()
	if got := other.Take(); len(got) != 3 || !slices.Contains(got, job.ID("c")) {
		t.Errorf("the other has %q", got)
	}
}
