// Package easysjbf is EASY with shortest-job backfill (Tsafrir, Etsion and Feitelson, "Backfilling using system-generated
// predictions rather than user runtime estimates", TPDS 2007): tasks start in the order of arrival, the first that does not
// fit has a reservation, and those that may overtake it are tried by declared run time, the shortest first. So nobody waits
// for ever.
package easysjbf

import (
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/ranked"
)

// Kind is the kind.
func Kind() planner.Kind {
	return ranked.Kind("easy-sjbf", "EASY backfilling, the shortest first behind the reservation (Tsafrir et al., TPDS 2007)",
		func(planner.Cluster) ranked.Rule {
			return ranked.Rule{First: ranked.Earliest, Behind: ranked.Shortest, Keeps: true}
		})
}
