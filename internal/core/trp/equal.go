package trp

import "slices"

// Equal says whether two declared profiles are the same.
func (p *Profile) Equal(o *Profile) bool {
	return p.Form == o.Form && p.Combine == o.Combine && slices.Equal(p.Phases, o.Phases) &&
		slices.EqualFunc(p.Runs, o.Runs, slices.Equal) &&
		slices.Equal(p.Bounds, o.Bounds) && slices.Equal(p.Curve, o.Curve)
}

// Equal says whether two compiled profiles are the same.
func (t *Table) Equal(o *Table) bool {
	return slices.Equal(t.Bounds, o.Bounds) && slices.EqualFunc(t.Least, o.Least, slices.Equal)
}
