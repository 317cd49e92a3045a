package place_test

import (
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/place"
)

// TestBadOptions: all that is wrong is said at once, with its place.
func TestBadOptions(t *testing.T) {
	good := planner.Options{
		Cluster: planner.Cluster{Classes: []planner.Class{{Name: "A", Weight: 1000}},
			Nodes: []planner.Node{{Name: "x", Devices: []uint8{0}}, {Name: "y"}}},
		Ranks: []int32{1, 0},
	}
	if _, err := place.BestFit().New(good); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spoil func(*planner.Options)
		want  []string
	}{
		"no node":          {func(o *planner.Options) { o.Cluster.Nodes, o.Ranks = nil, nil }, []string{"there is no node"}},
		"many classes":     {func(o *planner.Options) { o.Cluster.Classes = make([]planner.Class, 17) }, []string{"17 classes"}},
		"ranks too few":    {func(o *planner.Options) { o.Ranks = o.Ranks[:1] }, []string{"1 ranks for 2 nodes"}},
		"ranks out, twice": {func(o *planner.Options) { o.Ranks = []int32{2, -1} }, []string{"node 0 has rank 2", "node 1 has rank -1"}},
		"ranks double": {func(o *planner.Options) { o.Ranks = []int32{1, 1} },
			[]string{"node 1 has rank 1, which another node has too"}},
		"several": {func(o *planner.Options) {
			o.Cluster.Classes[0].Weight = -1
			o.Cluster.Nodes[0].Devices = []uint8{0, 3}
			o.Cluster.Nodes[1].CPU = -5
		}, []string{"class 0 (A): weight -1", "node 0 (x): device 1 is of class 3", "node 1 (y): CPU -5"}},
	} {
		o := good
		o.Cluster.Classes, o.Cluster.Nodes = slices.Clone(good.Cluster.Classes), slices.Clone(good.Cluster.Nodes)
		c.spoil(&o)
		p, err := place.BestFit().New(o)
		if p != nil || errkind.Of(err) != errkind.Invalid || strings.Count(err.Error(), "\n")+1 != len(c.want) {
			t.Errorf("%s: %v, %v", name, p, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not say %q", name, err, want)
			}
		}
	}
}
