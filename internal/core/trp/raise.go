package trp

import (
	"slices"

	"sluice.dev/sluice/internal/core/quantity"
)

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
