package sim

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/drive/workload"
)

// longest keeps sums of a few times within 63 bits: 146 years.
const longest = time.Duration(1<<62 - 1)

// truth is how a piece of a job really goes on a slice: at its true run time and speed there, yielding before its lease's
// end, killed where a phase's true peak passes the slice's memory.
func truth(j *workload.Job, attempt uint64, m *protocol.Message, on *protocol.Slice) Behaviour {
	speed := max(1, speedOn(j, on))
	b := Behaviour{Yields: true, Restore: before(j, !m.Plan.Resume.Zero())}
	b.PerUnit = min(longest, max(1, time.Duration(quantity.MulDiv(int64(j.Work), 1000, speed*m.Spec.Total))))
	if unit, does := outgrows(&j.Memory, units(j, m.Spec, m.Range.From), attempt, on.Capacity[trp.Memory]); does {
		b.Fails = job.MemoryKilled
		n, of := unit-m.Range.From, int64(1)
		if m.Spec.Total != j.Units { // a rigid job is one unit to the core
			n, of = unit, j.Units
		}
		b.FailAfter = b.Restore + time.Duration(quantity.MulDiv(n, int64(b.PerUnit), of))
	}
	return b
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

// units turns units of a spec into those of the job: a rigid job is one unit to the core.
func units(j *workload.Job, spec *job.Spec, n int64) int64 {
	if spec.Total == j.Units {
		return n
	}
	return quantity.MulDiv(n, j.Units, spec.Total)
}

// work is that of the units before n of a spec: differences add up to the whole job's exactly.
func work(j *workload.Job, spec *job.Spec, n int64) time.Duration {
	return time.Duration(quantity.MulDiv(int64(j.Work), n, spec.Total))
}
