// Package mig is the geometry of NVIDIA's Multi-Instance GPU: which boards can be cut, into which profiles, where each
// may lie, and whether a wished layout is one that the hardware would make. It is data and rules for simulation and for
// checking what a person writes; a node with a driver asks the driver. It must not know slices, jobs or time.
//
// "Profile" is MIG's own word for a kind of GPU instance ("1g.10gb") and stays in this package; elsewhere a profile is a
// job's use of memory (package trp).
package mig

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/core/quantity"
)

// Profile is one kind of GPU instance that a board can be cut into.
type Profile struct {
	// Name as drivers print it: "3g.40gb", "1g.10gb+me". The number of gigabytes in it is about what can be used.
	Name string
	// ID is the GPU instance profile id as drivers number it (19 for the smallest); used in device names.
	ID int
	// Compute is the number of compute slices; Size the number of memory slices, which is what placement is about.
	Compute, Size int
	// Starts are the memory slices it may begin at, rising.
	Starts []int
	// Max is how many the board can have at once.
	Max int
	// SMs is the number of multiprocessors; 0: it was not published.
	SMs int
	// Media is how many of the board's media engines it takes, where the board counts them.
	Media int
	// Memory that a process can use, in bytes.
	Memory quantity.Amount
	// Speed in parts per thousand of the whole board in one instance: its share of the multiprocessors, or of the compute slices
	// where those are not published, rounded down.
	Speed int64
}

// Geometry is one board.
type Geometry struct {
	// Name is how a person asks for it: "a100-80gb". Model is the product's name, Also those of products that are cut alike.
	Name, Model string
	Also        []string
	// ComputeSlices and MemorySlices it is divided into.
	ComputeSlices, MemorySlices int
	// Media engines of a board whose profiles differ in them; 0: they are not counted.
	Media int
	// Memory of the whole GPU with MIG off, in bytes.
	Memory quantity.Amount
	// Profiles from the largest to the smallest.
	Profiles []Profile
}

// Profile returns the profile of that name, in any spelling (Canonical).
func (g *Geometry) Profile(name string) (Profile, bool) {
	name, _ = Canonical(name)
	for _, p := range g.Profiles {
		if p.Name == name {
			return p, true
		}
	}
	return Profile{}, false
}

// Instance is a profile at its place.
type Instance struct {
	Profile Profile
	// Start is the first memory slice it takes.
	Start int
}

// String is profile@start, for example "3g.40gb@4".
func (i Instance) String() string { return fmt.Sprintf("%s@%d", i.Profile.Name, i.Start) }

// overlaps says whether both take a common memory slice.
func (i Instance) overlaps(j Instance) bool {
	return i.Start < j.Start+j.Profile.Size && j.Start < i.Start+i.Profile.Size
}

// Layout is a set of instances that the board can have at once, in order of their starts.
type Layout []Instance

// String names the profiles, equal ones counted: "3g.40gb+2g.20gb+2x1g.10gb", largest first. ParseLayout reads it back
// to the same profiles, perhaps at other places.
func (l Layout) String() string {
	counts := map[string]int{}
	var order []Profile
	for _, i := range l {
		if counts[i.Profile.Name]++; counts[i.Profile.Name] == 1 {
			order = append(order, i.Profile)
		}
	}
	sortLargestFirst(order)
	var b strings.Builder
	for n, p := range order {
		if n > 0 {
			b.WriteByte('+')
		}
		if c := counts[p.Name]; c > 1 {
			b.WriteString(strconv.Itoa(c) + "x")
		}
		b.WriteString(p.Name)
	}
	return b.String()
}

// largestFirst orders profiles by memory slices, then compute slices, then name.
func largestFirst(a, b Profile) int {
	return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(b.Compute, a.Compute), strings.Compare(a.Name, b.Name))
}

func sortLargestFirst(ps []Profile) { slices.SortFunc(ps, largestFirst) }
