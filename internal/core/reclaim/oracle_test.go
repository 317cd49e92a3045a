package reclaim

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// drawn is a small cluster whose machines have devices that share counters, some of them ours, with the costs of stopping ours.
type drawn struct {
	machines []*Machine
	costs    map[job.SliceID]Cost
}

func drawMachines(t *rapid.T, most int) drawn {
	x := drawn{costs: map[job.SliceID]Cost{}}
	for n := range rapid.IntRange(1, most).Draw(t, "machines") {
		name := fmt.Sprint("m", n)
		p := Pool{Name: "d/" + name, Driver: "d"}
		for range 3 {
			p.Total = append(p.Total, int64(rapid.IntRange(1, 3).Draw(t, "total")))
		}
		m, left := &Machine{Name: name}, slices.Clone(p.Total)
		for i := range rapid.IntRange(1, 6).Draw(t, "devices") {
			d := Device{Name: string(rune('a' + i)), Here: true}
			for k := range 3 {
				if u := rapid.IntRange(0, 2).Draw(t, "uses"); u > 0 {
					d.Uses = append(d.Uses, Use{k, int64(u)})
				}
			}
			if rapid.Bool().Draw(t, "meant") {
				d.Attributes = []Pair{{"x", "y"}}
			}
			d.Slice = job.SliceID(name + "/" + d.Name)
			if suffices(left, d.Uses) && rapid.IntRange(0, 2).Draw(t, "somebody has it") > 0 {
				take(left, d.Uses, 1)
				d.Holder, d.End = Others, quantity.Never
				if rapid.IntRange(0, 3).Draw(t, "ours") > 0 {
					d.Holder = Ours
					lost, left := rapid.IntRange(0, 3).Draw(t, "lost"), rapid.IntRange(0, 3).Draw(t, "time left")
					x.costs[d.Slice] = Cost{time.Duration(lost), time.Duration(left)}
					m.Slices = append(m.Slices, Slice{ID: d.Slice, Notice: time.Second})
					m.Tenants = append(m.Tenants, Tenant{Slice: d.Slice, Began: start, End: quantity.Never})
				}
			}
			p.Devices = append(p.Devices, d)
		}
		m.Pools = []Pool{p}
		x.machines = append(x.machines, m)
	}
	return x
}

func meantDevices(id string, n int) *Wish {
	return &Wish{ID: ID(id), Who: id, Equiv: Equiv{id, fmt.Sprint(n)}, Claims: []Claim{{Requests: []Request{{Choices: []Choice{{
		N: int64(n), Terms: []Term{{Kind: HasAttribute, Domain: "d", Name: "x"}},
	}}}}}}}
}

// cheapest tries every set of our subjobs on a machine that would free n matching devices: the lowest cost, then the fewest.
func (x *drawn) cheapest(m *Machine, n int) (best stopCost, found bool) {
	p := &m.Pools[0]
	var ours []int
	for i := range p.Devices {
		if p.Devices[i].Holder == Ours {
			ours = append(ours, i)
		}
	}
	for set := range 1 << len(ours) {
		var sum stopCost
		left, taken := slices.Clone(p.Total), map[int]bool{}
		for i := range p.Devices {
			d := &p.Devices[i]
			at := slices.Index(ours, i)
			switch {
			case d.Holder == Nobody:
				continue
			case at >= 0 && set>>at&1 == 1:
				sum = sum.plus(stopCost{x.costs[d.Slice], 1})
				continue
			}
			take(left, d.Uses, 1)
			taken[i] = true
		}
		if (!found || sum.compare(best) < 0) && fits(p, left, taken, 0, n) {
			best, found = sum, true
		}
	}
	return best, found
}

func fits(p *Pool, left []int64, taken map[int]bool, from, n int) bool {
	if n == 0 {
		return true
	}
	for i := from; i < len(p.Devices); i++ {
		d := &p.Devices[i]
		if len(d.Attributes) == 0 || taken[i] || !suffices(left, d.Uses) {
			continue
		}
		take(left, d.Uses, 1)
		ok := fits(p, left, taken, i+1, n-1)
		take(left, d.Uses, -1)
		if ok {
			return true
		}
	}
	return false
}

// TestCheapestRoomAgainstBruteForce: no machine, devices and set of subjobs that would serve the wish costs less, and the chosen place does
// serve it.
func TestCheapestRoomAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawMachines(t, 3)
		wanted := rapid.IntRange(1, 3).Draw(t, "wanted")
		k := New()
		for _, m := range x.machines {
			k.Hear(m)
		}
		k.Wish(meantDevices("p", wanted))
		for _, d := range []time.Duration{0, schedulerBackoff} { // time to use free room, if there seems to be any
			k.Decide(at(d), costs(x.costs))
		}
		best, found := stopCost{}, false
		for _, m := range x.machines {
			c, ok := x.cheapest(m, wanted)
			// If nothing has to be stopped no place is kept.
			if ok && c.stops > 0 && (!found || c.compare(best) < 0) {
				best, found = c, true
			}
		}
		got := k.Places()
		if (len(got) == 1) != found || found && got[0].stopCost() != best {
			t.Fatalf("kept are %v, and could be for %v (%v)", got, best, found)
		}
		if !found {
			return
		}
		pl := got[0]
		m := x.machines[slices.IndexFunc(x.machines, func(m *Machine) bool { return m.Name == pl.Machine })]
		p := &m.Pools[0]
		left := slices.Clone(p.Total)
		for i := range p.Devices {
			if d := &p.Devices[i]; d.Holder != Nobody && !slices.Contains(pl.Stops, d.Slice) {
				take(left, d.Uses, 1)
			}
		}
		for _, a := range pl.Devices {
			i, _ := p.find(a)
			if !suffices(left, p.Devices[i].Uses) {
				t.Fatalf("it can't have %s: %v are left for %v", a.Device, left, p.Devices[i].Uses)
			}
			take(left, p.Devices[i].Uses, 1)
		}
		if len(pl.Devices) != wanted {
			t.Fatalf("it has %v, and wants %d", pl.Devices, wanted)
		}
	})
}

// TestDecisionsAreReproducible: the order in which machines and wishes are heard before a decision, and repeated messages, change nothing.
func TestDecisionsAreReproducible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawMachines(t, 4)
		var wishes []*Wish
		for i := range rapid.IntRange(1, 5).Draw(t, "wishes") {
			w := meantDevices(fmt.Sprint("p", i), rapid.IntRange(1, 2).Draw(t, "wanted"))
			w.Since = at(time.Duration(rapid.IntRange(0, 2).Draw(t, "since")) * time.Second)
			if rapid.Bool().Draw(t, "shared") {
				w.Claims[0].Key = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "claim")
			}
			wishes = append(wishes, w)
		}
		order := rapid.Permutation(wishes).Draw(t, "order")
		machines := rapid.Permutation(x.machines).Draw(t, "machines in order")
		one, other := New(), New()
		gone := rapid.IntRange(0, 4).Draw(t, "gone")
		for round := range 4 {
			now := at(time.Duration(round) * 6 * time.Second)
			for _, m := range x.machines {
				one.Hear(m)
			}
			for _, m := range machines {
				other.Hear(m)
				other.Hear(m)
			}
			for i := range wishes {
				if round == 2 && i == gone {
					one.Withdraw(wishes[i].ID, false)
					other.Withdraw(wishes[i].ID, false)
				}
				if round < 2 {
					one.Wish(wishes[i])
					other.Wish(order[i])
				}
			}
			a, b := one.Decide(now, costs(x.costs)), other.Decide(now, costs(x.costs))
			names := slices.SortedFunc(slices.Values(x.machines), func(a, b *Machine) int { return cmp.Compare(a.Name, b.Name) })
			if fmt.Sprint(a) != fmt.Sprint(b) || fmt.Sprint(one.Places()) != fmt.Sprint(other.Places()) {
				t.Fatalf("round %d: %v and %v; kept are %v and %v", round, a, b, one.Places(), other.Places())
			}
			for _, m := range names {
				if p, q := told(one, m.Name), told(other, m.Name); p != q {
					t.Fatalf("round %d: held are\n%s\nand\n%s", round, p, q)
				}
			}
			for _, w := range wishes {
				if p, q := one.Why(now, w.ID), other.Why(now, w.ID); fmt.Sprint(p) != fmt.Sprint(q) {
					t.Fatalf("round %d: of %s it is %v and %v", round, w.ID, p, q)
				}
			}
		}
	})
}

// TestPlacesFitTogether: the places of several wishes fit side by side once all that is cut is gone, and none has what others hold.
func TestPlacesFitTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawMachines(t, 2)
		k := New()
		for _, m := range x.machines {
			k.Hear(m)
		}
		for i := range rapid.IntRange(1, 4).Draw(t, "wishes") {
			k.Wish(meantDevices(fmt.Sprint("p", i), rapid.IntRange(1, 2).Draw(t, "wanted")))
		}
		for d := range 5 {
			k.Decide(at(time.Duration(d)*schedulerBackoff), costs(x.costs))
		}
		for _, m := range x.machines {
			p := &m.Pools[0]
			left, cut := slices.Clone(p.Total), map[job.SliceID]bool{}
			kept := map[string]bool{}
			for _, pl := range k.On(m.Name) {
				for _, id := range pl.Stops {
					if cut[id] {
						t.Fatalf("%s is cut twice", id)
					}
					cut[id] = true
				}
			}
			for _, pl := range k.On(m.Name) {
				for _, a := range pl.Devices {
					i, _ := p.find(a)
					if d := &p.Devices[i]; kept[a.Device] || d.Holder == Others || d.Holder == Ours && !cut[d.Slice] {
						t.Fatalf("%s of %v is somebody else's", a.Device, pl)
					}
					kept[a.Device] = true
					take(left, p.Devices[i].Uses, 1)
				}
			}
			for i := range p.Devices {
				if d := &p.Devices[i]; d.Holder != Nobody && !cut[d.Slice] {
					take(left, d.Uses, 1)
				}
			}
			if slices.ContainsFunc(left, func(n int64) bool { return n < 0 }) {
				t.Fatalf("what is kept on %s does not fit: %v are left", m.Name, left)
			}
		}
	})
}

// TestWhatIsSaidOfOtherWaysAgainstBruteForce: where all was compared, the first way that was not taken is the cheapest that stops none of
// what is stopped, and without one there is none.
func TestWhatIsSaidOfOtherWaysAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawMachines(t, 3)
		wanted := rapid.IntRange(1, 3).Draw(t, "wanted")
		k := New()
		for _, m := range x.machines {
			k.Hear(m)
		}
		k.Wish(meantDevices("p", wanted))
		for _, d := range []time.Duration{0, schedulerBackoff} {
			k.Decide(at(d), costs(x.costs))
		}
		if len(k.Places()) == 0 {
			return
		}
		pl := k.Places()[0]
		if !pl.Search.Whole {
			t.Fatalf("not all of a small cluster was compared: %+v", pl.Search)
		}
		best, found := stopCost{}, false
		for _, m := range x.machines {
			for i := range m.Pools[0].Devices { // the keeper's own copy: it decides no more
				if d := &m.Pools[0].Devices[i]; slices.Contains(pl.Stops, d.Slice) {
					d.Holder = Others
				}
			}
			if c, ok := x.cheapest(m, wanted); ok && c.stops > 0 && (!found || c.compare(best) < 0) {
				best, found = c, true
			}
		}
		if found != (len(pl.Spared) > 0) || found && pl.Spared[0].stopCost() != best {
			t.Fatalf("other ways are %v, and the cheapest costs %v (%v)", pl.Spared, best, found)
		}
	})
}
