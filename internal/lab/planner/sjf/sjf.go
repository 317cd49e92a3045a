// Package sjf is shortest job first: whoever waits is served by declared run time, on the class where that is shortest, and who
// does not fit is passed over. Nothing is stopped and nothing kept: wide and long tasks may wait for ever. On one device, with
// everybody there and the truth declared, no order has a smaller mean completion (Smith, Naval Research Logistics Quarterly 1956).
package sjf

import (
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/ranked"
)

// Kind is the kind.
func Kind() planner.Kind {
	return ranked.Kind("sjf", "shortest job first: by declared run time, whoever does not fit is passed over (Smith, NRLQ 1956)",
		func(planner.Cluster) ranked.Rule { return ranked.Rule{First: ranked.Shortest} })
}
