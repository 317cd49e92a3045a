package place

import "sluice.dev/sluice/internal/lab/planner"

// Kinds in the order they are shown.
func Kinds() []planner.Kind {
	return []planner.Kind{BestFit(), Random(), DotProduct(), Clustering(), Packing()}
}

// Random is the placement planner that draws a node uniformly among those with room, and for a share of a device
// a device uniformly among those of the node with room: the baseline that any thought must beat.
//
// On nodes with devices of several classes, the class is drawn too. Draws are a function of the seed
// and of which arrival a task is.
func Random() planner.Kind {
	return kind("random", "a random node among those with room (baseline of FGD, USENIX ATC'23)", Settings{})
}

func kind(name, summary string, with Settings) planner.Kind {
	return planner.Kind{Name: name, Summary: summary, New: func(o planner.Options) (planner.Planner, error) { return New(o, with) }}
}
