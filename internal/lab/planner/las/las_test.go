package las

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/plannertest"
)

func job(at, run time.Duration, devices int32) plannertest.Job {
	r := &[planner.MaxClasses]time.Duration{run}
	return plannertest.Job{Submit: quantity.Instant(at), Task: planner.Task{Devices: devices, Share: planner.Whole, Classes: 1, Run: r}}
}

// TestWhoHasHadLittleGoesFirst: on one device, with stops for nothing. The lengths are told to nobody.
func TestWhoHasHadLittleGoesFirst(t *testing.T) {
	m := time.Minute
	for _, c := range []struct {
		name string
		jobs []plannertest.Job
		ends []time.Duration
	}{
		{"a new one takes the place of one that has had a quantum", []plannertest.Job{job(0, 100*m, 1), job(20*m, 5*m, 1)},
			[]time.Duration{105 * m, 25 * m}},
		{"and waits for the end of the first quantum", []plannertest.Job{job(0, 100*m, 1), job(10*m, 5*m, 1)},
			[]time.Duration{105 * m, 20 * m}},
		// The first until 15, then the second: at 30 both have had a quantum, and who runs goes on, until 45 as it happens.
		{"of two alike nobody is ahead by more than two quanta", []plannertest.Job{job(0, 30*m, 1), job(0, 30*m, 1)},
			[]time.Duration{60 * m, 45 * m}},
		// The first has had four quanta, and the second would make way with five.
		{"who comes late catches up", []plannertest.Job{job(0, 90*m, 1), job(60*m, 61*m, 1)}, []time.Duration{151 * m, 121 * m}},
		{"and passes by a quantum", []plannertest.Job{job(0, 90*m, 1), job(60*m, 76*m, 1)}, []time.Duration{165 * m, 166 * m}},
	} {
		for i, p := range plannertest.Play(t, Kind(), planner.Options{Cluster: plannertest.OneDevice()}, c.jobs) {
			if got := p.Ended.Sub(0).Round(time.Second); got != c.ends[i] {
				t.Errorf("%s: job %d ends after %v, want %v", c.name, i, got, c.ends[i])
			}
		}
	}
}

// TestServiceIsTimeOfAllDevices: a gang of two has had its quantum after half the time.
func TestServiceIsTimeOfAllDevices(t *testing.T) {
	c := planner.Cluster{Classes: []planner.Class{{Name: "a"}}, Nodes: []planner.Node{{Devices: []uint8{0, 0}}}}
	jobs := []plannertest.Job{job(0, time.Hour, 2), job(time.Minute, time.Minute, 1)}
	if got := plannertest.Play(t, Kind(), planner.Options{Cluster: c}, jobs)[1].Began.Sub(0); got < 7*time.Minute+30*time.Second ||
		got > 7*time.Minute+31*time.Second {
		t.Errorf("it starts after %v, want 7m30s", got)
	}
}
