package twin_test

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// vitals has the machine say something of a GPU.
func (s *story) vitals(after time.Duration, v protocol.Vitals) {
	s.sim.At(at(after), protocol.Message{
		Kind: protocol.Checkup, From: protocol.Address{Role: protocol.Executor, ID: string(nodeID)},
		To: protocol.Address{Role: protocol.Node, ID: string(nodeID)}, Body: &v,
	})
}

// TestAJobWhoseGPUFails goes on elsewhere, as often as its GPUs fail, though its own first failure would end it; and on the same GPU once
// that needs nothing.
func TestAJobWhoseGPUFails(t *testing.T) {
	for _, code := range []uint32{79, 48, 95} {
		two := equal(2, 10)
		s := newStory(t, setting{slices: two})
		s.submit(0, with(spec(t, "a", job.Items, 400, time.Second), func(s *job.Spec) { s.Parallelism, s.MaxFailures = 1, 1 }))
		for i, after := range []time.Duration{40 * time.Second, 100 * time.Second} { // the first, and then the one that it has gone to
			s.run(after - time.Second)
			if j := s.job("a"); j.State != job.Running || !strings.HasSuffix(j.Reason, string(two[i].ID)) {
				t.Fatalf("Xid %d: the job is %+v, want it running on %s", code, j, two[i].ID)
			}
			s.vitals(after, protocol.Vitals{Slices: []job.SliceID{two[i].ID}, Errors: []protocol.Xid{{Code: code}}})
			s.run(after + time.Second)
			if v := s.actors.Nodes[0].Node.Slices(s.sim.Now())[i]; v.State != "quarantined" || v.Reason != health.Describe(code) {
				t.Errorf("Xid %d: slice %s is %s: %s", code, v.Slice.ID, v.State, v.Reason)
			}
			j, _ := s.actors.Zones[0].Job(s.sim.Now(), "a")
			if h := j.History[i]; h.Outcome != "node-failed" || h.Detail != "the GPU of "+string(two[i].ID)+" failed: "+
				health.Describe(code) {
				t.Errorf("Xid %d: its subjob ended %s: %s", code, h.Outcome, h.Detail)
			}
		}
		s.run(2 * time.Minute)
		if j := s.job("a"); j.State != job.Waiting || !strings.Contains(j.Reason, health.Describe(code)) {
			t.Errorf("Xid %d: without a GPU the job is %+v, want it waiting, and told why", code, j)
		}
		s.vitals(4*time.Minute, protocol.Vitals{Slices: []job.SliceID{two[1].ID}, Look: &health.Look{Told: true}})
		s.run(20 * time.Minute)
		s.ended(job.Finished, 15*time.Minute, "a")
	}
}
