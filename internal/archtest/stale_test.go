package archtest

import (
	"fmt"
	"maps"
	"slices"
)

// Stale finds entries of the tables of rules that name what is not in the tree: such a rule holds for nothing. exists is asked
// with a slash-separated path from the root of the repository.
func Stale(exists func(name string) bool) []string {
	named := map[string]string{}
	for _, w := range wings {
		named[w.dir] = "wings"
	}
	for p := range coreLevel {
		named["internal/core/"+p] = "coreLevel"
	}
	for x, others := range extensionPoints {
		named[x] = "extensionPoints"
		for _, o := range others {
			named[x+"/"+o] = "extensionPoints"
		}
	}
	for p := range federates {
		named[p] = "federates"
	}
	for p := range unlisted {
		named[p] = "unlisted"
	}
	for name := range floats {
		named[name] = "floats"
	}
	for _, rule := range forbidden {
		for _, p := range append([]string{rule.In, rule.Import}, rule.Except...) {
			if wingOf(p) >= 0 {
				named[p] = "forbidden"
			}
		}
	}
	var bad []string
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if !exists(name) {
			bad = append(bad, fmt.Sprintf("%s of internal/archtest names %s, which does not exist: take it out", named[name], name))
		}
	}
	return bad
}
