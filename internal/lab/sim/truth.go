package sim

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/workload"
)

// longest keeps sums of a few times within 63 bits: 146 years.
const longest = time.Duration(1<<62 - 1)

// truth is how a piece of a job really goes on its slices: at its true run time and the speed of the slowest, yielding
// before its lease's end, killed where a phase's true peak passes the memory of the smallest.
func truth(j *workload.Job, attempt int64, m *protocol.Message, on []place) Behaviour {
	speed, capacity := int64(0), on[0].slice.Capacity[trp.Memory]
	for i := range on {
		if v := speedOn(j, on[i].slice); i == 0 || v < speed {
			speed = v
		}
		capacity = min(capacity, on[i].slice.Capacity[trp.Memory])
	}
	b := Behaviour{Yields: true, Restore: before(j, !m.Body.(*protocol.Work).Plan.Resume.Zero())}
	b.PerUnit, b.Saves = perUnit(j, m.Body.(*protocol.Work).Spec.Total, speed), j.Saves
	from, to := j.Span(m.Body.(*protocol.Work).Range.From, m.Body.(*protocol.Work).Spec.Total)
	if _, reached := j.Memory.Run(from, to, attempt, capacity); reached < to {
		b.Fails, b.FailAfter = job.MemoryKilled, b.Restore+
			time.Duration(quantity.MulDiv(reached-from, int64(b.PerUnit)*m.Body.(*protocol.Work).Spec.Total, j.Units))
		if j.Saves > 0 { // all that lie before the phase are left, also one where it begins
			b.FailAfter += time.Duration((reached-from)/j.Saves) * m.Body.(*protocol.Work).Spec.Checkpoint
		}
	}
	return b
}

// perUnit is the true time of one of so many units that a job has, where it runs at a speed in parts per thousand. Rounding
// adds less than a nanosecond to each.
func perUnit(j *workload.Job, units, speed int64) time.Duration {
	return min(longest/time.Duration(units), max(1, time.Duration(quantity.MulDiv(int64(j.Work), 1000, max(1, speed)*units))))
}

// speedOn is how fast a job truly runs on a slice, in parts per thousand.
func speedOn(j *workload.Job, on *protocol.Slice) int64 {
	for i := range j.Speeds {
		if j.Speeds[i].Profile == on.Profile {
			return j.Speeds[i].Permille
		}
	}
	return on.Speed
}

// before is what passes before a run's first unit. A rigid job's run time is counted from the start of its process.
func before(j *workload.Job, resumes bool) (d time.Duration) {
	if j.Kind != job.Rigid {
		d = j.Startup
	}
	if resumes {
		d += j.Restore
	}
	return d
}

// worth is the work of the units before n of so many: differences add up to the whole job's exactly.
func worth(j *workload.Job, n, units int64) time.Duration {
	return time.Duration(quantity.MulDiv(int64(j.Work), n, units))
}
