package swarm_test

import (
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/swarm"
)

// TestMixed: four slices on every node, in these shares.
func TestMixed(t *testing.T) {
	c := swarm.Mixed(10)
	if err := c.Prepare(); err != nil {
		t.Fatal(err)
	}
	if got, want := c.Capacity(), ([swarm.MaxClasses]int64{1800, 1600, 400, 200}); got != want {
		t.Errorf("slices by class %v, want %v", got, want)
	}
	for n := range int32(c.Nodes()) {
		if len(c.Slots(n)) != 4 {
			t.Fatalf("node %d has %d slices", n, len(c.Slots(n)))
		}
	}
}

// TestBest: the smallest slice that is large enough, by hand.
func TestBest(t *testing.T) {
	c := swarm.Mixed(1)
	if err := c.Prepare(); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		node        int32
		free, class uint8
		best        int8
		room        int
	}{
		{0, 0b1111, 0, 0, 4}, {0, 0b1111, 1, 2, 2}, {0, 0b1111, 2, 3, 1}, {0, 0b1111, 3, -1, 0},
		{0, 0b1000, 0, 3, 1}, {0, 0, 0, -1, 0}, {3, 0b1111, 3, 3, 1}, {3, 0b0111, 1, -1, 0}, {1, 0b1010, 1, 1, 2},
	} {
		if best, room := c.Best(x.node, x.free, x.class), c.Room(x.node, x.free, x.class); best != x.best || room != x.room {
			t.Errorf("node %d, free %04b, class %d: best %d, room %d; want %d, %d", x.node, x.free, x.class, best, room, x.best, x.room)
		}
	}
}

// TestPlaces: every address is read back as what it was made of, and no two are one.
func TestPlaces(t *testing.T) {
	c := swarm.Uniform(3, 5, 2)
	seen := map[swarm.Place]bool{}
	check := func(p swarm.Place, role swarm.Role, i int32) {
		t.Helper()
		if r, j := c.Whose(p); r != role || j != i || seen[p] {
			t.Errorf("place %d is %v %d, want %v %d, and it was there before: %v", p, r, j, role, i, seen[p])
		}
		seen[p] = true
	}
	for n := range int32(15) {
		check(c.At(n), swarm.Node, n)
	}
	for z := range int32(3) {
		check(c.ZoneAt(z), swarm.Zone, z)
	}
	check(c.Center(), swarm.Center, 0)
	for g := range int32(4) {
		check(c.GateAt(g), swarm.Gate, g)
	}
}

func TestABrokenClusterIsRefused(t *testing.T) {
	for name, c := range map[string]swarm.Cluster{
		"nothing":       {},
		"descending":    {Classes: []string{"a", "b"}, Layouts: [][]uint8{{1, 0}}, Pattern: []uint8{0}, Zones: 1, PerZone: 1},
		"unknown class": {Classes: []string{"a"}, Layouts: [][]uint8{{1}}, Pattern: []uint8{0}, Zones: 1, PerZone: 1},
		"no slices":     {Classes: []string{"a"}, Layouts: [][]uint8{{}}, Pattern: []uint8{0}, Zones: 1, PerZone: 1},
		"no layout":     {Classes: []string{"a"}, Layouts: [][]uint8{{0}}, Pattern: []uint8{1}, Zones: 1, PerZone: 1},
	} {
		if err := c.Prepare(); errkind.Of(err) != errkind.Invalid {
			t.Errorf("%s: got %v, want an error of kind Invalid", name, err)
		}
	}
}
