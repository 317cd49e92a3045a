package home

import (
	"reflect"
	"testing"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestAJobThatOnlyWaitsIsSaidAsItCame: a snapshot of a million of them has no record for each.
func TestAJobThatOnlyWaitsIsSaidAsItCame(t *testing.T) {
	fresh := func() *desk {
		z := newDesk(Config{})
		return z
	}
	z := fresh()
	came := protocol.Fact{Kind: protocol.HomeTaken, Actor: self, Job: "j", Epoch: 3, Generation: 2, At: 7,
		Body: &protocol.Taking{Spec: &job.Spec{Queue: "q", Kind: job.Items, Total: 1,
			Grid: 1, Parallelism: 1}}}
	z.Apply(came)
	facts := capture.All(z) // its queue is first
	if len(facts) != 2 || !reflect.DeepEqual(facts[1], came) {
		t.Errorf("a job that waits is said as %+v", facts)
	}
	for _, f := range []protocol.Fact{
		{Kind: protocol.HomePaused, Job: "j", Body: &protocol.JobPause{Paused: true}},
		{Kind: protocol.Ended, Job: "j", At: 9, Body: &protocol.Final{Verdict: job.Verdict{State: job.Cancelled}}},
	} {
		z.Apply(f)
		again := fresh()
		for _, said := range capture.All(z) {
			again.Apply(said)
		}
		if again.Digest() != z.Digest() {
			t.Errorf("after %+v what is said folds to another state", f)
		}
	}
}

// TestARestartWithMuchUnpublishedOutput asks about it in steps that are bounded, which follow each other at once, and about each
// job once until it is time to repeat that.
func TestARestartWithMuchUnpublishedOutput(t *testing.T) {
	const jobs = 1000
	z := ended(t, jobs, nil, protocol.Publication{Token: job.Token{Epoch: 1, Seq: 1}, Node: "n", Range: job.Range{To: 1}})
	now := quantity.Instant(2e9)
	var out protocol.Out
	z.Recover(now, &out)
	asked := map[job.ID]int{}
	for steps := 1; ; steps++ {
		list := told(&out, protocol.ResultAck)
		for _, m := range list {
			asked[m.Job]++
		}
		if len(list) > 256 || len(asked) < jobs && len(list) == 0 {
			t.Fatalf("step %d asks about %d jobs, %d were asked about before", steps, len(list), len(asked))
		}
		if len(asked) == jobs {
			break
		}
		if z.woken > now {
			t.Fatalf("after step %d it is to be woken at %d", steps, z.woken)
		}
		out.Reset()
		z.Step(now, protocol.Message{Kind: protocol.Tick}, &out)
	}
	for id, n := range asked {
		if n != 1 {
			t.Errorf("%s was asked about %d times", id, n)
		}
	}
	out.Reset()
	z.Step(now, protocol.Message{Kind: protocol.Tick}, &out)
	if again := told(&out, protocol.ResultAck); len(again) > 0 {
		t.Errorf("%d are asked about again at once", len(again))
	}
}
