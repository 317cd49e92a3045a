package config

import (
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Warnings lists settings that are allowed but rarely meant, one sentence each. withFiles: there is a work directory; containers: subjobs
// are started from images; now is the moment of submission.
func Warnings(s *job.Spec, withFiles, containers bool, now time.Time) []string {
	var out []string
	if left, least := s.Deadline.Time().Sub(now), leastTime(s); s.Deadline != 0 && s.Deadline != quantity.Never && least > left {
		what := "what it declares takes at least"
		if s.Kind == job.Rigid {
			what = "its walltime is"
		}
		out = append(out, fmt.Sprintf("the deadline is in %s, and %s %s on a slice of speed 1: "+
			"at the deadline it ends EXPIRED, with what it has committed by then",
			left.Round(time.Second), what, least.Round(time.Second)))
	}
	if s.Kind == job.Rigid && s.Walltime == 0 {
		out = append(out, "a rigid job without walltime: nothing can be sold behind it on its slice; give rigid.walltime")
	}
	measured := s.Untimed() || s.Open() // what they cost is measured with a step's time, or nobody can say
	if s.Kind == job.Steps && s.Restore == 0 && s.Checkpoint == 0 && !measured {
		out = append(out, "restore and checkpoint are 0: if they cost time, say so, or the subjobs will be too short to be worth it")
	}
	if s.Launch.Image != "" && !containers {
		out = append(out, fmt.Sprintf("the image %s is ignored: this daemon starts processes on its machine, and no containers",
			s.Launch.Image))
	}
	if !withFiles && s.Launch.Image == "" && strings.HasPrefix(s.Launch.Command[0], "./") {
		out = append(out, fmt.Sprintf("the command is %s but no workdir comes along; give workdir: .", s.Launch.Command[0]))
	}
	if s.Launch.WarnBefore > 0 && s.TauMin > 0 && s.Launch.WarnBefore >= s.TauMin {
		out = append(out, fmt.Sprintf("the warning comes %s before the end, and a subjob may be as short as %s: some will be warned at "+
			"once", s.Launch.WarnBefore, s.TauMin))
	}
	return out
}

// leastTime is what a job's own figures say that it takes, on slices of speed 1 and on as many as it may use.
func leastTime(s *job.Spec) time.Duration {
	if s.Kind == job.Rigid {
		return s.Walltime
	}
	if s.Open() {
		return 0
	}
	at := max(1, int64(s.Parallelism))
	return time.Duration(quantity.MulDiv(int64(s.PerUnit), s.Total, at))
}
