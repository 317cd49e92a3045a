package atomizer

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// speed of the job under its option, in parts per thousand, where it has this one without; 0 stays 0.
func (v *View) speed(plain int64) int64 {
	if v.Option == nil {
		return plain
	}
	return quantity.MulDiv(plain, v.Option.Speed, 1000)
}

// Safe is the profile that plans use: what was learned where there is such a thing, else as submitted.
func (v *View) Safe() *trp.Table {
	if v.Learned.Safe != nil {
		return v.Learned.Safe
	}
	return &v.Spec.Safe
}

// Scale of the profile in parts per thousand: what memory kills have taught, times what the option takes.
func (v *View) Scale() int64 {
	scale := v.Learned.MemoryScale
	if v.Option == nil {
		return scale
	}
	if scale <= 0 {
		scale = trp.Unscaled
	}
	return quantity.MulDiv(scale, v.Option.Memory, 1000)
}

// Peak is the probable peak of a piece that is sold with a demand.
func (v *View) Peak(r job.Range, demand trp.Vector) trp.Peak {
	p := trp.Widened(v.Spec.Profile, v.Learned.Spread)
	return trp.PeakOver(&p, r.From, r.To, v.Scale(), v.Spec.Theta, demand[trp.Memory])
}

// Left is how many units are neither committed nor claimed.
func (v *View) Left() int64 {
	if v.forSale > 0 {
		return v.forSale
	}
	return v.Spec.Total - v.Committed.Len() - v.Claimed.Len()
}
