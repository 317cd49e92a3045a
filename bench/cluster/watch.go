package main

import (
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/bench/sample"
	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/zone"
)

// watch is how long an actor's steps took, by the clock: what else the machine does is in it.
type watch struct {
	name string
	mu   sync.Mutex
	took []float64
}

func (w *watch) time(step func()) {
	begin := time.Now()
	step()
	ms := sample.Milliseconds(time.Since(begin))
	w.mu.Lock()
	w.took = append(w.took, ms)
	w.mu.Unlock()
}

// tell prints what was timed since it was last told.
func (w *watch) tell() {
	w.mu.Lock()
	took := w.took
	w.took = nil
	w.mu.Unlock()
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	fmt.Printf("  %-5s %8d steps, ms: p50 %.3f, p99 %.3f, p99.9 %.3f, longest %.1f\n", w.name, len(took), sample.Median(took),
		sample.Quantile(took, 99),
		took[max(0, (len(took)*999+999)/1000-1)], took[len(took)-1])
}

// The actors as they are, timed. What a driver asks of an actor besides is found in them still.
type (
	timedGate struct {
		*gate.Gate
		w *watch
	}
	timedZone struct {
		*zone.Zone
		w *watch
	}
	timedNode struct {
		*node.Node
		w *watch
	}
)

func (t timedGate) Step(now quantity.Instant, m protocol.Message, out *protocol.Out) {
	t.w.time(func() { t.Gate.Step(now, m, out) })
}

func (t timedZone) Step(now quantity.Instant, m protocol.Message, out *protocol.Out) {
	t.w.time(func() { t.Zone.Step(now, m, out) })
}

func (t timedNode) Step(now quantity.Instant, m protocol.Message, out *protocol.Out) {
	t.w.time(func() { t.Node.Step(now, m, out) })
}

// timed puts watches around the actors of a set that has one of each.
func (c *cluster) timed(set actor.Set) actor.Set {
	set.Gates[0].Gate = timedGate{set.Gates[0].Gate.(*gate.Gate), &c.gate}
	set.Zones[0].Zone = timedZone{set.Zones[0].Zone.(*zone.Zone), &c.zone}
	set.Nodes[0].Node = timedNode{set.Nodes[0].Node.(*node.Node), &c.node}
	return set
}

// memory is what this process has resident at most so far, and what of its heap is live, in MiB.
func memory() (peak, live float64) {
	debug.FreeOSMemory()
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &use); err != nil {
		return 0, 0 // there is such a call on every Linux
	}
	return float64(use.Maxrss) / 1024, float64(heap[0].Value.Uint64()) / (1 << 20)
}
