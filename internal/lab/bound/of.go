package bound

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/workload"
)

// Of is a job of a workload as the bounds see it. It runs where its declared profile is safe at its theta, as every
// mechanism must keep to: each phase of a divisible job for itself, a rigid job as a whole. Its work is the true one.
func Of(j *workload.Job, s *job.Spec, classes []Class) Job {
	b := Job{Submit: j.Submit, Width: s.Parallelism, Whole: s.Kind == job.Rigid}
	if b.Whole {
		b.Width = s.Slices
	}
	work := time.Duration(quantity.MulDiv(int64(j.Work), int64(j.Slices), 1))
	from := int64(0)
	for i, to := range s.Safe.Bounds {
		p := Part{Work: time.Duration(quantity.MulDiv(int64(work), to-from, s.Total))}
		for c, class := range classes {
			if s.Safe.Least[i][0] <= class.Memory {
				p.Speeds[c] = s.SpeedOn(class.Name, class.Speed)
			}
		}
		b.Parts = append(b.Parts, p)
		from = to
	}
	return b
}
