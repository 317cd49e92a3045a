package reclaim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Machines and wishes as an inventory would say them.

const start = quantity.Instant(1000 * time.Second)

func at(d time.Duration) quantity.Instant { return start.Add(d) }

// counted is a machine with n devices of resource gpu; the first ones run subjobs of ours.
func counted(name string, n, ours int) *Machine {
	m := &Machine{Name: name, Resources: []Resource{{Name: "gpu", N: int64(n), Others: make([]quantity.Instant, n)}}}
	for k := range n {
		id := job.SliceID(fmt.Sprintf("%s/%d", name, k))
		m.Resources[0].Slices = append(m.Resources[0].Slices, id)
		m.Slices = append(m.Slices, Slice{ID: id, Notice: 30 * time.Second})
		if k < ours {
			m.Tenants = append(m.Tenants, Tenant{Slice: id, Asks: []Ask{{"gpu", 1}}, Began: start, End: quantity.Never})
		}
	}
	return m
}

// board is a machine with a GPU of seven memory slices that can be cut into seven small devices, two of three slices, or one of all; the
// small devices in ours are offered and run subjobs of ours.
func board(name string, ours ...int) *Machine {
	p := Pool{Name: "d/" + name, Driver: "d", Total: make([]int64, 7)}
	add := func(profile string, from, size int) {
		d := Device{Name: fmt.Sprintf("%s-%d", profile, from), Here: true, Attributes: []Pair{{"d/profile", profile}}}
		for k := range size {
			d.Uses = append(d.Uses, Use{from + k, 1})
		}
		p.Devices = append(p.Devices, d)
	}
	m := &Machine{Name: name}
	for k := range 7 {
		p.Total[k] = 1
		add("1g", k, 1)
	}
	add("3g", 0, 3)
	add("3g", 3, 3)
	add("7g", 0, 7)
	for k := range 7 {
		d := &p.Devices[k]
		d.Slice = job.SliceID(name + "/" + d.Name)
		p.Layout = append(p.Layout, int64(k))
		m.Slices = append(m.Slices, Slice{ID: d.Slice, Notice: 30 * time.Second})
		if slices.Contains(ours, k) {
			d.Holder, d.End = Ours, quantity.Never
			m.Tenants = append(m.Tenants, Tenant{Slice: d.Slice, Began: start, End: quantity.Never})
		}
	}
	m.Pools = []Pool{p}
	return m
}

func profile(n int64, name string) []Request {
	return []Request{{Choices: []Choice{{N: n, Terms: []Term{{Kind: OfAttribute, Domain: "d", Name: "profile", Op: "==", Value: name}}}}}}
}

// wish for counted devices.
func wish(id string, n int64) *Wish {
	return &Wish{ID: ID(id), Who: "pod " + id, Equiv: Equiv{id, fmt.Sprint(n)}, Since: start, Asks: []Ask{{"gpu", n}}}
}

// deviceWish is a wish for devices of a profile.
func deviceWish(id string, n int64, of string) *Wish {
	return &Wish{ID: ID(id), Who: "pod " + id, Equiv: Equiv{id, of}, Since: start, Claims: []Claim{{Requests: profile(n, of)}}}
}

// told lists the holds on machines, one a line.
func told(k *Keeper, machines ...string) string {
	var list []string
	for _, m := range machines {
		for _, h := range k.Closures(m) {
			text := string(h.Slice)
			if h.Start != 0 {
				text += fmt.Sprintf(" from %v", h.Start.Sub(start))
			}
			if h.End != quantity.Never {
				text += fmt.Sprintf(" to %v", h.End.Sub(start))
			}
			if h.Truncate {
				text += " cut"
			}
			list = append(list, text+" for "+h.Who)
		}
	}
	return strings.Join(list, "\n")
}

func expect(t *testing.T, k *Keeper, want string, machines ...string) {
	t.Helper()
	if got := told(k, machines...); got != strings.TrimSpace(want) {
		t.Errorf("held are\n%s\nwant\n%s", got, strings.TrimSpace(want))
	}
}

// costs by slice; other slices are unknown.
func costs(of map[job.SliceID]Cost) Costs {
	return func(id job.SliceID) (Cost, bool) { c, known := of[id]; return c, known }
}
