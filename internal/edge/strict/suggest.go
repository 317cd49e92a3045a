package strict

import (
	"fmt"
	"slices"
	"strings"
)

// Suggest says what somebody who wrote word may have meant, of known: the word, empty if none is near, and a hint that
// always says something useful.
func Suggest(word string, known []string) (meant, hint string) {
	best, least := "", max(2, len(word)/3)+1
	for _, k := range known {
		if len(word) > 64 {
			break // nobody's slip
		}
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	// A short word is near everything; two changes of three letters are another word.
	if best != "" && least < max(len(word), len(best)) {
		return best, fmt.Sprintf("did you mean %q?", best)
	}
	sorted := slices.Clone(known)
	slices.Sort(sorted)
	return "", "want one of " + strings.Join(sorted, ", ")
}

// distance is how many single changes (add, remove, replace a byte, swap two neighbours) lead from a to b: optimal
// string alignment. Long words are cut, as a key of ours is never long.
func distance(a, b string) int {
	a, b = a[:min(len(a), 64)], b[:min(len(b), 64)]
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// Hint says what somebody who wrote word may have meant of the known words: "did you mean x?", or the list of them.
func Hint(word string, known []string) string {
	_, hint := Suggest(word, known)
	return hint
}
