package main

import (
	"context"
	"fmt"
	"runtime"

	"sluice.dev/sluice/bench/program"
	"sluice.dev/sluice/bench/sample"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
)

// taken is the processor time that the steps of one actor took, in microseconds, and what subjobs cost there.
type taken struct {
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Steps  int     `json:"steps"`
	// PerSold is the time of all its steps by subjob that was sold, PerJob by job that was submitted.
	PerSold float64 `json:"perSold"`
	PerJob  float64 `json:"perJob"`
}

// inside is what a world that ran in a process of its own has shown. A process of its own: what one has left in memory would
// slow the next.
type inside struct {
	Gate, Zone, Node taken
	Sold             int     `json:"sold"`
	SetUp            string  `json:"setUp"`
	HeapPerJob       float64 `json:"heapPerJob,omitempty"`
	GaveUp           string  `json:"gaveUp,omitempty"`
}

// runWorld sets a park up, lets it become busy and watches it until so many subjobs are sold. What can't be had before ctx is done
// is given up; what was watched until then counts if it is a tenth.
func runWorld(ctx context.Context, q question) inside {
	w, err := newWorld(ctx, q)
	if err == nil {
		err = w.open(ctx)
	}
	if err == nil {
		err = w.sell(ctx, q.Slices)
	}
	return w.watch(ctx, q, err)
}

// runNode is the same for one node with all the slices, and a salesman in place of the zone.
func runNode(ctx context.Context, q question) inside {
	w := emptyWorld()
	all, err := specs()
	w.add(protocol.Address{Role: protocol.Zone, ID: zoneID}, &salesman{specs: all, draw: prng.New(seed, 5), sites: map[job.SliceID]*site{}})
	w.nodes(1, q.Slices)
	if err == nil {
		err = w.recover(ctx)
	}
	if err == nil {
		err = w.open(ctx)
	}
	if err == nil {
		err = w.sell(ctx, q.Slices)
	}
	return w.watch(ctx, q, err)
}

// watch looks at what follows, unless setting up has failed.
func (w *world) watch(ctx context.Context, q question, err error) (r inside) {
	r.SetUp = round(used()).String() + " of processor time"
	if err != nil {
		return inside{GaveUp: fmt.Sprintf("gave up setting up after %s: %s", r.SetUp, firstLine(err))}
	}
	runtime.GC() // what setting up has left is nothing that a subjob costs
	w.watched, w.clock = true, newStopwatch()
	w.cold = make([]byte, q.Cold<<20)
	for i := range w.cold {
		w.cold[i] = 1 // else all of it is one page of zeros
	}
	before, submitted := w.sold, w.submitted
	err = program.Profiled(q.Profile, func() error { return w.sell(ctx, q.Sold) })
	r.Sold = w.sold - before
	if r.Sold < max(1, q.Sold/10) {
		return inside{GaveUp: fmt.Sprintf("gave up after %s, %d of %d subjobs sold: %v", round(used()), r.Sold, q.Sold, err)}
	}
	for role, to := range map[protocol.Role]*taken{protocol.Gate: &r.Gate, protocol.Zone: &r.Zone, protocol.Node: &r.Node} {
		v := sample.Ordered(w.took[role])
		if len(v) == 0 {
			continue
		}
		sum := 0.0
		for _, t := range v {
			sum += t
		}
		*to = taken{Median: sample.Median(v), P99: sample.Quantile(v, 99), Steps: len(v), PerSold: sum / float64(r.Sold),
			PerJob: sum / float64(max(1, w.submitted-submitted))}
	}
	return r
}
