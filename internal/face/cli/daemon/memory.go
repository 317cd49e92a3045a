package daemon

import (
	"fmt"

	"sluice.dev/sluice/internal/core/joint"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/survival"
)

// heldAgainst returns the memory that starts are checked against, with the chance that the peaks of subjobs together exceed it, and a note
// for the start. By default it is the memory below the severe line of the smallest control group around the daemon, or of the machine, and
// not counted where a slice is larger than its node's part of it: such a slice is for trials, whose jobs never use what they declare.
// Slices with a device take none of it.
func heldAgainst(o *config.Airlock, s survival.Survival, nodes int, list []protocol.Slice) (c joint.Config, said string) {
	most, hosted := quantity.Amount(0), 0
	for i := range list {
		if list[i].Device == "" {
			hosted++
			most = max(most, list[i].Capacity[trp.Memory])
		}
	}
	switch {
	case o.Uncounted:
		return c, "not counted: key airlock.memory of the daemon's file says so"
	case hosted == 0:
		return c, "not counted: every slice has a device with memory of its own"
	}
	c.Memory, c.Excess = o.Memory, o.Excess
	if c.Memory == 0 {
		var m survival.Memory
		if s == nil {
			return joint.Config{}, "not counted: nobody looks at this machine's memory (key airlock.kind of the daemon's file)"
		}
		if err := s.Sense(0, &m); err != nil || m.Least <= 0 {
			return joint.Config{}, fmt.Sprintf("not counted: how much there is can't be read: %v", err)
		}
		lines := o.Lines.WithDefaults()
		c.Memory = quantity.Amount(quantity.MulDiv(int64(m.Least), lines.Severe, 1000))
		if part := c.Memory / quantity.Amount(nodes); most > part {
			return joint.Config{}, fmt.Sprintf("not counted: a slice has %s, and its node %s of this machine's memory; key "+
				"airlock.memory of the daemon's file has it counted all the same",
				quantity.FormatBytes(most), quantity.FormatBytes(part))
		}
	}
	c = c.WithDefaults()
	return c, fmt.Sprintf("%s for the peaks of %d slices, which may pass it with a chance of %g", quantity.FormatBytes(c.Memory), hosted,
		float64(c.Excess)/1e6)
}
