package zone_test

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestAMalformedNameIsNeverSold: a gate of an older version hands a job over; the zone ends it where it arrives and says why.
func TestAMalformedNameIsNeverSold(t *testing.T) {
	for _, name := range []string{"", "a/b", "../a", "a\x1b[2J", "a\x00b"} {
		for what, change := range map[string]func(*job.Spec){
			"job": func(s *job.Spec) { s.Name = job.ID(name) }, "queue": func(s *job.Spec) { s.Queue = name },
		} {
			w := newWorld(t, 1024)
			w.refuse = func(m *protocol.Message) bool { t.Errorf("%s %q: a place is asked for", what, name); return true }
			s := items(t, "x", 10, 100, 1)
			change(s)
			w.submit(s)
			w.until(time.Minute)
			if v := w.closed[s.Name]; v.State != job.Impossible || !strings.Contains(v.Reason, "no") {
				t.Errorf("%s %q: %v", what, name, v)
			}
			w.restart()
		}
		w := newWorld(t, 1024)
		w.step(protocol.Message{Kind: protocol.QueueChanged, From: protocol.Address{Role: protocol.Gate},
			Body: &protocol.Queue{Name: name, Weight: 7}})
		if len(w.queue) != 1 || w.queue[0].Kind != protocol.QueueChanged {
			t.Errorf("queue %q: %d answers, want one, or the gate asks for ever", name, len(w.queue))
		}
		if len(w.facts) > 0 {
			t.Errorf("queue %q is taken in", name)
		}
	}
}

// TestAJobWithoutANameIsCured: a journal of an older version holds it as adopted. The node refuses every ask for it; others run,
// it says why it does not, and cancel ends it.
func TestAJobWithoutANameIsCured(t *testing.T) {
	w := newWorld(t, 1024)
	bad := items(t, "", 1000, 100, 4)
	taken := protocol.Fact{Kind: protocol.HomeTaken, Actor: protocol.Address{Role: protocol.Zone, ID: "z"}, Epoch: 1, At: w.now,
		Body: &protocol.Taking{Spec: bad}}
	w.facts = append(w.facts, taken)
	w.z.Apply(taken)
	w.refuse = func(m *protocol.Message) bool { return m.Job == "" }
	w.now = w.now.Add(time.Second)
	w.submit(items(t, "good", 30, 100, 1))
	w.until(2 * time.Minute)
	finished(t, w, "good")
	if took := w.now.Sub(2e9); took > 45*time.Second {
		t.Errorf("30 s of work took %v beside it", took)
	}
	if j, _ := w.z.Job(w.now, ""); !strings.Contains(j.Reason, "refused") {
		t.Errorf("it waits and says %q", j.Reason)
	}
	w.adopted[""] = bad
	w.step(protocol.Message{Kind: protocol.Cancel, Epoch: 1, Body: &protocol.Cancellation{Text: "cancelled by its owner"}})
	w.until(time.Minute)
	if v := w.closed[""]; v.State != job.Cancelled {
		t.Errorf("after cancel: %v", v)
	}
}
