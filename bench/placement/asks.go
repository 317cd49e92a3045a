package placement

import (
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/prng"
)

// Levels are the capacities that size classes are made of.
func Levels() flow.Classes { return flow.Classes{10e9, 20e9, 40e9, 60e9} }

// Slices of a node.
const Slices = 4

// Work is the mix of node layouts and of the size classes asked for.
type Work struct {
	// layouts are given to nodes in rotation: how many slices of each class.
	layouts []flow.Fragments
	// mix is the cumulative share of asks of each class, in percent.
	mix []int
}

// Usual is the work of the simulator's worlds: four size classes, and more of the smallest asks than there are slices of just their class,
// so that some run on larger ones.
func Usual() Work {
	return Work{[]flow.Fragments{{2, 1, 1}, {1, 3}, {2, 1, 1}, {3, 0, 0, 1}, {1, 3}}, []int{55, 90, 97, 100}}
}

// Mixed are the same nodes, with as many asks of each class as there are slices of it.
func Mixed() Work {
	return Work{[]flow.Fragments{{2, 1, 1}, {1, 3}, {2, 1, 1}, {3, 0, 0, 1}, {1, 3}}, []int{45, 85, 95, 100}}
}

// Alike are slices and asks of one size.
func Alike() Work { return Work{[]flow.Fragments{{Slices}}, []int{100}} }

// Layout is what the node of a number has.
func (w Work) Layout(node int) flow.Fragments { return w.layouts[node%len(w.layouts)] }

// Ask draws the class of an ask.
func (w Work) Ask(source *prng.Stream) flow.Class {
	r, c := source.IntN(100), 0
	for r >= w.mix[c] {
		c++
	}
	return flow.Class(c)
}
