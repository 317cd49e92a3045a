package peers

import (
	"math"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm/world"
)

// TestOnlyWhatDoesNotFitSpills: a task that finds its own node free goes no further (Ray, OSDI 2018, section 4.2), so on nodes of one
// slice as many spill as slices are busy: arrivals that come at random see averages (Wolff 1982).
func TestOnlyWhatDoesNotFitSpills(t *testing.T) {
	for _, load := range []int64{200_000, 500_000, 800_000} {
		o := Bare(Spillback(), 4, 100, 1, load)
		o.Network.Delay = 100 * time.Microsecond
		o.From, o.Until = quantity.Instant(20*time.Second), quantity.Instant(120*time.Second)
		c := Play(t, o)
		spilt := 0.
		for i, k := range o.Kind.Messages {
			if k.Name == "assign" {
				spilt = float64(c.Sent[i]) / float64(c.Starts)
			}
		}
		// One that was sent to a node that had just been taken spills again: not many do.
		if used := Used(&c); spilt < used-0.02 || spilt > used*1.35 {
			t.Errorf("load %.1f: %.3f of the tasks were sent on, and %.3f of the slices are busy", float64(load)/1e6, spilt, used)
		}
	}
}

// TestOneDriverFillsTheCluster: what a node has no room for is placed elsewhere, within its zone and beyond: nothing expires although a
// random node is busy nine times in ten.
func TestOneDriverFillsTheCluster(t *testing.T) {
	o := Bare(Spillback(), 4, 100, 4, 900_000)
	o.Flow.Patience, o.Network.Delay = time.Second, 100*time.Microsecond
	o.From, o.Until = quantity.Instant(10*time.Second), quantity.Instant(40*time.Second)
	c := Play(t, o)
	if placed := float64(c.Placed) / float64(c.Arrived); placed < 0.99 || math.Abs(Used(&c)-0.9) > 0.03 {
		t.Errorf("%.4f are placed, %.3f of the slices used; fates %v", placed, Used(&c), c.Fates[world.Expired])
	}
}
