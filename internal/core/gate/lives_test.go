package gate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// zoneAddress is who speaks for the home.
func zoneAddress() protocol.Address { return protocol.Address{Role: protocol.Zone, ID: "z"} }

// home answers for the zone: the present life is adopted, and ends as state.
func (d *desk) end(id job.ID, of job.Generation, state job.State) {
	d.step(protocol.Message{Kind: protocol.Adopted, From: zoneAddress(), Job: id, Epoch: 1, Generation: of})
	d.step(protocol.Message{Kind: protocol.Closed, From: zoneAddress(), Job: id, Epoch: 1, Generation: of,
		Body: &protocol.Closing{Verdict: job.Verdict{State: state, Reason: "because"}, At: d.now}})
}

// gone answers Purge and Forget.
func (d *desk) gone(id job.ID, last job.Generation) {
	d.step(protocol.Message{Kind: protocol.Purged, From: protocol.Address{Role: protocol.Executor}, Job: id, Generation: last + 1})
	d.step(protocol.Message{Kind: protocol.Forgotten, From: zoneAddress(), Job: id, Epoch: 1, Generation: last})
}

func (d *desk) tick(after time.Duration) {
	d.now = d.now.Add(after)
	d.step(protocol.Message{Kind: protocol.Tick})
}

func TestRequeue(t *testing.T) {
	for state, want := range map[job.State]string{
		job.Cancelled: "", job.Failed: "", job.Expired: "", job.Finished: "is COMPLETED: nothing of it is left to run",
		job.Impossible: "is NEVER", job.Running: "is not over",
	} {
		d := newDesk(t)
		d.call(submit(t, "a", "r1", "d1"))
		if state.Final() {
			d.end("a", 1, state)
		}
		r := d.call(protocol.Message{Kind: protocol.Requeue, Job: "a", Body: &protocol.Requeueing{Request: "q1"}})
		if want != "" {
			if errkind.Of(r.Body.(*protocol.Receipt).Err) != errkind.Conflict || !strings.Contains(r.Body.(*protocol.Receipt).Err.Error(),
				want) {
				t.Errorf("%v: %v, want %q", state, r.Body.(*protocol.Receipt).Err, want)
			}
			continue
		}
		m := d.find(protocol.Adopt)
		if r.Body.(*protocol.Receipt).Err != nil || r.Generation != 2 || m == nil || m.Generation != 2 ||
			m.Body.(*protocol.Adoption).Since != 1 || m.Body.(*protocol.Adoption).At != d.now {
			t.Fatalf("%v: answer %+v, Adopt %+v; want the second life of the same work", state, r, m)
		}
		if r := d.call(protocol.Message{Kind: protocol.Requeue, Job: "a",
			Body: &protocol.Requeueing{Request: "q1"}}); r.Body.(*protocol.Receipt).Err != nil || r.Body.(*protocol.Receipt).Changed ||
			r.Generation != 2 {
			t.Errorf("%v: the same call again: %+v", state, r)
		}
		if r := d.call(protocol.Message{Kind: protocol.Requeue, Job: "a", Body: &protocol.Requeueing{Request: "q2"}}); errkind.Of(
			r.Body.(*protocol.Receipt).Err) != errkind.Conflict {
			t.Errorf("%v: another call while it lives: %+v", state, r)
		}
		d.step(protocol.Message{Kind: protocol.Closed, From: zoneAddress(), Job: "a", Epoch: 1, Generation: 1,
			Body: &protocol.Closing{Verdict: job.Verdict{State: state}, At: d.now}})
		if ack := d.find(protocol.ClosedAck); ack == nil || ack.Generation != 1 || d.find(protocol.Forget) != nil {
			t.Errorf("%v: the verdict of the first life again: %+v", state, d.said)
		}
		if r := d.call(protocol.Message{Kind: protocol.Cancel, Job: "a",
			Body: &protocol.Cancellation{Request: "c"}}); r.Body.(*protocol.Receipt).Err != nil {
			t.Errorf("%v: the second life ended with the first: %v", state, r.Body.(*protocol.Receipt).Err)
		}
		d.end("a", 2, job.Cancelled)
		if r := d.call(protocol.Message{Kind: protocol.Requeue, Job: "a",
			Body: &protocol.Requeueing{Request: "q3"}}); r.Body.(*protocol.Receipt).Err != nil || r.Generation != 3 {
			t.Errorf("%v: a third life: %+v", state, r)
		}
	}
}

func TestRequeueAfterTheDeadline(t *testing.T) {
	d := newDesk(t)
	m := submit(t, "a", "r1", "d1")
	m.Body.(*protocol.Submission).Spec.Deadline = d.now.Add(time.Minute)
	d.call(m)
	d.tick(time.Hour)
	d.end("a", 1, job.Expired)
	if r := d.call(protocol.Message{Kind: protocol.Requeue, Job: "a", Body: &protocol.Requeueing{}}); errkind.Of(
		r.Body.(*protocol.Receipt).Err) != errkind.Invalid || !strings.Contains(r.Body.(*protocol.Receipt).Err.Error(), "--deadline") {
		t.Errorf("without another deadline: %v", r.Body.(*protocol.Receipt).Err)
	}
	if r := d.call(protocol.Message{Kind: protocol.Requeue, Job: "a", Body: &protocol.Requeueing{Deadline: d.now - 1}}); errkind.Of(
		r.Body.(*protocol.Receipt).Err) != errkind.Invalid {
		t.Errorf("with another one that has passed: %v", r.Body.(*protocol.Receipt).Err)
	}
	for _, at := range []quantity.Instant{d.now.Add(time.Hour), quantity.Never} {
		r := d.call(protocol.Message{Kind: protocol.Requeue, Job: "a", Body: &protocol.Requeueing{Deadline: at}})
		if a := d.find(protocol.Adopt); r.Body.(*protocol.Receipt).Err != nil || a == nil ||
			a.Body.(*protocol.Adoption).Spec.Deadline != at {
			t.Fatalf("with deadline %d: %+v, %+v", at, r, a)
		}
		d.end("a", r.Generation, job.Failed)
	}
	if r := d.call(submit(t, "a", "r9", "d1")); r.Body.(*protocol.Receipt).Err != nil || r.Body.(*protocol.Receipt).Changed ||
		r.Body.(*protocol.Receipt).Verdict.State != job.Failed {
		t.Errorf("what was submitted again is the same job: %+v", r)
	}
}

func TestReplaceWaitsUntilTheFormerIsGone(t *testing.T) {
	d := newDesk(t)
	d.call(submit(t, "a", "r1", "d1"))
	again := submit(t, "a", "r2", "d2")
	again.Body.(*protocol.Submission).Replace = true
	if r := d.call(again); errkind.Of(r.Body.(*protocol.Receipt).Err) != errkind.Conflict ||
		!strings.Contains(r.Body.(*protocol.Receipt).Err.Error(), "cancel it first") {
		t.Errorf("a job that is not over was replaced: %+v", r)
	}
	d.end("a", 1, job.Failed)
	if r := d.call(submit(t, "a", "r3", "d2")); errkind.Of(r.Body.(*protocol.Receipt).Err) != errkind.Exists ||
		!strings.Contains(r.Body.(*protocol.Receipt).Err.Error(), "--replace") {
		t.Errorf("other content: %v, want a hint at --replace", r.Body.(*protocol.Receipt).Err)
	}
	if r := d.call(again); r.Body.(*protocol.Receipt).Err != nil || !r.Body.(*protocol.Receipt).Changed || r.Generation != 2 {
		t.Fatalf("replace: %+v", r)
	}
	purge, forget := d.find(protocol.Purge), d.find(protocol.Forget)
	if purge == nil || purge.Generation != 2 || forget == nil || forget.Generation != 1 || d.find(protocol.Adopt) != nil {
		t.Fatalf("said %+v; want the former job purged and forgotten before this one is sent home", d.said)
	}
	if r := d.call(again); r.Body.(*protocol.Receipt).Err != nil || r.Body.(*protocol.Receipt).Changed || r.Generation != 2 {
		t.Errorf("the same call again: %+v", r)
	}
	d.step(protocol.Message{Kind: protocol.Purged, From: protocol.Address{Role: protocol.Executor}, Job: "a", Generation: 2})
	if d.tick(2 * time.Second); d.find(protocol.Adopt) != nil || d.find(protocol.Purge) != nil || d.find(protocol.Forget) == nil {
		t.Errorf("said %+v; want Forget repeated and nothing else", d.said)
	}
	d.gone("a", 1)
	if m := d.find(protocol.Adopt); m == nil || m.Generation != 2 || m.Body.(*protocol.Adoption).Since != 2 {
		t.Errorf("Adopt %+v; want the second life, of other work than the first", m)
	}
	d.end("a", 2, job.Finished)
	again.Body.(*protocol.Submission).Request = "r4"
	if r := d.call(again); r.Body.(*protocol.Receipt).Err != nil || !r.Body.(*protocol.Receipt).Changed || r.Generation != 3 {
		t.Errorf("the same content once more, from the start: %+v", r)
	}
}

func TestDelete(t *testing.T) {
	d := newDesk(t)
	if r := d.call(protocol.Message{Kind: protocol.Delete, Job: "a", Body: &protocol.Deletion{Request: "x"}}); errkind.Of(
		r.Body.(*protocol.Receipt).Err) != errkind.NotFound {
		t.Errorf("no such job: %v", r.Body.(*protocol.Receipt).Err)
	}
	d.call(submit(t, "a", "r1", "d1"))
	if r := d.call(protocol.Message{Kind: protocol.Delete, Job: "a", Body: &protocol.Deletion{Request: "x"}}); errkind.Of(
		r.Body.(*protocol.Receipt).Err) != errkind.Conflict {
		t.Errorf("it is not over: %v", r.Body.(*protocol.Receipt).Err)
	}
	d.end("a", 1, job.Finished)
	if r := d.call(protocol.Message{Kind: protocol.Delete, Job: "a",
		Body: &protocol.Deletion{Request: "x"}}); r.Body.(*protocol.Receipt).Err != nil || d.g.Life("a") != 0 {
		t.Fatalf("delete: %v", r.Body.(*protocol.Receipt).Err)
	}
	if r := d.call(protocol.Message{Kind: protocol.Delete, Job: "a",
		Body: &protocol.Deletion{Request: "x"}}); r.Body.(*protocol.Receipt).Err != nil {
		t.Errorf("the same call again: %v", r.Body.(*protocol.Receipt).Err)
	}
	d.gone("a", 1)
	if d.tick(time.Hour); d.find(protocol.Purge) != nil || d.find(protocol.Forget) != nil {
		t.Error("what was confirmed is said again")
	}
	// Whoever may still hear of the first life of the name takes it for none of the next one.
	if r := d.call(submit(t, "a", "r1", "d1")); r.Body.(*protocol.Receipt).Err != nil || !r.Body.(*protocol.Receipt).Changed ||
		r.Generation != 2 || d.find(protocol.Adopt) == nil {
		t.Errorf("the name again: %+v", r)
	}
	d.step(protocol.Message{Kind: protocol.Closed, From: zoneAddress(), Job: "a", Epoch: 1, Generation: 1,
		Body: &protocol.Closing{Verdict: job.Verdict{State: job.Failed}, At: d.now}})
	if d.find(protocol.ClosedAck) == nil || d.find(protocol.Forget) == nil {
		t.Errorf("a verdict of the life that is gone: %+v", d.said)
	}
	d.end("a", 2, job.Finished)
	d.step(protocol.Message{Kind: protocol.Adopted, From: zoneAddress(), Job: "a", Epoch: 1, Generation: 1})
	if d.find(protocol.Forget) == nil {
		t.Error("a zone that has taken the life that is gone home is not told to let go of it")
	}
}

func TestCancelOfAnEndedJob(t *testing.T) {
	d := newDesk(t)
	d.call(submit(t, "a", "r1", "d1"))
	if r := d.call(protocol.Message{Kind: protocol.Cancel, Job: "a",
		Body: &protocol.Cancellation{Request: "c"}}); r.Body.(*protocol.Receipt).Err != nil {
		t.Fatal(r.Body.(*protocol.Receipt).Err)
	}
	d.end("a", 1, job.Cancelled)
	if r := d.call(protocol.Message{Kind: protocol.Cancel, Job: "a",
		Body: &protocol.Cancellation{Request: "c"}}); r.Body.(*protocol.Receipt).Err != nil {
		t.Errorf("the same call again: %v", r.Body.(*protocol.Receipt).Err)
	}
	if r := d.call(protocol.Message{Kind: protocol.Cancel, Job: "a", Body: &protocol.Cancellation{Request: "d"}}); errkind.Of(
		r.Body.(*protocol.Receipt).Err) != errkind.Conflict || !strings.Contains(r.Body.(*protocol.Receipt).Err.Error(),
		"over already: CANCELLED") {
		t.Errorf("another call: %v", r.Body.(*protocol.Receipt).Err)
	}
}

func TestADeadlineThatHasPassed(t *testing.T) {
	d := newDesk(t)
	m := submit(t, "a", "r1", "d1")
	m.Body.(*protocol.Submission).Spec.Deadline = d.now
	if r := d.call(m); errkind.Of(r.Body.(*protocol.Receipt).Err) != errkind.Invalid ||
		!strings.Contains(r.Body.(*protocol.Receipt).Err.Error(), "spec.deadline") {
		t.Errorf("at submission: %v", r.Body.(*protocol.Receipt).Err)
	}
	m.Body.(*protocol.Submission).Spec.Deadline = d.now + 1
	if r := d.call(m); r.Body.(*protocol.Receipt).Err != nil {
		t.Fatal(r.Body.(*protocol.Receipt).Err)
	}
	d.tick(time.Hour)
	if r := d.call(m); r.Body.(*protocol.Receipt).Err != nil || r.Body.(*protocol.Receipt).Changed {
		t.Errorf("a job that is there is the same job, whatever its deadline: %+v", r)
	}
}

// TestOldFactsWaitForNothing: what was forgotten before there were lives was left to the next boot to purge, and its name may
// belong to another job by now.
func TestOldFactsWaitForNothing(t *testing.T) {
	d := newDesk(t)
	old := []protocol.Fact{
		{Kind: protocol.JobAccepted, Job: "a", Epoch: 1, At: 1, Body: &protocol.Acceptance{Spec: spec(t, "a", 100), Zone: "z"}},
		{Kind: protocol.JobClosed, Job: "a", At: 2, Body: &protocol.Final{Verdict: job.Verdict{State: job.Failed}}},
		{Kind: protocol.JobForgotten, Job: "a", Body: &protocol.Forgetting{}},
		{Kind: protocol.JobAccepted, Job: "a", Epoch: 1, At: 3, Body: &protocol.Acceptance{Spec: spec(t, "a", 100), Zone: "z"}},
	}
	for _, f := range old {
		d.g.Apply(f)
	}
	d.facts = old
	var out protocol.Out
	d.g.Recover(d.now, &out)
	if d.said = out.Effects; d.find(protocol.Purge) != nil || d.find(protocol.Adopt) == nil {
		t.Errorf("said %+v", d.said)
	}
	if m := d.find(protocol.Adopt); m != nil && m.Generation != 1 {
		t.Errorf("a job of an old journal lives its %d. life", m.Generation)
	}
	if r := d.call(submit(t, "b", "r", "d")); r.Generation != 2 {
		t.Errorf("the next job has generation %d; want one above all that were forgotten", r.Generation)
	}
}

// TestWhatWasSaidOfAnEarlierLifeIsNotForThisOne: answers about a life before are late, and confirm nothing of the one that is to
// go now, nor whether the one that is here is paused.
func TestWhatWasSaidOfAnEarlierLifeIsNotForThisOne(t *testing.T) {
	d := newDesk(t)
	d.call(submit(t, "a", "r1", "d1"))
	d.end("a", 1, job.Failed)
	if r := d.call(protocol.Message{Kind: protocol.Requeue, Job: "a", Body: &protocol.Requeueing{Request: "q"}}); r.Generation != 2 {
		t.Fatalf("requeued: %+v", r)
	}
	d.step(protocol.Message{Kind: protocol.Adopted, From: zoneAddress(), Job: "a", Epoch: 1, Generation: 2})
	d.call(protocol.Message{Kind: protocol.PauseJob, Job: "a", Body: &protocol.Pause{Request: "p", Paused: true}})
	d.step(protocol.Message{Kind: protocol.PauseJob, From: zoneAddress(), Job: "a", Epoch: 1, Generation: 1,
		Body: &protocol.Pause{Paused: true}})
	if d.tick(2 * time.Second); d.find(protocol.PauseJob) == nil {
		t.Error("that the first life was paused is taken for an answer about the second")
	}
	d.end("a", 2, job.Failed)
	for of := job.Generation(2); of <= 3; of++ {
		replace := submit(t, "a", fmt.Sprint("r", of), fmt.Sprint("d", of))
		replace.Body.(*protocol.Submission).Replace = true
		if r := d.call(replace); r.Generation != of+1 {
			t.Fatalf("replaced: %+v", r)
		}
		d.gone("a", of-1)
		if d.tick(2 * time.Second); d.find(protocol.Purge) == nil || d.find(protocol.Forget) == nil || d.find(protocol.Adopt) != nil {
			t.Errorf("said %+v; want life %d purged and forgotten before the next is sent home", d.said, of)
		}
		d.gone("a", of)
		if d.find(protocol.Adopt) == nil {
			t.Errorf("said %+v; want life %d sent home", d.said, of+1)
		}
		d.end("a", of+1, job.Failed)
	}
}
