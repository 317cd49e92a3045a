package stock

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestStockAgainstRecount: the sums are those of the last reports.
func TestStockAgainstRecount(t *testing.T) {
	table, err := trp.Compile(trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: 1, Mean: 1 << 20}}}, 1, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	spec := &job.Spec{Kind: job.Rigid, Total: 1, Slices: 2, PerUnit: time.Second, Grid: 1, Safe: table}
	rapid.Check(t, func(t *rapid.T) {
		zones := []Zone{{ID: "a", Nodes: []job.NodeID{"n0", "n1"}}, {ID: "b", Nodes: []job.NodeID{"n2", "n3"}}}
		v, last := New(zones, time.Second), map[string][]protocol.Slice{}
		for range rapid.IntRange(1, 20).Draw(t, "reports") {
			node := fmt.Sprint("n", rapid.IntRange(0, 4).Draw(t, "node")) // n4 is of no zone
			var all []protocol.Slice
			for i := range rapid.IntRange(0, 3).Draw(t, "slices") {
				all = append(all, protocol.Slice{ID: job.SliceID(fmt.Sprint(node, "/", i)),
					Rack: rapid.SampledFrom([]string{"", "r"}).Draw(t, "rack"), Capacity: trp.Vector{1 << 30}, Speed: 1000})
			}
			v.Report(node, all)
			if node != "n4" {
				last[node] = all
			}
		}
		for i, z := range zones {
			node, rack, zone := 0, 0, 0
			for _, n := range z.Nodes {
				racked := 0
				for _, s := range last[string(n)] {
					if s.Rack != "" {
						racked++
					}
				}
				node, rack, zone = max(node, len(last[string(n)])), rack+racked, zone+len(last[string(n)])
			}
			for _, n := range z.Nodes { // what has no rack stands with its node alone
				alone := 0
				for _, s := range last[string(n)] {
					if s.Rack == "" {
						alone++
					}
				}
				rack = max(rack, alone)
			}
			for level, want := range map[job.Level]int{job.SameNode: node, job.SameRack: rack, job.SameZone: zone} {
				if got := v.Together(spec, level, i); got != want {
					t.Fatalf("within one %v of zone %s %d stand together, want %d of %+v", level, z.ID, got, want, last)
				}
			}
			heard := 0
			for _, n := range z.Nodes {
				if _, ok := last[string(n)]; ok {
					heard++
				}
			}
			if v.Heard(i) != (heard == len(z.Nodes)) {
				t.Fatalf("all of zone %s have reported is %v, of %v", z.ID, v.Heard(i), last)
			}
		}
		asked := map[job.NodeID]bool{}
		for _, n := range v.Asked(quantity.Instant(1e9)) {
			asked[n] = true
		}
		for _, n := range []job.NodeID{"n0", "n1", "n2", "n3"} {
			if _, reported := last[string(n)]; asked[n] == reported {
				t.Fatalf("%s is asked: %v, has reported: %v", n, asked[n], reported)
			}
		}
	})
}

// TestReportsAreBounded, where they are not of nodes that are named.
func TestReportsAreBounded(t *testing.T) {
	all := make([]protocol.Slice, protocol.MostSlices+1)
	named := New([]Zone{{ID: "a", Nodes: []job.NodeID{"own"}}}, time.Second)
	for _, c := range []struct {
		v    *Stock
		node string
		n    int
		want bool
	}{
		{named, "own", len(all), true}, {named, "b", len(all), false}, {named, "b", len(all) - 1, true},
		{New([]Zone{{ID: "a"}}, time.Second), "b", len(all), true},
	} {
		if got := c.v.Takes(c.node, all[:c.n]); got != c.want {
			t.Errorf("%d slices of %s are taken: %v", c.n, c.node, got)
		}
	}
}

// TestARemovedNodeHasNothing, and is not waited for.
func TestARemovedNodeHasNothing(t *testing.T) {
	table, err := trp.Compile(trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: 1, Mean: 1 << 20}}}, 1, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	spec := &job.Spec{Kind: job.Rigid, Total: 1, Slices: 1, PerUnit: time.Second, Grid: 1, Safe: table}
	for _, zones := range [][]Zone{{{ID: "a"}}, {{ID: "a", Nodes: []job.NodeID{"m"}}, {ID: "b", Nodes: []job.NodeID{"n"}}}} {
		v := New(zones, time.Second)
		v.Report("m", []protocol.Slice{{ID: "m/0", Capacity: trp.Vector{1 << 30}, Speed: 1000}})
		if n := v.Together(spec, job.SameZone, 0); n != 1 {
			t.Fatalf("%d slices are known, want 1", n)
		}
		v.Remove("m")
		if n := v.Together(spec, job.SameZone, 0); n != 0 {
			t.Errorf("%d zones: %d slices are known of a node that was removed", len(zones), n)
		}
		if len(zones) > 1 && !v.Heard(0) {
			t.Error("it is waited for")
		}
	}
}
