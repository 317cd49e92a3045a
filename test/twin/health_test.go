package twin_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// vitals has the machine say something of a GPU.
func (s *story) vitals(after time.Duration, v protocol.Vitals) {
	s.sim.At(at(after), protocol.Message{
		Kind: protocol.Checkup, From: protocol.Address{Role: protocol.Executor, ID: string(nodeID)}, To: protocol.Address{Role: protocol.Node, ID: string(nodeID)}, Body: &v,
	})
}

// TestAJobWhoseGPUFails goes on elsewhere, as often as its GPUs fail, though its own first failure would end it; and on the same GPU once that needs nothing.
func TestAJobWhoseGPUFails(t *testing.T) {
	for _, code := range []uint32{79, 48, 95} {
		two := equal(2, 10)
		s := newStory(t, setting{slices: two})
		s.submit(0, with(spec(t, "a", job.Items, 400, time.Second), func(s *job.Spec) { s.Parallelism, s.MaxFailures = 1, 1 }))
		s.run(30 * time.Second)
		first := s.actors.Nodes[0].Node.Slices(s.sim.Now())
		if first[0].State != "running" {
			t.Fatalf("the job runs on another slice than the first: %+v", first)
		}
		for i := range two { // one after the other, each while the job is there
			after := 40*time.Second + time.Duration(i)*time.Minute
			s.vitals(after, protocol.Vitals{Slices: []job.SliceID{two[i].ID}, Errors: []protocol.Xid{{Code: code}}})
			s.run(after + 500*time.Millisecond)
			if v := s.actors.Nodes[0].Node.Slices(s.sim.Now())[i]; v.State != "quarantined" || v.Reason != health.Describe(code) {
				t.Errorf("Xid %d: slice %s is %s: %s", code, v.Slice.ID, v.State, v.Reason)
			}
			if j := s.job("a"); i == 0 && j.State.Final() {
				t.Fatalf("Xid %d: the job is over: %+v", code, j)
			}
			s.run(after + 30*time.Second)
		}
		if j := s.job("a"); j.State != job.Waiting || j.Pieces != 2 {
			t.Errorf("Xid %d: the job is not waiting after two pieces: %+v", code, j)
		}
		s.vitals(4*time.Minute, protocol.Vitals{Slices: []job.SliceID{two[1].ID}, Look: &health.Look{Told: true}})
		s.run(20 * time.Minute)
		s.ended(job.Finished, 15*time.Minute, "a")
	}
}
