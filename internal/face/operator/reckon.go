//go:build kubernetes

package operator

import (
	"context"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/giveback"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/inventory"
	"sluice.dev/sluice/internal/host"
)

const (
	// reckonWithin is how long the host may take to say what a machine's subjobs would lose; where it can't, it is not asked again for reckonAgain.
	reckonWithin = 200 * time.Millisecond
	reckonAgain  = 10 * time.Second
	// mostLeft is the time left of one that has no end.
	mostLeft = 365 * 24 * time.Hour
)

// reckoner is an inventory that gives slices back, and asks what that costs.
type reckoner interface {
	Reckon(costs func([]job.SliceID) map[job.SliceID]giveback.Cost)
}

// reckon has an inventory ask the host: the homes of jobs know what a subjob has done that would be done again.
func reckon(inv inventory.Inventory, h *host.Host) {
	r, ok := inv.(reckoner)
	if !ok {
		return
	}
	var silent time.Time
	r.Reckon(func(ids []job.SliceID) map[job.SliceID]giveback.Cost {
		if time.Now().Before(silent) {
			return nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), reckonWithin)
		defer cancel()
		cuts, err := h.CutsOf(ctx, ids)
		if err != nil {
			silent = time.Now().Add(reckonAgain)
			return nil
		}
		costs := make(map[job.SliceID]giveback.Cost, len(cuts))
		for i := range cuts {
			c := &cuts[i]
			_, own, _ := strings.Cut(string(c.Slice), "/")
			id := job.SliceID(own)
			costs[id] = costs[id].Plus(giveback.Cost{Lost: c.AtRisk, Left: min(max(0, c.End.Sub(c.At)), mostLeft)})
		}
		return costs
	})
}
