// Package all is the ordered table of mechanisms for lean nodes. Adding one is a line here.
package all

import (
	"sluice.dev/sluice/internal/lab/swarm"
	"sluice.dev/sluice/internal/lab/swarm/laminar"
	"sluice.dev/sluice/internal/lab/swarm/peers"
)

// Kinds in the order they are shown.
func Kinds() []swarm.Kind { return append([]swarm.Kind{laminar.Kind()}, peers.Kinds()...) }
