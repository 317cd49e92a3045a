package apitest

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// storm is a node in the midst of one, and one without a watcher.
func storm(slice job.SliceID) []status.Airlock {
	const gib = quantity.Amount(1) << 30
	severe := status.MemoryReading{Level: "severe", Used: 30 * gib, Capacity: 32 * gib, Growth: 200 << 20, Share: 937, Stall: 12,
		Exhausted: 10 * time.Second}
	calm := status.MemoryReading{Level: "calm", Used: 20 * gib, Capacity: 32 * gib, Share: 625}
	low := status.SurvivalPlace{Class: "lasting", Value: 1, Ran: 50 * time.Second, Footprint: 6 * gib, Planned: 8 * gib}
	high := status.SurvivalPlace{Class: "lasting", Value: 1, Priority: 5, Ran: 9 * time.Minute, Footprint: 12 * gib}
	spared := job.Token{Epoch: 1, Seq: 40}
	step := func(at time.Duration, n int64, what, why string, m status.MemoryReading) status.AirlockStep {
		s := status.AirlockStep{At: At(at), Decision: n, Node: "node-1", Job: "count-words", Token: job.Token{Epoch: 1, Seq: 43},
			Slice: slice, Step: what, Why: why, Memory: m, Place: low}
		if m.Level == severe.Level {
			s.Deficit, s.Covered, s.Relief = 3*gib, 6*gib, 6*gib
			s.Spared, s.SparedToken, s.SparedPlace, s.Below = "train", spared, high, "its priority is 0, the other's 5"
		}
		return s
	}
	went := step(-20*time.Second, 2, "recovered", "there is room again", calm)
	went.Stood, went.Relief = 10500*time.Millisecond, 2*gib
	gone := status.AirlockStep{At: At(-40 * time.Second), Node: "node-1", Job: "gang", Token: job.Token{Epoch: 1, Seq: 39}, Slice: slice,
		Step: "ended", Why: "stopped", Memory: severe, Stood: 3 * time.Second, Progress: 7}
	return []status.Airlock{
		{
			Node: "node-1", Guard: status.Guard{Level: "full", Kind: "cgroup", Why: "control groups freeze, and 8 GiB of swap"},
			Strain: status.Strain{
				At: At(-20 * time.Millisecond), MemoryReading: severe, Calm: gib * 32 * 85 / 100, Severe: gib * 32 * 92 / 100,
				Emergency: gib * 32 * 97 / 100, Room: 5 * gib, Parked: 2 * gib,
				Standing: 1, Suspended: 2, Recovered: 1, Reclaimed: 1, Decisions: 4, Stood: 15 * time.Second, OverLine: 31 * time.Second,
			},
			Watched: true, Short: true, Timer: 30 * time.Second, Entries: 3, Order: "class",
			Stands: []status.Stand{{Job: "count-words", Token: job.Token{Epoch: 1, Seq: 43}, Slice: slice, State: "suspended",
				Since: At(-4 * time.Second), Until: At(26 * time.Second), Times: 2,
				Resident: 4 * gib, Parked: 2 * gib, Why: "memory is short: severe: 30720 of 32768 MiB used (93.7%)", Place: low}},
			Steps: []status.AirlockStep{gone, step(-31*time.Second, 1, "suspended", "memory is short", severe), went,
				step(-4*time.Second, 4, "suspended", "memory is short", severe)},
			Forgotten: 3,
		},
		{Node: "node-2", Guard: status.Guard{Level: "off", Why: "key airlock of the daemon's file says so"},
			Strain: status.Strain{Old: true}, Timer: 30 * time.Second, Entries: 3, Order: "class"},
	}
}

// airlockSteps are the steps that were taken with a job.
func airlockSteps(list []status.Airlock, name job.ID) (out []status.AirlockStep) {
	for i := range list {
		for _, s := range list[i].Steps {
			if s.Job == name {
				out = append(out, s)
			}
		}
	}
	return out
}
