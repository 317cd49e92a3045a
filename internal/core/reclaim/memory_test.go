package reclaim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestBackoffGrows with each unused place of a wish, and from the third on for all of its class.
func TestBackoffGrows(t *testing.T) {
	r := newMemory()
	of := Equiv{Owner: "set", Shape: "like"}
	var pauses, all []time.Duration
	for i := range 8 {
		r.recordUnused(start, &Place{Wish: "one", Equiv: of, Machine: fmt.Sprint("m", i%4)})
		pauses, all = append(pauses, r.backoffs["one"].until.Sub(start)), append(all, max(0, r.unused[of].until.Sub(start)))
	}
	minutes := func(list ...time.Duration) []time.Duration {
		for i := range list {
			list[i] *= time.Minute
		}
		return list
	}
	if want := minutes(10, 20, 40, 80, 160, 320, 360, 360); !slices.Equal(pauses, want) {
		t.Errorf("pauses are %v, want %v", pauses, want)
	}
	if want := minutes(0, 0, 10, 20, 40, 80, 160, 320); !slices.Equal(all, want) {
		t.Errorf("pauses of the class are %v, want %v", all, want)
	}
	if got := r.unused[of].machines; !slices.Equal(got, []string{"m0", "m1", "m2", "m3"}) {
		t.Errorf("places were left unused on %q", got)
	}
	if r.maySearch(at(5*time.Hour), "other", of) || !r.maySearch(at(7*time.Hour), "other", of) ||
		!r.maySearch(start, "other", Equiv{"set", "unlike"}) {
		t.Error("the class does not back off as long")
	}
	r.places["one"] = &Place{Equiv: of}
	if r.maySearch(at(7*time.Hour), "other", of) {
		t.Error("two places are kept at once for a class that left places unused")
	}
	if r.forget(at(13*time.Hour), func(ID) bool { return false }); len(r.unused)+len(r.backoffs) != 0 {
		t.Error("the backoff never expires")
	}
}

// TestPlacesAheadDoNotCountAgainstWishes: however many are kept ahead, a wish that waits gets its own.
func TestPlacesAheadDoNotCountAgainstWishes(t *testing.T) {
	r := newMemory()
	for i := range maxPlaces + maxAhead {
		id := ID(fmt.Sprint(i))
		if r.places[id] = (&Place{Wish: id}); i < maxAhead {
			r.places[id].Group = "w"
		}
	}
	r.ahead = maxAhead
	if r.maySearch(start, "p", Equiv{Owner: "p"}) {
		t.Error("places are kept without bound")
	}
	delete(r.places, ID(fmt.Sprint(maxAhead)))
	if !r.maySearch(start, "p", Equiv{Owner: "p"}) {
		t.Error("a wish that waits gets none because of the places kept ahead")
	}
}

// TestCutIsNotCountedTwice: a subjob that is cut for one place frees nothing for another.
func TestCutIsNotCountedTwice(t *testing.T) {
	m := boards("m", "a", "b")
	pl := &Place{Wish: "p", Machine: "m", Devices: []DeviceRef{{"d/m", "a"}}, Stops: []job.SliceID{"m/a"}}
	r := newRoom(m, at(time.Hour), []*Place{pl}, nil)
	q := &demand{id: "q", wants: []want{{choices: []Choice{{N: 1}}}}}
	if got, ok := r.find(q); !ok || !slices.Equal(got.Stops, []job.SliceID{"m/b"}) || got.Devices[0].Device != "b" {
		t.Errorf("given is %+v, %v; want b alone", got, ok)
	}
}

// eight is a machine with eight partitionable GPUs; all of their small devices have subjobs of ours.
func eight(name string) *Machine {
	m := &Machine{Name: name}
	p := Pool{Name: "d/" + name, Driver: "d"}
	for gpu := range 8 {
		one := board(name, 0, 1, 2, 3, 4, 5, 6)
		for i, d := range one.Pools[0].Devices {
			d.Name = fmt.Sprintf("%d-%s", gpu, d.Name)
			d.Uses = slices.Clone(d.Uses)
			for k := range d.Uses {
				d.Uses[k].Counter += 7 * gpu
			}
			if d.Slice != "" {
				d.Slice = job.SliceID(name + "/" + d.Name)
				p.Layout = append(p.Layout, int64(len(p.Devices)))
				m.Slices = append(m.Slices, Slice{ID: d.Slice, Notice: 30 * time.Second})
				began := start.Add(time.Duration(-(7*gpu+i)*(7*gpu+i)%57) * time.Minute)
				m.Tenants = append(m.Tenants, Tenant{Slice: d.Slice, Began: began, End: quantity.Never})
			}
			p.Devices = append(p.Devices, d)
		}
		p.Total = append(p.Total, one.Pools[0].Total...)
	}
	m.Pools = []Pool{p}
	return m
}

// BenchmarkPlaceAmongEightGPUs searches for large devices on 128 machines with eight GPUs each.
func BenchmarkPlaceAmongEightGPUs(b *testing.B) {
	large := Term{Kind: OfAttribute, Domain: "d", Name: "profile", Op: "==", Value: "3g"}
	for _, n := range []int64{1, 2, 8} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			k := New()
			for i := range 128 {
				k.Hear(eight(fmt.Sprintf("machine-%03d", i)))
			}
			k.Wish(&Wish{ID: "p", Claims: []Claim{{Requests: []Request{{Choices: []Choice{{N: n, Terms: []Term{large}}}}}}}})
			for b.Loop() {
				k.memory = newMemory()
				if k.Decide(start, nil); len(k.places) != 1 {
					b.Fatal("there is no place")
				}
			}
		})
	}
}
