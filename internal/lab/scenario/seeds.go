package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Seeds reads a set of seeds: numbers and ranges joined by commas, such as 1-20 or 1,3,9, in rising order, each once.
func Seeds(text string) ([]uint64, error) {
	var out []uint64
	for _, part := range strings.Split(text, ",") {
		first, last, ranged := strings.Cut(strings.TrimSpace(part), "-")
		a, err := strconv.ParseUint(first, 10, 64)
		b := a
		if err == nil && ranged {
			b, err = strconv.ParseUint(last, 10, 64)
		}
		if err != nil || b < a {
			return nil, fmt.Errorf("%q is no seed or range of seeds; want for example 1-20 or 1,3,9", part)
		}
		if b-a >= MaxSeeds || len(out)+int(b-a) >= MaxSeeds {
			return nil, fmt.Errorf("%q makes more than %d seeds", text, MaxSeeds)
		}
		for n := range b - a + 1 {
			out = append(out, a+n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
