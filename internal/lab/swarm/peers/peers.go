// Package peers has the mechanisms that laminar is compared with, each as published, and the upper bound. Their shared parts are here once:
// what a scheduler believes to be free, who waits at it, and orders that are repeated until they are answered.
package peers

import "sluice.dev/sluice/internal/lab/swarm"

// Kinds in the order they are shown.
func Kinds() []swarm.Kind {
	return []swarm.Kind{Central(), TwoLevel(), Spillback(), Sparrow(), TwoChoices(), Omega(), Omniscient()}
}
