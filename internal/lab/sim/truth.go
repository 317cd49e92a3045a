package sim

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/workload"
)

// truth is how a piece of a job really goes on its slices: at its true run time and the speed of the slowest, yielding
// before its lease's end, killed where a phase's true peak passes the memory of the smallest.
func truth(j *workload.Job, attempt int64, m *protocol.Message, on []place) Behaviour {
	speed, capacity := int64(0), on[0].slice.Capacity[trp.Memory]
	for i := range on {
		if v := j.SpeedOn(on[i].slice.Profile, on[i].slice.Speed); i == 0 || v < speed {
			speed = v
		}
		capacity = min(capacity, on[i].slice.Capacity[trp.Memory])
	}
	b := Behaviour{Yields: true, Restore: j.Before(!m.Body.(*protocol.Work).Plan.Resume.Zero()), Startup: j.Before(false)}
	b.PerUnit, b.Saves = j.PerUnit(m.Body.(*protocol.Work).Spec.Total, speed), j.Process.Saves
	from, to := j.Span(m.Body.(*protocol.Work).Range.From, m.Body.(*protocol.Work).Spec.Total)
	if _, reached := j.Memory.Run(from, to, attempt, capacity); reached < to {
		b.Fails, b.FailAfter = job.MemoryKilled, b.Restore+
			time.Duration(quantity.MulDiv(reached-from, int64(b.PerUnit)*m.Body.(*protocol.Work).Spec.Total, j.Units))
		if j.Process.Saves > 0 { // all that lie before the phase are left, also one where it begins
			b.FailAfter += time.Duration((reached-from)/j.Process.Saves) * m.Body.(*protocol.Work).Spec.Checkpoint
		}
	}
	return b
}
