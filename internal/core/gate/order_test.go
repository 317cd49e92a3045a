package gate_test

import (
	"testing"

	"sluice.dev/sluice/internal/core/protocol"
)

// TestAnOlderWordDoesNotStay: of two words to the zone the older may arrive last. The zone's answer shows which one it
// holds to, and the gate says the newer one again.
func TestAnOlderWordDoesNotStay(t *testing.T) {
	d := newDesk(t)
	d.call(submit(t, "a", "r1", "d1"))
	d.step(protocol.Message{Kind: protocol.Adopted, Job: "a", Epoch: 1})
	zone := protocol.Address{Role: protocol.Zone, ID: "z"}
	for _, flag := range []bool{true, false} {
		d.call(protocol.Message{Kind: protocol.PauseJob, Job: "a", Body: &protocol.Pause{Paused: flag}})
	}
	d.step(protocol.Message{Kind: protocol.PauseJob, From: zone, Job: "a", Epoch: 1, Body: &protocol.Pause{}})
	if d.find(protocol.PauseJob) != nil {
		t.Error("the zone holds to what the gate wants and is told again")
	}
	d.step(protocol.Message{Kind: protocol.PauseJob, From: zone, Job: "a", Epoch: 1, Body: &protocol.Pause{Paused: true}})
	if m := d.find(protocol.PauseJob); m == nil || m.Body.(*protocol.Pause).Paused {
		t.Errorf("the zone paused a job that was resumed, and is told %+v", m)
	}

	first, second := protocol.Queue{Name: "q", Weight: 1}, protocol.Queue{Name: "q", Weight: 2}
	for _, q := range []protocol.Queue{first, second} {
		d.call(protocol.Message{Kind: protocol.SetQueue, Body: &protocol.QueueSetting{Request: "set", Queue: &q}})
	}
	d.step(protocol.Message{Kind: protocol.QueueChanged, From: zone, Body: &second})
	if d.find(protocol.QueueChanged) != nil {
		t.Error("the zone has the queue's settings and is told again")
	}
	d.step(protocol.Message{Kind: protocol.QueueChanged, From: zone, Body: &first})
	if m := d.find(protocol.QueueChanged); m == nil || *m.Body.(*protocol.Queue) != second {
		t.Errorf("the zone went back to older settings, and is told %+v", m)
	}
}

// TestAGangFitsItsQueue or is told at submission that it never will.
func TestAGangFitsItsQueue(t *testing.T) {
	d := newDesk(t)
	d.call(protocol.Message{Kind: protocol.SetQueue,
		Body: &protocol.QueueSetting{Request: "r", Queue: &protocol.Queue{Name: "default", Weight: 1, Cap: 2}}})
	for n, fits := range map[int]bool{1: true, 2: true, 3: false} {
		s := spec(t, "g", 100)
		s.Slices = n
		if err := d.g.Check(d.now, s); (err == nil) != fits {
			t.Errorf("%d slices in a queue that may hold 2: %v", n, err)
		}
	}
}
