// Package random is the placement planner that draws a node uniformly among those with room, and for a share of a device
// a device uniformly among those of the node with room: the baseline that any thought must beat.
package random

import (
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/place"
)

// Kind of the planner. On nodes with devices of several classes, the class is drawn too. Draws are a function of the seed
// and of which arrival a task is.
func Kind() planner.Kind {
	return planner.Kind{
		Name:    "random",
		Summary: "a random node among those with room (baseline of FGD, USENIX ATC'23)",
		New: func(o planner.Options) (planner.Planner, error) {
			return place.New(o, place.Settings{})
		},
	}
}
