package host

import (
	"context"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestAJobWithoutACommandIsRefused before anybody else hears of it.
func TestAJobWithoutACommandIsRefused(t *testing.T) {
	h := &Host{}
	for _, command := range [][]string{nil, {}, {""}} {
		s := spec("a")
		s.Launch.Command = command
		if _, err := h.Submit(context.Background(), "r", s, nil); errkind.Of(err) != errkind.Invalid {
			t.Errorf("%q: %v", command, err)
		}
	}
}

// TestAgentsOfAnotherLife are let in: the place of an external job's agent is open again after a requeue, also when the end of
// the last life is of the same batch.
func TestAgentsOfAnotherLife(t *testing.T) {
	s := spec("a")
	s.External = true
	for _, settled := range []bool{false, true} {
		a := &agents{jobs: map[job.ID]*agent{}}
		a.fact(&protocol.Fact{Kind: protocol.JobAccepted, Job: "a", Spec: s, Digest: "d"})
		a.fact(&protocol.Fact{Kind: protocol.JobClosed, Job: "a"})
		if settled {
			if a.settle(); !a.jobs["a"].over {
				t.Error("its agent does not hear that it is over")
			}
		}
		a.fact(&protocol.Fact{Kind: protocol.JobRequeued, Job: "a", Generation: 2})
		if a.settle(); a.jobs["a"].over || a.jobs["a"].digest != "d" {
			t.Errorf("settled before %v: %+v", settled, a.jobs["a"])
		}
	}
}
