package reclaim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestWhoNeverComesIsLeftAloneForLonger, and after three places that were kept for nothing all of its kin.
func TestWhoNeverComesIsLeftAloneForLonger(t *testing.T) {
	r := newMemory()
	of := Kin{Owner: "set", Shape: "like"}
	var pauses, all []time.Duration
	for i := range 8 {
		r.vain(start, &Place{Wish: "one", Kin: of, Machine: fmt.Sprint("m", i%4)})
		pauses, all = append(pauses, r.shunned["one"].until.Sub(start)), append(all, max(0, r.failed[of].until.Sub(start)))
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
		t.Errorf("those of all are %v, want %v", all, want)
	}
	if got := r.failed[of].machines; !slices.Equal(got, []string{"m0", "m1", "m2", "m3"}) {
		t.Errorf("nobody came on %q", got)
	}
	if r.may(at(5*time.Hour), "other", of) || !r.may(at(7*time.Hour), "other", of) || !r.may(start, "other", Kin{"set", "unlike"}) {
		t.Error("its kin is not left alone as long")
	}
	r.places["one"] = &Place{Kin: of}
	if r.may(at(7*time.Hour), "other", of) {
		t.Error("two places are kept at once for who did not come before")
	}
	if r.forget(at(13*time.Hour), func(ID) bool { return false }); len(r.failed)+len(r.shunned) != 0 {
		t.Error("it is never forgotten")
	}
}

// TestWhoWaitsComesBeforeWhatIsToCome: however many places are kept for later, a wish that waits gets its own.
func TestWhoWaitsComesBeforeWhatIsToCome(t *testing.T) {
	r := newMemory()
	for i := range mostPlaces + mostEarly {
		id := ID(fmt.Sprint(i))
		if r.places[id] = (&Place{Wish: id}); i < mostEarly {
			r.places[id].Group = "w"
		}
	}
	r.early = mostEarly
	if r.may(start, "p", Kin{Owner: "p"}) {
		t.Error("places are kept without bound")
	}
	delete(r.places, ID(fmt.Sprint(mostEarly)))
	if !r.may(start, "p", Kin{Owner: "p"}) {
		t.Error("who waits gets none, because of those who are to come")
	}
}

// TestWhatIsGivenToOneIsNotStoppedForAnother: the subjob that is on its way out has given up its place once.
func TestWhatIsGivenToOneIsNotStoppedForAnother(t *testing.T) {
	m := boards("m", "a", "b")
	g := &Place{Wish: "p", Machine: "m", Devices: []At{{"d/m", "a"}}, Cut: []job.SliceID{"m/a"}}
	r := newRoom(m, at(time.Hour), []*Place{g}, nil)
	q := &quest{id: "q", wants: []want{{choices: []Choice{{N: 1}}}}}
	if got, ok := r.find(q); !ok || !slices.Equal(got.Cut, []job.SliceID{"m/b"}) || got.Devices[0].Device != "b" {
		t.Errorf("given is %+v, %v; want b alone", got, ok)
	}
}

// eight is a machine with eight GPUs that can be cut; all of their small devices have subjobs of ours.
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
				m.Slices = append(m.Slices, Slice{d.Slice, 30 * time.Second})
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

// BenchmarkAPlaceAmongEightGPUs looks for several large devices on 128 machines with eight GPUs each.
func BenchmarkAPlaceAmongEightGPUs(b *testing.B) {
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
