package apitest

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
)

// Reclaimed is a Pod that a slice is given back to, one that waits, and what was decided for the first about subjobs of two jobs.
func Reclaimed() status.Reclaims {
	const slice, other = job.SliceID("node-1/0/3g.40gb"), job.SliceID("node-1/0/1g.10gb")
	token := job.Token{Epoch: 1, Seq: 43}
	step := func(name job.ID, t job.Token, on job.SliceID, what, why string, end time.Duration) status.ReclaimStep {
		return status.ReclaimStep{At: At(-5 * time.Second), Node: "node-1", Wish: "uid-1", Who: "pod ml/serve-0", Job: name, Generation: 1,
			Token: t, Slice: on, Step: what, Why: why, End: At(end)}
	}
	return status.Reclaims{
		Wishes: []status.Wish{
			{ID: "uid-1", Who: "pod ml/serve-0", Node: "node-1", Since: At(-20 * time.Second), State: "kept",
				Why: "a place is kept on node-1: what runs on node-1/0/3g.40gb stops, which loses 1m0s of work and 9m0s of sold time; " +
					"nothing else that makes room for it loses less work",
				Machine: "node-1", Devices: []string{"gpu.example/node-1/gpu-0-mig-3g"}, Slices: []job.SliceID{slice},
				At:      At(25 * time.Second),
				Subjobs: []status.WishSubjob{{Job: "count-words", Token: token, Slice: slice, End: At(25 * time.Second)}},
				Lost:    time.Minute, Left: 9 * time.Minute},
			{ID: "uid-2", Group: "workload-7", Who: "pod ml/train-3", Node: "node-1", Since: At(-time.Second), State: "no-room",
				Why:   "nothing runs that could be stopped for it",
				Until: At(9 * time.Second)},
		},
		Steps: []status.ReclaimStep{
			step("count-words", token, slice, "truncated", "nothing else that makes room for it loses less work", 25*time.Second),
			step("train", job.Token{Epoch: 1, Seq: 40}, other, "spared",
				"stopping it would lose 5m0s of work and 2m0s of sold time, and stopping what runs on node-1/0/3g.40gb (node-1) loses "+
					"1m0s of work and 9m0s of sold time", time.Hour),
		},
	}
}

// reclaimSteps are those about a job's subjobs.
func reclaimSteps(list []status.ReclaimStep, name job.ID) (out []status.ReclaimStep) {
	for _, s := range list {
		if s.Job == name {
			out = append(out, s)
		}
	}
	return out
}
