package trp

import (
	"slices"

	"sluice.dev/sluice/internal/core/quantity"
)

// Unscaled is the scale, in parts per thousand, of a profile as declared. Every method of Table takes a scale: needs
// are multiplied by it and rounded up, as they are raised after a memory kill. A scale of 0 (or less) is Unscaled.
const Unscaled = 1000

// scaled is a need at a scale, rounded up.
func scaled(a quantity.Amount, scale int64) quantity.Amount {
	if scale <= 0 || scale == Unscaled {
		return a
	}
	return quantity.Amount(quantity.MulDiv(int64(a), scale, Unscaled))
}

// stretch is the index of the stretch that unit x >= 0 lies in; len(t.Bounds) for one past the end.
func (t *Table) stretch(x int64) int {
	i, _ := slices.BinarySearch(t.Bounds, x+1)
	return i
}

// start is the first unit of stretch i.
func (t *Table) start(i int) int64 {
	if i == 0 {
		return 0
	}
	return t.Bounds[i-1]
}

// Total is the number of units the table covers; 0 for the zero table.
func (t *Table) Total() int64 {
	if len(t.Bounds) == 0 {
		return 0
	}
	return t.Bounds[len(t.Bounds)-1]
}

// LeastOver is the least capacity at which the piece [from, to) is safe; 0 for an empty piece. Units past the total are
// not there and need nothing.
func (t *Table) LeastOver(from, to, scale int64) quantity.Amount {
	to = min(to, t.Total())
	if from = max(from, 0); from >= to {
		return 0
	}
	i, j := t.stretch(from), t.stretch(to-1)
	return scaled(t.Least[i][j-i], scale)
}

// Reach is the furthest unit, at most limit and the total, such that [from, it) is safe on capacity; from itself if
// there is none.
func (t *Table) Reach(from int64, capacity quantity.Amount, limit, scale int64) int64 {
	limit = min(limit, t.Total())
	if from < 0 || from >= limit {
		return from
	}
	i := t.stretch(from)
	reach := from
	for k, need := range t.Least[i] {
		if reach >= limit || scaled(need, scale) > capacity {
			break
		}
		reach = t.Bounds[i+k]
	}
	return min(reach, limit)
}

// NextSafe is the first unit, from from on, at which a piece of at least one unit is safe on capacity; limit (or the
// total, if that comes first) if there is none. It serves jobs of independent items, which may skip what does not fit.
func (t *Table) NextSafe(from, limit int64, capacity quantity.Amount, scale int64) int64 {
	limit = min(limit, t.Total())
	from = max(from, 0)
	for i := t.stretch(from); i < len(t.Bounds) && t.start(i) < limit; i++ {
		if scaled(t.Least[i][0], scale) <= capacity {
			return min(max(from, t.start(i)), limit)
		}
	}
	return limit
}

// Peak is the largest need of any single stretch: a slice smaller than that can't finish the job.
func (t *Table) Peak(scale int64) quantity.Amount {
	var peak quantity.Amount
	for i := range t.Least {
		peak = max(peak, t.Least[i][0])
	}
	return scaled(peak, scale)
}

// triangle makes an empty table over bounds.
func triangle(bounds []int64) Table {
	n := len(bounds)
	t := Table{Bounds: bounds, Least: make([][]quantity.Amount, n)}
	for i := range t.Least {
		t.Least[i] = make([]quantity.Amount, n-i)
	}
	return t
}

// Raised is the table in which every piece that holds unit x needs at least so much, at scale Unscaled: what is known once a run was seen
// to use it there. Other pieces need what they did. The table itself is not changed; a unit that it does not cover changes nothing.
func (t *Table) Raised(x int64, least quantity.Amount) Table {
	out := Table{Bounds: t.Bounds, Least: slices.Clone(t.Least)}
	at := t.stretch(x)
	if x < 0 || at == len(t.Bounds) {
		return out
	}
	for i := range at + 1 {
		row := slices.Clone(t.Least[i])
		for k := at - i; k < len(row); k++ {
			row[k] = max(row[k], least)
		}
		out.Least[i] = row
	}
	return out
}
