package process

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// onDevice returns how much of their slice's own memory the given processes use now; 0 where it can't be measured. It records the peak.
// The device itself refuses more than it has, so there is nothing to enforce.
func (r *run) onDevice(members []tree.Member) (used quantity.Amount) {
	if r.e.o.Use == nil || r.lease.DeviceMemory == 0 {
		return 0
	}
	use, err := r.e.o.Use(r.e.o.Present(r.lease.Slice))
	if err != nil {
		r.e.o.Logger.Debug("what a subjob uses of its GPU can't be told", "subjob", r.token.String(), "err", err)
		return 0
	}
	for _, m := range members {
		used += quantity.Amount(use[m.PID])
	}
	r.mu.Lock()
	r.onGPU = max(r.onGPU, used)
	r.mu.Unlock()
	return used
}

// observed adds to a result what the supervisor can't see: the use of a GPU's memory, as far as this daemon looked. The
// caller holds r.mu.
func (r *run) observed(res job.Result) job.Result {
	res.Peak[trp.Memory] = max(res.Peak[trp.Memory], r.onGPU)
	return res
}
