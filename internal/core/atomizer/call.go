package atomizer

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// FromCall is what the agent of an external job knows of its job and of one window from the call alone, so that it can
// answer with Propose as a built-in job would. What is not for sale counts as committed. It knows nothing of what was
// learned (an agent that has a model of its own sets Learned), and takes it that one more subjob may run and no second.
func FromCall(spec *job.Spec, c *protocol.Call, a *protocol.Advert) (View, Window) {
	v := View{Spec: spec, Running: spec.Parallelism - 1, Learned: &protocol.Learned{MemoryScale: c.Memory}, forSale: c.Left}
	done := int64(0)
	for _, free := range c.Free {
		v.Committed = v.Committed.Add(job.Range{From: done, To: free.From})
		done = free.To
	}
	v.Committed = v.Committed.Add(job.Range{From: done, To: spec.Total})
	if !c.First && spec.Kind == job.Steps { // items restore nothing
		v.Resume = job.Token{Epoch: 1, Seq: 1}
	}
	return v, Window{ID: a.Window, Capacity: a.Capacity, Speed: a.Speed, Start: a.Start, End: a.End, Open: a.Open}
}
