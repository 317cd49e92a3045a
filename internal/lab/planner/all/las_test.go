package all_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/preempt"
)

func lasJob(at, run time.Duration, devices int32) Job {
	r := &[planner.MaxClasses]time.Duration{run}
	return Job{Submit: quantity.Instant(at), Task: planner.Task{Devices: devices, Share: planner.Whole, Classes: 1, Run: r}}
}

// TestWhoHasHadLittleGoesFirst: on one device, with stops for nothing. The lengths are told to nobody.
func TestWhoHasHadLittleGoesFirst(t *testing.T) {
	m := time.Minute
	for _, c := range []struct {
		name string
		jobs []Job
		ends []time.Duration
	}{
		{"a new one takes the place of one that has had a quantum", []Job{lasJob(0, 100*m, 1), lasJob(20*m, 5*m, 1)},
			[]time.Duration{105 * m, 25 * m}},
		{"and waits for the end of the first quantum", []Job{lasJob(0, 100*m, 1), lasJob(10*m, 5*m, 1)},
			[]time.Duration{105 * m, 20 * m}},
		// The first until 15, then the second: at 30 both have had a quantum, and who runs goes on, until 45 as it happens.
		{"of two alike nobody is ahead by more than two quanta", []Job{lasJob(0, 30*m, 1), lasJob(0, 30*m, 1)},
			[]time.Duration{60 * m, 45 * m}},
		// The first has had four quanta, and the second would make way with five.
		{"who comes late catches up", []Job{lasJob(0, 90*m, 1), lasJob(60*m, 61*m, 1)}, []time.Duration{151 * m, 121 * m}},
		{"and passes by a quantum", []Job{lasJob(0, 90*m, 1), lasJob(60*m, 76*m, 1)}, []time.Duration{165 * m, 166 * m}},
	} {
		for i, p := range Play(t, preempt.LAS(), planner.Options{Cluster: OneDevice()}, c.jobs) {
			if got := p.Ended.Sub(0).Round(time.Second); got != c.ends[i] {
				t.Errorf("%s: job %d ends after %v, want %v", c.name, i, got, c.ends[i])
			}
		}
	}
}

// TestServiceIsTimeOfAllDevices: a gang of two has had its quantum after half the time.
func TestServiceIsTimeOfAllDevices(t *testing.T) {
	c := planner.Cluster{Classes: []planner.Class{{Name: "a"}}, Nodes: []planner.Node{{Devices: []uint8{0, 0}}}}
	jobs := []Job{lasJob(0, time.Hour, 2), lasJob(time.Minute, time.Minute, 1)}
	if got := Play(t, preempt.LAS(), planner.Options{Cluster: c}, jobs)[1].Began.Sub(0); got < 7*time.Minute+30*time.Second ||
		got > 7*time.Minute+31*time.Second {
		t.Errorf("it starts after %v, want 7m30s", got)
	}
}
