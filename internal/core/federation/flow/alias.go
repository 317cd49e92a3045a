package flow

import (
	"math/bits"

	"sluice.dev/sluice/internal/core/prng"
)

// Alias draws a zone by its share in O(1) (Walker 1977; built as Vose has it, 1991), in integers: what is drawn has exactly the
// share it was built with, in units of 2^-32/Z. The zero value has no zones.
type Alias struct {
	columns []column
	// worklist is scratch of Build.
	worklist []uint32
}

// column of the table: below cut it is its own zone, from there on the other one. A column that is its own altogether has itself as the
// other.
type column struct{ cut, other uint32 }

// Build makes the table from shares that sum to len(shares)*unit. It overwrites them. It allocates only to grow.
func (a *Alias) Build(shares []uint64) {
	n := len(shares)
	if cap(a.columns) < n {
		a.columns, a.worklist = make([]column, n), make([]uint32, n)
	}
	a.columns, a.worklist = a.columns[:n], a.worklist[:n]
	// Zones with less than a column from the front of the list, the others from its back.
	small, large := 0, n
	for i, s := range shares {
		if s < unit {
			a.worklist[small] = uint32(i)
			small++
		} else {
			large--
			a.worklist[large] = uint32(i)
		}
	}
	for small > 0 && large < n {
		small--
		s, l := a.worklist[small], a.worklist[large]
		a.columns[s] = column{cut: uint32(shares[s]), other: l}
		if shares[l] -= unit - shares[s]; shares[l] < unit {
			large++
			a.worklist[small] = l
			small++
		}
	}
	for ; large < n; large++ {
		l := a.worklist[large]
		a.columns[l] = column{other: l}
	}
	// Shares sum to whole columns, so no small one is left without a large one.
}

// Draw takes one number of a stream.
func (a *Alias) Draw(s *prng.Stream) ZoneID {
	hi, lo := bits.Mul64(s.Uint64(), uint64(len(a.columns)))
	c := a.columns[hi]
	if uint32(lo>>32) < c.cut {
		return ZoneID(hi)
	}
	return ZoneID(c.other)
}

// Share is the chance that a zone is drawn, in units of 2^-32/Z. It looks at the whole table: for people and tests.
func (a *Alias) Share(z ZoneID) uint64 {
	sum := uint64(0)
	for i, c := range a.columns {
		if i == int(z) {
			sum += uint64(c.cut)
		}
		if c.other == uint32(z) {
			sum += unit - uint64(c.cut)
		}
	}
	return sum
}
