package learn

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

const (
	// memoryStep is the least a memory kill raises the profile by, memoryHeadroom what is added to the observed peak.
	memoryStep, memoryHeadroom = 1150, 1100
)

// raiseMemory learns from a memory kill on a slice of this capacity, here (0: not known any more); largest is the largest that the job can
// run on. Two things are learned, and kept apart.
//
// The owner may be wrong by a factor: so the whole profile is scaled, such that the range which outgrew its slice would have been refused
// there, with a headroom, since how much more it needs is not known. That is a guess about all stretches but one, and no guess is worth
// the job: it ends where the largest slice still holds the profile, unless that is where it was killed.
//
// The stretch that it stood in used more than the slice has. That is known, whatever was declared of it: nothing that holds it is sold
// on such a slice again, or on a smaller one, and where no slice is larger the job can not go on.
func raiseMemory(l *protocol.Learned, spec *job.Spec, c *protocol.Claim, r *job.Result, here, largest quantity.Amount) {
	safe, share := Safe(l, spec), int64(trp.Unscaled)
	if o := spec.Option(c.Plan.Option); o != nil {
		share = o.Memory
	}
	least, scale := int64(safe.LeastOver(c.Range.From, c.Range.To, share)), l.MemoryScale
	// Else it was sold before one beside it was killed, and teaches no more.
	if here == 0 || quantity.MulDiv(least, scale, trp.Unscaled) <= int64(here) {
		scale = quantity.MulDiv(scale, memoryStep, 1000)
	}
	if least > 0 {
		scale = max(scale, quantity.MulDiv(int64(r.Peak[trp.Memory]), memoryHeadroom, least))
	}
	peak := int64(safe.Peak(trp.Unscaled))
	if spec.Kind == job.Rigid {
		peak = int64(safe.LeastOver(0, spec.Total, trp.Unscaled))
	}
	escapes := 0 < here && here < largest
	if escapes && least > 0 && peak > 0 {
		holds := quantity.MulDiv(int64(largest), 1000, peak) - 1
		if spec.External { // its agent hears of the scale alone
			holds = max(holds, int64(here)/least*1000+int64(here)%least*1000/least+1)
		}
		scale = min(scale, max(holds, l.MemoryScale))
	}
	l.MemoryScale = scale
	at := min(max(r.Progress, c.Range.From), c.Range.To-1)
	effective := quantity.MulDiv(scale, share, trp.Unscaled)
	used := max(here, r.Peak[trp.Memory]-1)
	if escapes {
		used = here // a sample beyond the largest slice is no proof that it needs more than that
	}
	if effective <= 0 || used <= 0 || safe.LeastOver(at, at+1, effective) > used {
		return
	}
	need := quantity.Amount(quantity.MulDiv(int64(max(used, r.Peak[trp.Memory])), memoryHeadroom, 1000))
	if escapes {
		need = min(need, largest-quantity.Amount(effective/trp.Unscaled)-1) // what scaling rounds up
	}
	need = max(need, used+1)
	raised := safe.Raised(at, quantity.Amount(quantity.MulDiv(int64(need), trp.Unscaled, effective)))
	l.Safe = &raised
}

// Safe is the profile for plans, from what was learned.
func Safe(l *protocol.Learned, spec *job.Spec) *trp.Table {
	if l.Safe != nil {
		return l.Safe
	}
	return &spec.Safe
}
