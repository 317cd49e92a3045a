//go:build kubernetes

package kubernetes

import (
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

func amountIn(a amount) reclaim.Amount { return reclaim.Amount{N: a.n, Places: int16(a.places)} }
