// Package all is the ordered table of mechanisms for lean nodes. Adding one is a folder and a line here.
package all

import (
	"sluice.dev/sluice/internal/lab/swarm"
	"sluice.dev/sluice/internal/lab/swarm/central"
	"sluice.dev/sluice/internal/lab/swarm/laminar"
	"sluice.dev/sluice/internal/lab/swarm/omega"
	"sluice.dev/sluice/internal/lab/swarm/omniscient"
	"sluice.dev/sluice/internal/lab/swarm/sparrow"
	"sluice.dev/sluice/internal/lab/swarm/spillback"
	"sluice.dev/sluice/internal/lab/swarm/twochoices"
	"sluice.dev/sluice/internal/lab/swarm/twolevel"
)

// Kinds in the order they are shown.
func Kinds() []swarm.Kind {
	return []swarm.Kind{
		laminar.Kind(),
		central.Kind(),
		twolevel.Kind(),
		spillback.Kind(),
		sparrow.Kind(),
		twochoices.Kind(),
		omega.Kind(),
		omniscient.Kind(),
	}
}
