package all_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
)

// OneDevice is a cluster of a single device.
func OneDevice() planner.Cluster {
	return planner.Cluster{Classes: []planner.Class{{Name: "a", Weight: planner.Whole}}, Nodes: []planner.Node{{Devices: []uint8{0}}}}
}

// Singles draws up to most jobs of one device, with whole seconds of run and weights up to heaviest, that come up to spread
// seconds apart.
func Singles(t *rapid.T, most, heaviest, spread int) []Job {
	jobs := make([]Job, rapid.IntRange(1, most).Draw(t, "jobs"))
	at := quantity.Instant(0)
	for i := range jobs {
		at = at.Add(time.Duration(rapid.IntRange(0, spread).Draw(t, "later")) * time.Second)
		run := new([planner.MaxClasses]time.Duration)
		run[0] = time.Duration(rapid.IntRange(1, 9).Draw(t, "run")) * time.Second
		jobs[i] = Job{Submit: at, Task: planner.Task{Devices: 1, Share: planner.Whole, Classes: 1,
			Weight: int64(rapid.IntRange(1, heaviest).Draw(t, "weight")), Run: run}}
	}
	return jobs
}

// Optimal plays jobs that are all there from the start on one device, and wants no order of them to have a smaller sum of
// weight x completion.
func Optimal(t *testing.T, kind planner.Kind, heaviest int) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := Singles(t, 6, heaviest, 0)
		sum := int64(0)
		for i, p := range Play(t, kind, planner.Options{Cluster: OneDevice()}, jobs) {
			sum += jobs[i].Weight * int64(p.Ended/quantity.Instant(time.Second))
		}
		best := int64(1 << 62)
		orders(len(jobs), func(order []int) {
			now, cost := int64(0), int64(0)
			for _, i := range order {
				now += int64(jobs[i].Run[0] / time.Second)
				cost += jobs[i].Weight * now
			}
			best = min(best, cost)
		})
		if sum != best {
			t.Fatalf("it has a sum of weight x completion of %d s, the best order has %d s", sum, best)
		}
	})
}

// orders visits every permutation of n.
func orders(n int, visit func([]int)) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var place func(k int)
	place = func(k int) {
		if k == n {
			visit(order)
			return
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			place(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	place(0)
}
