package gate_test

import (
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// malformed are names that are none, as a client that skips the checks of the API could send them.
func malformed() []string { return []string{"", "a/b", "../a", "a\x1b[2J", "a\x00b", "A", " ", "-"} }

// TestMalformedNamesAreRefused by the gate itself, of jobs, queues, templates and options.
func TestMalformedNamesAreRefused(t *testing.T) {
	d := newDesk(t)
	for _, name := range malformed() {
		for what, change := range map[string]func(*job.Spec){
			"job": func(s *job.Spec) { s.Name = job.ID(name) }, "queue": func(s *job.Spec) { s.Queue = name },
			"option": func(s *job.Spec) { s.Options = []job.Option{{Name: name}} },
			"template": func(s *job.Spec) {
				if s.Template = name; name == "" {
					s.Template = "/"
				}
			},
		} {
			m := submit(t, "a", "r", "d")
			change(m.Body.(*protocol.Submission).Spec)
			if r := d.call(m); errkind.Of(r.Body.(*protocol.Receipt).Err) != errkind.Invalid {
				t.Errorf("%s %q: %v", what, name, r.Body.(*protocol.Receipt).Err)
			}
		}
		if r := d.call(protocol.Message{Kind: protocol.SetQueue,
			Body: &protocol.QueueSetting{Queue: &protocol.Queue{Name: name, Weight: 1}}}); errkind.Of(
			r.Body.(*protocol.Receipt).Err) != errkind.Invalid {
			t.Errorf("queue %q: %v", name, r.Body.(*protocol.Receipt).Err)
		}
	}
	if len(d.facts) > 0 {
		t.Errorf("%d facts of what was refused", len(d.facts))
	}
}

// TestAJobWithoutANameIsCured: a journal of an older version accepted it; cancel ends it like any other.
func TestAJobWithoutANameIsCured(t *testing.T) {
	d := newDesk(t)
	accepted := protocol.Fact{Kind: protocol.JobAccepted, Actor: protocol.Address{Role: protocol.Gate}, Epoch: 1, At: d.now,
		Body: &protocol.Acceptance{Spec: spec(t, "", 100), Zone: "z", Digest: "d"}}
	homed := protocol.Fact{Kind: protocol.JobHomed, Actor: accepted.Actor, Epoch: 1}
	for _, f := range []protocol.Fact{accepted, homed} {
		d.facts = append(d.facts, f)
		d.g.Apply(f)
	}
	if d.g.Life("") == 0 {
		t.Fatal("the job of the journal is not there")
	}
	if r := d.call(protocol.Message{Kind: protocol.Cancel, Job: "",
		Body: &protocol.Cancellation{}}); r.Body.(*protocol.Receipt).Err != nil || d.find(protocol.Cancel) == nil {
		t.Fatalf("cancel: %v", r.Body.(*protocol.Receipt).Err)
	}
	d.step(protocol.Message{Kind: protocol.Closed, Epoch: 1, Body: &protocol.Closing{Verdict: job.Verdict{State: job.Cancelled}, At: d.now},
		From: protocol.Address{Role: protocol.Zone, ID: "z"}})
	d.now += 3700e9
	if d.step(protocol.Message{Kind: protocol.Tick}); d.g.Life("") != 0 {
		t.Error("it is never forgotten")
	}
}
