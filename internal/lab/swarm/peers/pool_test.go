package peers

import (
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/lab/swarm"
)

// TestPool: what it draws is free, of the smallest size that is free anywhere, and every such node is drawn in the end.
func TestPool(t *testing.T) {
	c := swarm.Mixed(2)
	c.PerZone = 5
	if err := c.Prepare(); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		p := newPool(&c, 5, 5)
		s := prng.New(rapid.Uint64().Draw(t, "seed"))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			node := int32(rapid.IntRange(5, 9).Draw(t, "node"))
			if rapid.Bool().Draw(t, "take") {
				class := uint8(rapid.IntRange(0, 3).Draw(t, "class"))
				before := p.Free(node)
				slot := p.Take(node, class)
				if slot != c.Best(node, before, class) || slot >= 0 && p.Free(node) != before&^(1<<slot) {
					t.Fatalf("of %b class %d took slice %d and left %b", before, class, slot, p.Free(node))
				}
			} else {
				p.Set(node, uint8(rapid.IntRange(0, 15).Draw(t, "free")))
			}
			for class := range uint8(4) {
				want := map[int32]bool{}
				for size := class; size < 4 && len(want) == 0; size++ {
					for n := int32(5); n < 10; n++ {
						if p.Free(n)&c.Exact(n, size) != 0 {
							want[n] = true
						}
					}
				}
				if p.Has(class) != (len(want) > 0) {
					t.Fatalf("has room for class %d: %v, and there is on %v", class, p.Has(class), want)
				}
				got := map[int32]bool{}
				for i := 0; i < 64 || len(got) < len(want) && i < 1000; i++ { // of five, 64 draws leave one out once in 300,000 times
					got[p.Pick(&s, class)] = true
				}
				if len(want) == 0 {
					want[-1] = true
				}
				for n := range got {
					if !want[n] {
						t.Fatalf("drew node %d for class %d, want one of %v", n, class, want)
					}
				}
				if len(got) < len(want) {
					t.Fatalf("1000 draws for class %d gave only %v of %v", class, got, want)
				}
			}
		}
	})
}

// TestLedger: a slice that was given away is not free, whatever the node says, until the order is settled, once.
func TestLedger(t *testing.T) {
	c := swarm.Uniform(1, 2, 4)
	if err := c.Prepare(); err != nil {
		t.Fatal(err)
	}
	l := newLedger(&c, 0, 2)
	task := swarm.NewTaskID(0, 1)
	slot := l.Order(1, task, 0)
	if l.Told(1, 0b1111); l.Free(1) != 0b1111&^(1<<slot) || !l.Pending(1, slot, task) {
		t.Errorf("slice %d is given away and %04b is free", slot, l.Free(1))
	}
	if !l.Settle(1, slot, task) || l.Settle(1, slot, task) || l.Pending(1, slot, task) || l.Free(1) != 0b1111 {
		t.Errorf("the order is settled once, and then what the node said counts; free is %04b", l.Free(1))
	}
}
