package preempt

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
)

// TestWhoIsStopped: one device, a long task on it, and a short one that comes later.
func TestWhoIsStopped(t *testing.T) {
	run := func(d time.Duration) *[planner.MaxClasses]time.Duration { return &[planner.MaxClasses]time.Duration{d} }
	for _, c := range []struct {
		name  string
		fixed bool
		after time.Duration
		stops bool
	}{
		{"after its first quarter of an hour", false, 20 * time.Minute, true},
		{"not before", false, 10 * time.Minute, false},
		{"not shortly before its end", false, 10*time.Hour - 30*time.Second, false},
		{"never if it is fixed", true, 20 * time.Minute, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Migrate().New(planner.Options{
				Cluster: planner.Cluster{Classes: []planner.Class{{Name: "gpu", Weight: 1000}},
					Nodes: []planner.Node{{Devices: []uint8{0}}}},
				Restore: 20 * time.Second, Checkpoint: 15 * time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			var out planner.Out
			p.Arrive(0, planner.Task{ID: 0, Devices: 1, Share: planner.Whole, Classes: 1, Fixed: c.fixed, Run: run(10 * time.Hour)})
			p.Plan(0, &out)
			now := quantity.Instant(c.after)
			out.Reset()
			p.Arrive(now, planner.Task{ID: 1, Devices: 1, Share: planner.Whole, Classes: 1, Run: run(time.Minute)})
			p.Plan(now, &out)
			if stops := len(out.Decisions) == 1 && out.Decisions[0].Verb == planner.Preempt &&
				out.Decisions[0].Task == 0; stops != c.stops {
				t.Fatalf("decisions %+v, want a stop: %v", out.Decisions, c.stops)
			}
			if !c.stops {
				return
			}
			out.Reset()
			now = now.Add(15 * time.Second)
			p.Leave(now, 0)
			p.Arrive(now, planner.Task{ID: 0, Devices: 1, Share: planner.Whole, Classes: 1, Run: run(9 * time.Hour)})
			p.Plan(now, &out)
			if len(out.Decisions) != 1 || out.Decisions[0].Verb != planner.Start || out.Decisions[0].Task != 1 {
				t.Errorf("decisions %+v once it has left, want the short task to start", out.Decisions)
			}
		})
	}
}
