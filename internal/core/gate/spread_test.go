package gate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestAGangThatNoLevelHoldsIsRefused, with what would fit, once every node has said where it stands.
func TestAGangThatNoLevelHoldsIsRefused(t *testing.T) {
	g, err := gate.New(gate.Config{Zones: []gate.Zone{{ID: "z", Nodes: []job.NodeID{"n0", "n1", "n2", "n3", "n4"}}}})
	if err != nil {
		t.Fatal(err)
	}
	report := func(i int, rack, block string) {
		var list []protocol.Slice
		for k := range 2 {
			list = append(list, protocol.Slice{ID: job.SliceID(fmt.Sprintf("n%d/%d", i, k)), Profile: "p", Capacity: trp.Vector{8 << 30},
				Speed: 1000, Rack: rack, Block: block})
		}
		g.Step(quantity.Instant(time.Hour), protocol.Message{Kind: protocol.Inventory,
			From: protocol.Address{Role: protocol.Node, ID: fmt.Sprint("n", i)}, Body: &protocol.Stock{Slices: list}}, &protocol.Out{})
	}
	n := 0
	submit := func(width int, level job.Level) string {
		n++
		s := &job.Spec{
			Name: job.ID(fmt.Sprint("j", n)), Queue: gate.DefaultQueue, Kind: job.Rigid, Total: 1, Grid: 1, Parallelism: 1, Slices: width,
			Topology: level, Walltime: time.Minute,
			Deadline: quantity.Never, Launch: job.Launch{Command: []string{"x"}},
			Safe: trp.Table{Bounds: []int64{1}, Least: [][]quantity.Amount{{4 << 30}}},
		}
		var out protocol.Out
		g.Step(quantity.Instant(time.Hour), protocol.Message{Kind: protocol.Submit, From: protocol.Address{Role: protocol.Person},
			Body: &protocol.Submission{Request: fmt.Sprint("r", n), Spec: s}}, &out)
		for i := range out.Effects {
			if m := &out.Effects[i]; m.Kind == protocol.Reply && m.Body.(*protocol.Receipt).Err != nil {
				return m.Body.(*protocol.Receipt).Err.Error()
			}
		}
		return ""
	}
	report(0, "r0", "b0")
	report(1, "r0", "b0")
	for _, level := range []job.Level{job.SameNode, job.SameZone} { // a node that is not there yet may be wide enough
		if why := submit(10, level); why != "" {
			t.Errorf("10 slices within one %v: refused before all nodes have reported: %s", level, why)
		}
	}
	report(2, "r1", "b0")
	report(3, "r0", "b1") // another rack of that name
	report(4, "", "")
	for _, c := range []struct {
		width int
		level job.Level
		want  string
	}{
		{4, job.SameRack, ""}, {5, job.SameRack, "within one rack, and no rack has more than 4"}, {6, job.SameBlock, ""},
		{7, job.SameBlock, "no block has more than 6"},
		{7, job.SameBlock, "topology: zone"}, {10, job.SameZone, ""}, {11, job.SameZone, "no zone has more than 10"},
		{2, job.SameNode, ""}, {3, job.SameNode, "3 slices of 4096 MiB within one node, and no node has more than 2"},
		{3, job.SameNode, "slices: 2, or topology: rack"},
		{5, job.SameNode, "or topology: block"}, {11, job.SameNode, "what would fit: slices: 2"},
	} {
		why := submit(c.width, c.level)
		if c.want == "" && why != "" || !strings.Contains(why, c.want) {
			t.Errorf("%d slices within one %v: %q; want %q", c.width, c.level, why, c.want)
		}
		if c.width == 11 && strings.Contains(why, "topology:") {
			t.Errorf("%d slices fit nowhere, and it names a wider level: %q", c.width, why)
		}
	}
}

// TestAGangGoesHomeToAWideNode: a zone of many narrow nodes has more slices, and could never run it.
func TestAGangGoesHomeToAWideNode(t *testing.T) {
	d := newDeskOf(t, []gate.Zone{{ID: "a", Nodes: []job.NodeID{"n1", "n2", "n3"}}, {ID: "b", Nodes: []job.NodeID{"n4"}}})
	for _, narrow := range []string{"n1", "n2", "n3"} {
		d.report(narrow, 512, 512)
	}
	d.report("n4", 512, 512, 512)
	for i := range 40 {
		name := fmt.Sprint("gang", i)
		if r := d.call(rigid(t, name, 100, 3)); r.Body.(*protocol.Receipt).Err != nil || d.g.Home(job.ID(name)) != "b" {
			t.Fatalf("%s: %v, at home in %q", name, r.Body.(*protocol.Receipt).Err, d.g.Home(job.ID(name)))
		}
	}
}

// TestADrainedZonesNodesAreNotWaitedFor: that one of them is absent keeps no gang that the others could not run.
func TestADrainedZonesNodesAreNotWaitedFor(t *testing.T) {
	d := newDeskOf(t, []gate.Zone{{ID: "a", Nodes: []job.NodeID{"n1"}}, {ID: "b", Nodes: []job.NodeID{"n2"}}})
	d.report("n1", 512, 512)
	if err := d.call(rigid(t, "early", 100, 3)).Body.(*protocol.Receipt).Err; err != nil {
		t.Errorf("refused before all nodes have reported: %v", err)
	}
	if err := d.drain("b"); err != nil {
		t.Fatal(err)
	}
	err := d.call(rigid(t, "late", 100, 3)).Body.(*protocol.Receipt).Err
	if err == nil || !strings.Contains(err.Error(), "has more than 2") {
		t.Errorf("the zones that are not drained have two slices together, and three are promised: %v", err)
	}
}
