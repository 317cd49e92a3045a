// Package peers is the mechanisms that laminar is held against, each as it is published, and the upper line. What several of them have is
// here once: what a scheduler believes to be free, who waits at it, and orders that are repeated until they are answered.
package peers

import "sluice.dev/sluice/internal/lab/swarm"

// Kinds in the order they are shown.
func Kinds() []swarm.Kind {
	return []swarm.Kind{Central(), TwoLevel(), Spillback(), Sparrow(), TwoChoices(), Omega(), Omniscient()}
}
