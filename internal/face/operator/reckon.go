//go:build kubernetes

package operator

import (
	"context"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/job"
	giveback "sluice.dev/sluice/internal/core/reclaim"
	"sluice.dev/sluice/internal/edge/inventory"
	"sluice.dev/sluice/internal/host"
)

const (
	// reckonWithin bounds how long the host may take to say what a machine's subjobs would lose; after a failure it is not asked for
	// reckonAgain.
	reckonWithin = 200 * time.Millisecond
	reckonAgain  = 10 * time.Second
	// mostLeft is the time left that is assumed for a subjob without an end.
	mostLeft = 365 * 24 * time.Hour
)

// reckoner is an inventory that gives slices back and needs to know the cost.
type reckoner interface {
	Reckon(costs func([]job.SliceID) map[job.SliceID]giveback.Cost)
}

// reckon connects an inventory to the host, where the jobs' homes know what work of a subjob would have to be repeated.
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
