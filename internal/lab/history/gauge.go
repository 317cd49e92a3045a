package history

import (
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/quantity"
)

const (
	homelessGauge  = "a measured node that the log does not name"
	gaugeLeftOut   = "its samples were left out"
	ambiguousGauge = "a measured node whose short name several nodes have"
)

// Measure gives samples of a gauge. Several of one instant are one: each may say what others don't.
func (m *Samples) Measure(g Gauge, samples ...Sample) {
	i, ok := m.gauges.number[g]
	if !ok {
		i = len(m.gauges.all)
		if m.gauges.number == nil {
			m.gauges.number, m.gauges.models = map[Gauge]int{}, map[string]string{}
		}
		m.gauges.number[g] = i
		m.gauges.all = append(m.gauges.all, gauge{Gauge: g})
	}
	of := &m.gauges.all[i]
	of.samples = append(of.samples, samples...)
	const slack = 1 << 16 // of several metrics each may have a sample of an instant, which are one when they are in order
	if len(of.samples) > 2*of.settled+slack {
		of.settle()
	}
}

// Model says what a measured node's devices are.
func (m *Samples) Model(node, model string) {
	if m.gauges.models == nil {
		m.gauges.number, m.gauges.models = map[Gauge]int{}, map[string]string{}
	}
	if model > m.gauges.models[node] {
		m.gauges.models[node] = model
	}
}

// counts are how many devices of a kind were measured, by node.
type counts map[string]map[string]int32

func (c counts) add(node, kind string) {
	if c[node] == nil {
		c[node] = map[string]int32{}
	}
	c[node][kind]++
}

// tell describes the nodes.
func (c counts) tell(b *Book) {
	for _, name := range slices.Sorted(maps.Keys(c)) {
		row := NodeRow{Name: name}
		for _, kind := range slices.Sorted(maps.Keys(c[name])) {
			row.Devices = append(row.Devices, Part{b.Kind([]byte(kind)), c[name][kind], 1000})
		}
		b.Tell(row)
	}
}

// alone makes a log of what was measured, if there is no other: a device is held while it is busy or has memory in use.
func (m *Samples) alone() {
	all := m.gauges.all
	m.book.Assume("there is no scheduler's log: a device is taken as held from sample to sample where its utilization is above 0 at " +
		"either, or its memory more than 64 MiB above the least that it was seen with (of at most 1 GiB), and as free otherwise")
	recorded, kinds := map[string]Spans{}, counts{}
	for i := range all {
		g := &all[i]
		if !g.says() {
			continue
		}
		kinds.add(g.Node, m.gauges.kind(g))
		g.each(func(x, y Sample) { recorded[g.Node] = recorded[g.Node].With(x.At, y.At) })
	}
	kinds.tell(m.book)
	if len(recorded) == 0 {
		m.book.Problem("no two samples of a device follow each other: there is nothing that was measured")
		return
	}
	first, last := quantity.Never, quantity.Instant(0)
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		first, last = min(first, recorded[name][0].From), max(last, recorded[name][len(recorded[name])-1].To)
	}
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		at := first
		for _, x := range append(slices.Clone(recorded[name]), Gap{last, last}) {
			if x.From > at {
				m.book.Absent(AwayRow{Nodes: []string{name}, Away: Away{at, x.From, Unrecorded}})
			}
			at = x.To
		}
	}
	for i := range all {
		if all[i].says() {
			m.held(&all[i], recorded[all[i].Node])
		}
	}
	m.Covers(first, last)
	if !m.Rows() {
		m.book.Problem("no device was ever busy or had memory in use in the time that was measured: all of it lay idle, and there is " +
			"nothing to forecast")
	}
}

// hashed is a number for a name.
func hashed(name string) uint64 {
	sum := fnv.New64a()
	_, _ = io.WriteString(sum, name) // it has no errors
	return sum.Sum64()
}

// held makes runs of the times in which a measured device is held. Where only its neighbours were measured it counts as held.
func (m *Samples) held(g *gauge, recorded Spans) {
	const above, most = 64, 1024
	level := int32(most)
	for _, s := range g.samples {
		if s.MiB != NoMemory {
			level = min(level, s.MiB)
		}
	}
	is := func(s Sample) bool { return s.Level == Busy || s.MiB > level+above }
	var held, seen Spans
	g.each(func(x, y Sample) {
		seen = seen.With(x.At, y.At)
		if is(x) || is(y) {
			held = held.With(x.At, y.At)
		}
	})
	for _, x := range recorded {
		at := x.From
		for _, y := range seen {
			if y.To <= at {
				continue
			}
			held, at = held.With(at, min(y.From, x.To)), max(at, y.To)
		}
		held = held.With(at, x.To)
	}
	name := fmt.Sprintf("%s/%d", g.Node, g.Index)
	if g.Slice != "" {
		name += "/" + g.Slice
	}
	load := m.book.Load([]Part{{m.book.Kind([]byte(m.gauges.kind(g))), 1, 1000}})
	place := m.book.Place([]int32{m.book.Node([]byte(g.Node))})
	for n, x := range held {
		row := Row{Run: Run{ID: name, Submit: x.From, Eligible: x.From, Start: x.From, End: x.To, Load: load, Place: place,
			State: Completed},
			Raw: hashed(name), Index: uint64(n + 1), Elapsed: Unknown}
		m.book.Add(&row)
	}
}

// short is a host's name without its domain.
func short(name string) string {
	name, _, _ = strings.Cut(name, ".")
	return name
}

// match gives measured nodes the names that the log has for them, and leaves out those that it does not name.
func (m *Samples) match() {
	byShort := map[string][]string{}
	for _, name := range m.book.nodes.texts {
		byShort[short(name)] = append(byShort[short(name)], name)
	}
	var out []gauge
	odd := map[string]bool{} // a node once, however many devices it has
	leave := func(name, node string) {
		if !odd[node] {
			m.Odd(name, gaugeLeftOut, node)
		}
		odd[node] = true
	}
	for i := range m.gauges.all {
		g := &m.gauges.all[i]
		_, known := m.book.nodes.known[g.Node]
		same := byShort[short(g.Node)]
		switch {
		case known:
		case len(same) == 1:
			m.gauges.models[same[0]] = max(m.gauges.models[same[0]], m.gauges.models[g.Node])
			g.Node = same[0]
		case len(same) > 1:
			leave(ambiguousGauge, g.Node)
			continue
		default:
			leave(homelessGauge, g.Node)
			continue
		}
		out = append(out, *g)
	}
	// Two names of one node are one gauge.
	slices.SortStableFunc(out, byDevice)
	m.gauges.all = out[:0]
	for _, g := range out {
		if n := len(m.gauges.all); n > 0 && m.gauges.all[n-1].Gauge == g.Gauge {
			m.gauges.all[n-1].samples = append(m.gauges.all[n-1].samples, g.samples...)
			continue
		}
		m.gauges.all = append(m.gauges.all, g)
	}
	described := map[string]bool{}
	for _, n := range m.book.told {
		described[n.Name] = described[n.Name] || n.Devices != nil
	}
	kinds := counts{}
	for i := range m.gauges.all {
		if g := &m.gauges.all[i]; !described[g.Node] && g.tells() {
			kind := untyped // what the log calls it is not known
			if g.Slice != "" {
				kind = m.gauges.kind(g)
			}
			kinds.add(g.Node, kind)
		}
	}
	kinds.tell(m.book)
}

// measured makes what was measured ready, before rows are looked at.
func (m *Samples) measured() {
	if len(m.gauges.all) == 0 {
		return
	}
	if m.Rows() {
		m.match()
	}
	slices.SortFunc(m.gauges.all, byDevice)
	for i := range m.gauges.all {
		m.gauges.all[i].settle()
	}
	if !m.Rows() {
		m.alone()
	}
}
