package mig

import (
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
)

const mib = quantity.Amount(1) << 20

// Boards lists every board known here, in order of name. The numbers are those of NVIDIA's MIG user guide and of
// published `nvidia-smi mig -lgip` and `-lgipp` outputs; usable memory varies a little with the driver.
func Boards() []Geometry {
	// Multiprocessors of 7g, 4g, 3g, 2g, 1g with double memory, 1g.
	ampere, hopper := [6]int{98, 56, 42, 28, 14, 14}, [6]int{132, 64, 60, 32, 26, 16}
	boards := []Geometry{
		thirty(),
		eighths("a100-40gb", "NVIDIA A100-SXM4-40GB", 40960, ampere, [4]int{40, 20, 10, 5}, [4]int{40192, 19968, 9856, 4864}),
		eighths("a100-80gb", "NVIDIA A100-SXM4-80GB", 81920, ampere, [4]int{80, 40, 20, 10}, [4]int{80384, 40192, 19968, 9856}),
		eighths("h100-80gb", "NVIDIA H100 80GB HBM3", 81559, hopper, [4]int{80, 40, 20, 10}, [4]int{81152, 40448, 20096, 9984}),
		eighths("h200-141gb", "NVIDIA H200", 143771, hopper, [4]int{141, 71, 35, 18}, [4]int{143360, 71168, 33280, 16384}),
	}
	for i := range boards {
		whole := boards[i].Profiles[0].SMs
		for j := range boards[i].Profiles {
			p := &boards[i].Profiles[j]
			p.Speed = int64(p.SMs) * 1000 / int64(whole)
		}
	}
	return boards
}

// thirty is the A30, the one board with four slices of each kind.
func thirty() Geometry {
	return Geometry{Name: "a30-24gb", Model: "NVIDIA A30", ComputeSlices: 4, MemorySlices: 4, Memory: 24576 * mib, Profiles: []Profile{
		profile("4g.24gb", 0, 4, 4, 1, 56, 23344, 0),
		profile("2g.12gb", 5, 2, 2, 2, 28, 11672, 0, 2),
		profile("2g.12gb+me", 6, 2, 2, 1, 28, 11672, 0, 2),
		profile("1g.6gb", 14, 1, 1, 4, 14, 5836, 0, 1, 2, 3),
		profile("1g.6gb+me", 21, 1, 1, 1, 14, 5836, 0, 1, 2, 3),
	}}
}

// eighths makes a board of eight memory and seven compute slices; all of them have the same ids and placements. gb and
// usable (MiB) are those of a whole board, a half, a quarter and an eighth.
func eighths(name, model string, whole quantity.Amount, sms [6]int, gb, usable [4]int) Geometry {
	named := func(compute, quarter int, suffix string) string {
		return fmt.Sprintf("%dg.%dgb%s", compute, gb[quarter], suffix)
	}
	ones := []int{0, 1, 2, 3, 4, 5, 6}
	return Geometry{Name: name, Model: model, ComputeSlices: 7, MemorySlices: 8, Memory: whole * mib, Profiles: []Profile{
		profile(named(7, 0, ""), 0, 7, 8, 1, sms[0], usable[0], 0),
		// 3g takes as many memory slices as 4g: two of them strand a compute slice.
		profile(named(4, 1, ""), 5, 4, 4, 1, sms[1], usable[1], 0),
		profile(named(3, 1, ""), 9, 3, 4, 2, sms[2], usable[1], 0, 4),
		profile(named(2, 2, ""), 14, 2, 2, 3, sms[3], usable[2], 0, 2, 4),
		profile(named(1, 2, ""), 15, 1, 2, 4, sms[4], usable[2], 0, 2, 4, 6),
		profile(named(1, 3, ""), 19, 1, 1, 7, sms[5], usable[3], ones...),
		profile(named(1, 3, "+me"), 20, 1, 1, 1, sms[5], usable[3], ones...),
	}}
}

// profile makes a Profile of usable MiB that may begin at starts; Speed is filled in by Boards.
func profile(name string, id, compute, size, most, sms, usable int, starts ...int) Profile {
	return Profile{Name: name, ID: id, Compute: compute, Size: size, Max: most, SMs: sms,
		Memory: quantity.Amount(usable) * mib, Starts: starts}
}

// Board returns the board a person names: "a100-80gb", "A100-80" and "a100-80gb" are the same. An error is of kind
// NotFound and lists the names there are.
func Board(name string) (Geometry, error) {
	boards := Boards()
	want := strings.TrimSuffix(strings.ToLower(strings.TrimSpace(name)), "gb")
	at := slices.IndexFunc(boards, func(g Geometry) bool { return strings.TrimSuffix(g.Name, "gb") == want })
	if at >= 0 {
		return boards[at], nil
	}
	names := make([]string, len(boards))
	for i, g := range boards {
		names[i] = g.Name
	}
	return Geometry{}, errkind.Errorf(errkind.NotFound, "board %q is not known; want one of %s", name, strings.Join(names, ", "))
}
