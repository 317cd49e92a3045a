package zone

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestOutgrownJobsDoNotWait: a chain whose raised profile leaves no useful piece on any slice is told so, though its next
// unit alone would fit.
func TestOutgrownJobsDoNotWait(t *testing.T) {
	const gib = quantity.Amount(1) << 30
	spec := &job.Spec{
		Kind: job.Steps, Total: 100, Grid: 1, PerUnit: time.Second, Parallelism: 1, TauMin: 30 * time.Second, MaxFailures: 3,
		Safe: trp.Table{Bounds: []int64{50, 100}, Least: [][]quantity.Amount{{8 * gib, 16 * gib}, {16 * gib}}},
	}
	z, err := New(Config{ID: "z", Policy: fifo.Policy{}})
	if err != nil {
		t.Fatal(err)
	}
	view := &protocol.SliceView{Slice: protocol.Slice{ID: "a", Speed: 1000, Capacity: trp.Vector{trp.Memory: 17 * gib}}, Usable: true,
		Version: 1}
	z.sites.SetView(1, 0, view)
	for _, c := range []struct {
		scale int64
		waits bool
	}{{1000, true}, {1050, true}, {1150, false}} {
		j := z.home.Book().Outsider(&protocol.Record{Spec: spec, Committed: job.Ranges{{From: 0, To: 45}},
			Learned: protocol.Learned{MemoryScale: c.scale}})
		if why := (*fleet)(z).Beyond(j); (why == "") != c.waits {
			t.Errorf("scale %d: %q", c.scale, why)
		}
	}
}

// TestNothingIsOutOfReachOfAMachineThatIsAway: after a restart a zone does not know what machines have that were not heard of since, so
// it ends no job for want of a slice until each of them has offered, or was removed.
func TestNothingIsOutOfReachOfAMachineThatIsAway(t *testing.T) {
	const gib = quantity.Amount(1) << 30
	spec := &job.Spec{Kind: job.Items, Total: 100, Grid: 1, PerUnit: time.Second, Parallelism: 1, MaxFailures: 3,
		Safe: trp.Table{Bounds: []int64{100}, Least: [][]quantity.Amount{{4 * gib}}}}
	node := func(name job.NodeID) protocol.Address { return protocol.Address{Role: protocol.Node, ID: string(name)} }
	slice := func(name job.NodeID, memory quantity.Amount) protocol.Slice {
		return protocol.Slice{ID: job.SliceID(name) + "/a", Speed: 1000, Capacity: trp.Vector{trp.Memory: memory * gib}}
	}
	offer := func(name job.NodeID, memory quantity.Amount) protocol.Message {
		return protocol.Message{Kind: protocol.Offer, From: node(name), Epoch: 1,
			Body: &protocol.SliceView{Slice: slice(name, memory), Node: name, Usable: true, Version: 1}}
	}
	stock := func(name job.NodeID, all ...protocol.Slice) protocol.Message {
		return protocol.Message{Kind: protocol.Inventory, From: node(name), Body: &protocol.Stock{Slices: all}}
	}
	said := func(by protocol.Role, m protocol.Message) protocol.Message {
		m.From.Role = by
		return m
	}
	removed := func(name job.NodeID) protocol.Message {
		return protocol.Message{Kind: protocol.Removed, From: protocol.Address{Role: protocol.Person}, Body: &protocol.Removal{Node: name}}
	}
	for _, c := range []struct {
		name  string
		heard []protocol.Message
		waits bool
	}{
		{"none is away", nil, false},
		{"one is away", []protocol.Message{stock("m", slice("m", 8))}, true},
		{"one without slices is away", []protocol.Message{stock("m")}, false},
		{"what is no node says so", []protocol.Message{said(protocol.Person, stock("m", slice("m", 8)))}, false},
		{"it is back, with what suits", []protocol.Message{stock("m", slice("m", 8)), offer("m", 8)}, true},
		{"it is back, with less than it had", []protocol.Message{stock("m", slice("m", 8)), offer("m", 4)}, false},
		{"one of two is back", []protocol.Message{stock("m", slice("m", 4)), stock("n", slice("n", 4)), offer("m", 4)}, true},
		{"one of two is back, the other removed", []protocol.Message{stock("m", slice("m", 4)), stock("n", slice("n", 4)), offer("m", 4),
			removed("n")}, false},
	} {
		z, err := New(Config{ID: "z", Policy: fifo.Policy{}, Own: []job.NodeID{"head"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range append([]protocol.Message{offer("head", 4)}, c.heard...) {
			z.Step(1, m, &protocol.Out{})
		}
		j := z.home.Book().Outsider(&protocol.Record{Spec: spec, Learned: protocol.Learned{MemoryScale: 1500}})
		if why := (*fleet)(z).Beyond(j); (why == "") != c.waits {
			t.Errorf("%s: %q", c.name, why)
		}
	}
}

// TestWhoSearchesOutgrowsTheSlicesOfAllZones: what only another zone has a slice for goes there, and ends where nobody has one.
func TestWhoSearchesOutgrowsTheSlicesOfAllZones(t *testing.T) {
	const gib = quantity.Amount(1) << 30
	table := trp.Table{Bounds: []int64{50, 100}, Least: [][]quantity.Amount{{8 * gib, 16 * gib}, {16 * gib}}}
	steps := &job.Spec{Kind: job.Steps, Total: 100, Grid: 1, PerUnit: time.Second, Parallelism: 1, TauMin: 30 * time.Second, MaxFailures: 3,
		Safe: table}
	rigid := &job.Spec{Kind: job.Rigid, Total: 100, Grid: 1, PerUnit: time.Second, Parallelism: 1, MaxFailures: 3, Safe: table}
	for _, c := range []struct {
		name   string
		spec   *job.Spec
		slices []quantity.Amount // that all zones have
		scale  int64
		waits  bool
	}{
		{"a piece that another zone holds", steps, []quantity.Amount{17, 40}, 1150, true},
		{"a run that another zone holds", rigid, []quantity.Amount{17, 40}, 1150, true},
		{"a piece that nobody holds", steps, []quantity.Amount{17, 40}, 3000, false},
		{"a run that nobody holds", rigid, []quantity.Amount{17, 40}, 3000, false},
		{"nobody has larger slices", steps, []quantity.Amount{5, 17}, 1150, false},
	} {
		classes := make(flow.Classes, len(c.slices))
		for i, n := range c.slices {
			classes[i] = n * gib
		}
		cfg, err := search.Config{Flow: flow.Config{Classes: classes}, Zones: []search.Zone{{ID: "z", Nodes: []job.NodeID{"n"}},
			{ID: "y", Nodes: []job.NodeID{"m"}}}}.Checked()
		if err != nil {
			t.Fatal(err)
		}
		z, err := New(Config{ID: "z", Policy: fifo.Policy{}, Search: cfg})
		if err != nil {
			t.Fatal(err)
		}
		view := &protocol.SliceView{Slice: protocol.Slice{ID: "a", Speed: 1000, Capacity: trp.Vector{trp.Memory: 17 * gib}}, Node: "n",
			Usable: true, Version: 1}
		z.sites.SetView(1, 0, view)
		j := z.home.Book().Outsider(&protocol.Record{Spec: c.spec, Committed: job.Ranges{{From: 0, To: 45}},
			Learned: protocol.Learned{MemoryScale: c.scale}})
		if why := (*fleet)(z).Beyond(j); (why == "") != c.waits {
			t.Errorf("%s: %q", c.name, why)
		}
	}
}

// TestOutgrownGangsDoNotWait: a gang that fits the largest slice of every node, but not two of one, is told so.
func TestOutgrownGangsDoNotWait(t *testing.T) {
	const gib = quantity.Amount(1) << 30
	spec := &job.Spec{Kind: job.Rigid, Total: 1, Grid: 1, Parallelism: 1, Slices: 2, MaxFailures: 3,
		Safe: trp.Table{Bounds: []int64{1}, Least: [][]quantity.Amount{{10 * gib}}}}
	z, err := New(Config{ID: "z", Policy: fifo.Policy{}})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range []struct {
		node job.NodeID
		gib  quantity.Amount
	}{{"a", 20}, {"a", 12}, {"a", 5}, {"b", 20}, {"b", 10}} {
		view := &protocol.SliceView{Slice: protocol.Slice{ID: job.SliceID(rune('a' + i)), Speed: 1000,
			Capacity: trp.Vector{trp.Memory: s.gib * gib}}, Node: s.node, Usable: true, Version: 1}
		z.sites.SetView(1, 0, view)
	}
	for _, c := range []struct {
		scale int64
		waits bool
	}{{1000, true}, {1150, true}, {1250, false}} {
		j := z.home.Book().Outsider(&protocol.Record{Spec: spec, Learned: protocol.Learned{MemoryScale: c.scale}})
		if why := (*fleet)(z).Beyond(j); (why == "") != c.waits {
			t.Errorf("scale %d: %q", c.scale, why)
		}
	}
}

// TestAGangOverZonesOutgrowsTheSlicesOfAllZones: what its own zone has too small slices for, others may lend it, and it ends where nobody
// could.
func TestAGangOverZonesOutgrowsTheSlicesOfAllZones(t *testing.T) {
	const gib = quantity.Amount(1) << 30
	spec := &job.Spec{
		Kind: job.Rigid, Total: 1, Grid: 1, Parallelism: 1, Slices: 2, Topology: job.SameCluster, MaxFailures: 3,
		Safe: trp.Table{Bounds: []int64{1}, Least: [][]quantity.Amount{{10 * gib}}},
	}
	for _, here := range [][]quantity.Amount{{12, 12}, {12}, nil} {
		cfg, err := search.Config{Flow: flow.Config{Classes: flow.Classes{12 * gib, 20 * gib}},
			Zones: []search.Zone{{ID: "z", Nodes: []job.NodeID{"n"}}, {ID: "y", Nodes: []job.NodeID{"m"}}}}.Checked()
		if err != nil {
			t.Fatal(err)
		}
		z, err := New(Config{ID: "z", Policy: fifo.Policy{}, Search: cfg})
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range here {
			view := &protocol.SliceView{Slice: protocol.Slice{ID: job.SliceID(rune('a' + i)), Speed: 1000,
				Capacity: trp.Vector{trp.Memory: n * gib}}, Node: "n", Usable: true, Version: 1}
			z.sites.SetView(1, 0, view)
		}
		for _, c := range []struct {
			scale int64
			why   string
		}{
			{1000, ""}, {1150, ""}, {1500, ""}, {1990, ""},
			{2100, "it outgrew every slice: after memory; it needs about 21504 MiB, no zone has a slice with more than 20480 MiB"},
		} {
			j := z.home.Book().Outsider(&protocol.Record{Spec: spec, Learned: protocol.Learned{MemoryScale: c.scale}})
			if why := (*fleet)(z).Beyond(j); why != c.why {
				t.Errorf("slices of %v GiB here, scale %d: %q, want %q", here, c.scale, why, c.why)
			}
		}
	}
}
