package nvml

import (
	"errors"
	"os"
	"strings"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// card is a GPU with what is cut from it, as it was when it last answered.
type card struct {
	gpu    gpu
	slices []job.SliceID
	places []place
}

// errors are those of an event, for each slice that it is about: a GPU instance may have several. It is about the GPU as a whole where it
// names no piece, or one that is not known.
func (c *card) errors(e event) (list []protocol.Xid) {
	for i, p := range c.places {
		if e.GPUInstance >= 0 && p.GPUInstance == e.GPUInstance && (e.ComputeInstance < 0 || p.ComputeInstance == e.ComputeInstance) {
			list = append(list, protocol.Xid{Code: e.Xid, On: c.slices[i]})
		}
	}
	if list == nil {
		list = []protocol.Xid{{Code: e.Xid}}
	}
	return list
}

// look asks a GPU how it is; false: it does not say, for a trouble that may pass.
func (c *card) look() (*health.Look, bool) {
	h, err := c.gpu.Health()
	l := &health.Look{Told: h.Told}
	bad := func(is bool, c health.Cause, text string) {
		if is {
			l.States = append(l.States, health.State{Cause: c, Text: text})
		}
	}
	bad(errors.Is(err, errLost), health.Lost, "the GPU does not answer: it has fallen off the bus; it needs a reset, or its machine a "+
		"restart")
	bad(errors.Is(err, errReset), health.NeedsReset, "the driver says that the GPU must be reset")
	bad(h.Recovery != "" && !h.Drain, health.NeedsReset, "the driver says what the GPU needs: "+h.Recovery)
	bad(h.Recovery != "" && h.Drain, health.NeedsDrain, "the driver says what the GPU needs: "+h.Recovery)
	bad(h.RowsFailed, health.RowsFailed, "a row of its memory has failed and could not be remapped: the GPU is to be replaced")
	bad(h.RowsPending, health.RowsPending, "rows of its memory wait to be remapped: the GPU needs a reset")
	return l, err == nil || len(l.States) > 0
}

// machineLife names the time since this machine was started; empty where the kernel does not say.
func machineLife() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
