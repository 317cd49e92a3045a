package kubernetes

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
)

// Node is what is known of a node's devices.
type Node struct {
	// Devices are how many by resource at most.
	Devices map[string]int64
	// Changed: there were others at times.
	Changed bool
	// Product of its GPUs, and into how many shares each is cut (0: nobody says so), by its labels.
	Product  string
	Replicas int64
}

// Fleet is the nodes of a cluster, of which Pods get devices.
type Fleet struct {
	book  *history.Book
	nodes func(name string) *Node
	// sharing are the runs that hold shares of a node's devices of a kind.
	sharing map[pool][]share
}

// NewFleet is of the nodes that a function knows by name, nil for one that it doesn't.
func NewFleet(b *history.Book, nodes func(name string) *Node) *Fleet {
	return &Fleet{book: b, nodes: nodes, sharing: map[pool][]share{}}
}

// pool is the devices of a kind on a node; share is a run that holds shares of so many of them.
type pool struct{ node, kind string }

type share struct {
	run   history.Row
	count int64
}

func (p pool) compare(q pool) int {
	return cmp.Or(cmp.Compare(p.node, q.node), cmp.Compare(p.kind, q.kind))
}

// kind is the name of a kind of device on a node, and the share of one that a unit of the resource is, in thousandths.
func (f *Fleet) kind(name, resource string) (kind string, milli int32) {
	of, _ := device(resource)
	kind, replicas := "gpu", int64(1)
	if n := f.nodes(name); n != nil {
		replicas = max(n.Replicas, 1)
		if n.Product != "" {
			product, shared := strings.CutSuffix(n.Product, "-SHARED") // as NVIDIA's feature discovery marks time-slicing
			kind, of.shared = product, of.shared || shared
		}
	}
	if of.profile != "" {
		kind = of.profile
	}
	switch {
	case replicas > 1:
		return kind, int32(1000 / replicas)
	case of.shared:
		return kind, 500
	}
	return kind, 1000
}

// count is how many devices of a kind a node has, 0 if it is not known.
func (f *Fleet) count(of pool) (n int64) {
	at := f.nodes(of.node)
	if at == nil {
		return 0
	}
	for resource, units := range at.Devices { //sluice:sorted the most of all
		if kind, milli := f.kind(of.node, resource); kind == of.kind {
			if milli < 1000 {
				units = (units + max(at.Replicas, 1) - 1) / max(at.Replicas, 1)
			}
			n = max(n, units)
		}
	}
	return n
}

// Load is the whole devices that a run holds on a node, of so many of each resource; an index for Row.Load, 0 for none. Its shares of
// others are put aside for Shared, where it is known of how many.
func (f *Fleet) Load(name string, want map[string]int64, run history.Row) int32 {
	var parts []history.Part
	for _, resource := range slices.Sorted(maps.Keys(want)) {
		kind, milli := f.kind(name, resource)
		if of := (pool{name, kind}); milli < 1000 {
			f.book.Assume(shares)
			if f.count(of) > 0 {
				f.sharing[of] = append(f.sharing[of], share{run, want[resource]})
				continue
			}
		}
		part := history.Part{Kind: f.book.Kind([]byte(kind)), Count: int32(want[resource]), Milli: 1000}
		if i := slices.IndexFunc(parts, func(p history.Part) bool { return p.Kind == part.Kind }); i >= 0 {
			parts[i].Count += part.Count
		} else {
			parts = append(parts, part)
		}
	}
	return f.book.Load(parts)
}

// Shared are the times in which any share of a device was held.
func (f *Fleet) Shared() (out []history.Row) {
	for _, of := range slices.SortedFunc(maps.Keys(f.sharing), pool.compare) {
		out = append(out, f.shared(of, f.sharing[of])...)
	}
	return out
}

// shared are the times in which any share of a device was held: a run of the Pod that came first, as long as any goes on. Each share is of
// the device of which fewest are held then, as NVIDIA's device plugin has it.
func (f *Fleet) shared(of pool, all []share) (out []history.Row) {
	type device struct {
		row  history.Row
		ends []quantity.Instant
	}
	devices := make([]device, f.count(of))
	load := f.book.Load([]history.Part{{Kind: f.book.Kind([]byte(of.kind)), Count: 1, Milli: 1000}})
	slices.SortFunc(all, func(x, y share) int {
		return cmp.Or(cmp.Compare(x.run.Start, y.run.Start), cmp.Compare(x.run.End, y.run.End), cmp.Compare(x.run.Raw, y.run.Raw))
	})
	for _, x := range all {
		if x.run.Start == x.run.End {
			continue
		}
		for range x.count {
			least := 0
			for i := range devices {
				d := &devices[i]
				d.ends = slices.DeleteFunc(d.ends, func(t quantity.Instant) bool { return t <= x.run.Start })
				if len(d.ends) < len(devices[least].ends) {
					least = i
				}
			}
			d := &devices[least]
			if len(d.ends) == 0 {
				if d.row.Load != 0 {
					out = append(out, d.row)
				}
				d.row = x.run
				d.row.Load, d.row.Index = load, x.run.Index*Most+uint64(least)
			}
			d.row.End = max(d.row.End, x.run.End)
			d.ends = append(d.ends, x.run.End)
		}
	}
	for i := range devices {
		if devices[i].row.Load != 0 {
			out = append(out, devices[i].row)
		}
	}
	return out
}

// Tell puts into the book what a node has, and returns of how many kinds.
func (f *Fleet) Tell(name string) (kinds int) {
	row := history.NodeRow{Name: name, Devices: []history.Part{}}
	n := f.nodes(name)
	counts := map[string]int32{}
	for _, resource := range slices.Sorted(maps.Keys(n.Devices)) {
		kind, _ := f.kind(name, resource)
		counts[kind] = int32(f.count(pool{name, kind}))
	}
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		if counts[kind] > 0 {
			row.Devices = append(row.Devices, history.Part{Kind: f.book.Kind([]byte(kind)), Count: counts[kind], Milli: 1000})
		}
	}
	f.book.Tell(row)
	if n.Changed {
		f.book.Samples().Odd(mixed, mixedDone, "node "+name)
	}
	return len(row.Devices)
}
