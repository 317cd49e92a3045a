package mig

import "sluice.dev/sluice/internal/core/quantity"

// Whole is the profile of a GPU that is not cut.
const Whole = "gpu"

// Known is what the tables know of a profile or of a whole GPU.
type Known struct {
	// Memory in bytes that a process can use; 0: that is not known.
	Memory quantity.Amount
	// Speed in parts per thousand of the whole GPU that it is of.
	Speed int64
}

// tables are all boards, made once.
var tables = Boards() //nolint:gochecknoglobals // written to by nobody

// ModelOf is a product's name as its board has it: "A100-SXM4-80GB" is "NVIDIA A100-SXM4-80GB". A product that is not in
// the tables keeps its own, and is of no board.
func ModelOf(product string) (model string, known bool) {
	for _, g := range tables {
		if g.is(product) {
			return g.modelOf(product), true
		}
	}
	return product, false
}

// modelOf is which of the board's models a product is, the first for the board's own name.
func (g *Geometry) modelOf(product string) string {
	for _, m := range g.Also {
		if plain(m) == plain(product) {
			return m
		}
	}
	return g.Model
}

// Lookup is what is known of a profile of that model, or of a Whole one. Of anything else nothing is known, and it counts as whole. For a
// model not in the tables only a profile name that some board has counts: its gigabytes, at most the least of any board under that name,
// and its share of the compute slices. A name that no board has gives only a share of seven.
func Lookup(model, profile string) Known {
	n, is := parseName(profile)
	for _, g := range tables {
		if !g.is(model) {
			continue
		}
		if profile == Whole {
			return Known{g.Memory, 1000}
		}
		if p, has := g.Profile(profile); has {
			return Known{p.Memory, p.Speed}
		}
	}
	if !is {
		return Known{Speed: 1000}
	}
	least := Known{named(n.gigabytes), 1000}
	has := false
	for _, g := range tables {
		if p, there := g.Profile(profile); there {
			has, least.Memory, least.Speed = true, min(least.Memory, p.Memory), min(least.Speed, share(n, g.ComputeSlices))
		}
	}
	if !has {
		return Known{Speed: share(n, 7)}
	}
	return least
}

// share of a board with this many compute slices, in parts per thousand.
func share(n name, slices int) int64 {
	compute := n.compute
	if n.part > 0 {
		compute = n.part
	}
	return int64(min(compute, slices)) * 1000 / int64(slices)
}
