package history

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/mig"
	"sluice.dev/sluice/internal/core/quantity"
)

// Level is how busy a device was when it was looked at.
type Level uint8

// The levels. Unmeasured: the sample does not say.
const (
	Unmeasured Level = iota
	Idle
	Busy
)

// Gauge is a device that is measured.
type Gauge struct {
	// Node as whoever measures calls it, short or full.
	Node string
	// Index of the GPU in its node, from 0. Slice is empty for a whole one; otherwise Profile is that of MIG, and Slice tells those of
	// one GPU apart.
	Index          int32
	Profile, Slice string
}

// Sample of a gauge. MiB of memory in use, or NoMemory.
type Sample struct {
	At    quantity.Instant
	MiB   int32
	Level Level
}

// NoMemory of a sample that does not say how much is used.
const NoMemory int32 = -1

// Quiet is below what the share of time in which an engine was active counts as idle: a thousandth is nobody's work.
const Quiet = .001

// gauges are what was measured.
type gauges struct {
	number map[Gauge]int
	all    []gauge
	// models of whole devices by node.
	models map[string]string
}

type gauge struct {
	Gauge
	samples []Sample
	// settled is how many there were when they were put in order last.
	settled int
}

// settle puts samples in order, one of each instant.
func (g *gauge) settle() {
	slices.SortFunc(g.samples, func(x, y Sample) int { return cmp.Compare(x.At, y.At) })
	out := g.samples[:0]
	for _, s := range g.samples {
		if n := len(out); n > 0 && out[n-1].At == s.At {
			out[n-1].Level, out[n-1].MiB = max(out[n-1].Level, s.Level), max(out[n-1].MiB, s.MiB)
			continue
		}
		out = append(out, s)
	}
	g.samples, g.settled = out, len(out)
}

// period is the most frequent distance of two samples, to the second above; 0 where there are fewer.
func (g *gauge) period() (period time.Duration) {
	count := map[time.Duration]int{}
	for i := 1; i < len(g.samples); i++ {
		d := (g.samples[i].At.Sub(g.samples[i-1].At) + time.Second - 1).Truncate(time.Second)
		count[d]++
		if n := count[d]; n > count[period] || n == count[period] && d < period {
			period = d
		}
	}
	return period
}

// each calls with two samples that follow each other, if none is missing between them.
func (g *gauge) each(visit func(x, y Sample)) {
	most := g.period()*5/2 + time.Second
	for i := 1; i < len(g.samples); i++ {
		if x, y := g.samples[i-1], g.samples[i]; y.At.Sub(x.At) <= most {
			visit(x, y)
		}
	}
}

// use is what the samples say. What is between two counts as idle or busy if both are.
func (g *gauge) use() *Use {
	u := &Use{}
	g.each(func(x, y Sample) {
		if x.Level == Unmeasured || y.Level == Unmeasured {
			return
		}
		u.Covered = u.Covered.With(x.At, y.At)
		switch {
		case x.Level == Idle && y.Level == Idle:
			u.Idle = u.Idle.With(x.At, y.At)
		case x.Level == Busy && y.Level == Busy:
			u.Busy = u.Busy.With(x.At, y.At)
		}
	})
	return u
}

// tells says whether a gauge has told how busy its device was.
func (g *gauge) tells() bool {
	return slices.ContainsFunc(g.samples, func(s Sample) bool { return s.Level != Unmeasured })
}

// says is whether it has told anything of its device, be it memory in use.
func (g *gauge) says() bool {
	return g.tells() || slices.ContainsFunc(g.samples, func(s Sample) bool { return s.MiB != NoMemory })
}

// byDevice orders gauges by node, and within one as drivers count devices.
func byDevice(x, y gauge) int {
	return cmp.Or(cmp.Compare(x.Node, y.Node), cmp.Compare(x.Index, y.Index), cmp.Compare(x.Profile, y.Profile),
		cmp.Compare(len(x.Slice), len(y.Slice)), cmp.Compare(x.Slice, y.Slice))
}

// kind of the devices of a gauge.
func (g *gauges) kind(x *gauge) string {
	if x.Slice != "" {
		if profile, ok := mig.Canonical(x.Profile); ok {
			return profile
		}
		return x.Profile
	}
	return cmp.Or(g.models[x.Node], untyped)
}
