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
			list = append(list, protocol.Slice{ID: job.SliceID(fmt.Sprintf("n%d/%d", i, k)), Profile: "p", Capacity: trp.Vector{8 << 30}, Speed: 1000, Rack: rack, Block: block})
		}
		g.Step(quantity.Instant(time.Hour), protocol.Message{Kind: protocol.Inventory, From: protocol.Address{Role: protocol.Node, ID: fmt.Sprint("n", i)}, Body: &protocol.Stock{Slices: list}}, &protocol.Out{})
	}
	n := 0
	submit := func(width int, level job.Level) string {
		n++
		s := &job.Spec{
			Name: job.ID(fmt.Sprint("j", n)), Queue: gate.DefaultQueue, Kind: job.Rigid, Total: 1, Grid: 1, Parallelism: 1, Slices: width, Topology: level, Walltime: time.Minute,
			Deadline: quantity.Never, Launch: job.Launch{Command: []string{"x"}}, Safe: trp.Table{Bounds: []int64{1}, Least: [][]quantity.Amount{{4 << 30}}},
		}
		var out protocol.Out
		g.Step(quantity.Instant(time.Hour), protocol.Message{Kind: protocol.Submit, From: protocol.Address{Role: protocol.Person}, Body: &protocol.Submission{Request: fmt.Sprint("r", n), Spec: s}}, &out)
		for i := range out.Effects {
			if m := &out.Effects[i]; m.Kind == protocol.Reply && m.Body.(*protocol.Receipt).Err != nil {
				return m.Body.(*protocol.Receipt).Err.Error()
			}
		}
		return ""
	}
	report(0, "r0", "b0")
	report(1, "r0", "b0")
	if why := submit(10, job.SameZone); why != "" {
		t.Errorf("refused before all nodes have reported: %s", why)
	}
	report(2, "r1", "b0")
	report(3, "r0", "b1") // another rack of that name
	report(4, "", "")
	for _, c := range []struct {
		width int
		level job.Level
		want  string
	}{
		{4, job.SameRack, ""}, {5, job.SameRack, "within one rack, and no rack has more than 4"}, {6, job.SameBlock, ""}, {7, job.SameBlock, "no block has more than 6"},
		{7, job.SameBlock, "topology: zone"}, {10, job.SameZone, ""}, {11, job.SameZone, "there are 10"},
	} {
		if why := submit(c.width, c.level); c.want == "" && why != "" || !strings.Contains(why, c.want) {
			t.Errorf("%d slices within one %v: %q; want %q", c.width, c.level, why, c.want)
		}
	}
}
