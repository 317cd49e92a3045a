//go:build kubernetes

package kubernetes

import (
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"sluice.dev/sluice/internal/core/reclaim"
)

// finest are the decimal places of a Kubernetes quantity at most.
const finest = 9

// amountOf is a quantity, exactly if it fits. One of more than 18 digits is rounded, up or down.
func amountOf(q *resource.Quantity, up bool) amount {
	for places := int8(0); places <= finest; places += 3 {
		a := amount{q.ScaledValue(resource.Scale(-places)), places}
		if a.cmp(q) == 0 {
			return a
		}
	}
	n := q.Value() // rounded up
	if !up && q.CmpInt64(n) < 0 {
		n--
	}
	return amount{n: n}
}

func (a amount) cmp(q *resource.Quantity) int {
	return resource.NewScaledQuantity(a.n, resource.Scale(-a.places)).Cmp(*q)
}

// in is the amount as a number of units of 10^-places; what is finer is rounded, up or down, and nothing is beyond most.
func (a amount) in(places int8, up bool, most int64) int64 {
	n := a.n
	for at := a.places; at < places; at++ {
		if n > most/10 {
			return most
		}
		n *= 10
	}
	for at := a.places; at > places; at-- {
		rest := n % 10
		if n /= 10; up && rest > 0 {
			n++
		}
	}
	return min(n, most)
}

// fraction reports whether a count has one.
func fraction(c count) bool { return c.places > 0 }

// mostUnits bounds a total that is counted in fractions: so many of these, and all that is taken of them, fit in an int64.
const mostUnits = math.MaxInt64 / 4096

// even counts each counter of a pool in one unit, so that sums of integers are exact: in the finest of its fractions, as far as its total
// fits in that. parts are the pool's.
func (p *published) even(parts []*offer) {
	places := map[[2]string]int8{}
	note := func(list []count) {
		for _, c := range list {
			k := [2]string{c.set, c.counter}
			places[k] = max(places[k], c.places)
		}
	}
	for _, o := range parts {
		note(o.counters)
		for i := range o.devices {
			note(o.devices[i].uses)
		}
	}
	total := map[[2]string]int64{}
	for _, o := range parts {
		for _, c := range o.counters {
			k := [2]string{c.set, c.counter}
			for places[k] > 0 && c.in(places[k], false, mostUnits) == mostUnits {
				places[k]--
			}
			total[k] = c.in(places[k], false, math.MaxInt64)
		}
	}
	p.total = total
	for i := range p.devices {
		d := &p.devices[i]
		if len(d.uses) == 0 {
			continue
		}
		d.uses = slices.Clone(d.uses) // the driver's are shared
		for k := range d.uses {
			u := &d.uses[k]
			key := [2]string{u.set, u.counter}
			most := int64(math.MaxInt64)
			if places[key] > 0 {
				most = total[key] + 1 // which is as much too much as anything
			}
			u.amount = amount{u.in(places[key], true, most), places[key]}
		}
	}
}

func amountIn(a amount) reclaim.Amount { return reclaim.Amount{N: a.n, Places: int16(a.places)} }
