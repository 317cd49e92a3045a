// Package strict reads strict YAML (so JSON too): unknown and doubled keys are errors, anchors are refused, and one error lists every
// problem with its file, line, column, key path, what is wrong and what would be right. Nothing is half-accepted.
//
// Value and Object report what is wrong to their file's list and then give a harmless value, so that one pass finds everything.
package strict

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/internal/core/errkind"
)

const (
	// MaxFileBytes is the largest file that is read: 1 MiB.
	MaxFileBytes = 1 << 20

	maxDepth    = 16      // of nested lists and mappings; ours need 5
	maxNodes    = 200_000 // of one document; a full ensemble (4096 runs of 40 phases) still fits
	maxProblems = 50      // more are counted, not listed
)

// Problem is one thing wrong with a file.
type Problem struct {
	File string
	// Line and Column count from 1.
	Line, Column int
	// Path of keys, such as spec.items.total; empty for the whole document.
	Path string
	// Text says what is wrong and what would be right.
	Text string
}

// String is the form people see: file:line:column: path: text.
func (p Problem) String() string {
	if p.Path == "" {
		return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Text)
	}
	return fmt.Sprintf("%s:%d:%d: %s: %s", p.File, p.Line, p.Column, p.Path, p.Text)
}

// Problems is the error of a refused file: everything that is wrong with it, in the order of the file.
type Problems struct {
	List []Problem
	// More were found than are listed.
	More int
}

// Error is one line for each problem.
func (ps *Problems) Error() string {
	lines := make([]string, 0, len(ps.List)+1)
	for _, p := range ps.List {
		lines = append(lines, p.String())
	}
	if ps.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more problems", ps.More))
	}
	return strings.Join(lines, "\n")
}

// File gathers the problems of one file.
type File struct {
	File  string
	found Problems
	// older are the warnings about keys that have a new name.
	older []string
	// bare sizes, without a unit, are taken as bytes: the file was taken before they were refused.
	bare bool
}

// New begins the problems of a file. bare: sizes without a unit are taken as bytes, as in files that were taken before these were refused.
func New(name string, bare bool) *File { return &File{File: name, bare: bare} }

// add records a problem at a place in the file.
func (c *File) add(line, column int, path, format string, args ...any) {
	if len(c.found.List) >= maxProblems {
		c.found.More++
		return
	}
	c.found.List = append(c.found.List, Problem{c.File, max(line, 1), max(column, 1), path, fmt.Sprintf(format, args...)})
}

// At records a problem at a node.
func (c *File) At(n *yaml.Node, path, format string, args ...any) {
	c.add(n.Line, n.Column, path, format, args...)
}

// Count is how many problems there are, to see whether a part added some.
func (c *File) Count() int { return len(c.found.List) + c.found.More }

// Err is nil if nothing was found, else an error of kind Invalid that unwraps to *Problems.
func (c *File) Err() error {
	if c.Count() == 0 {
		return nil
	}
	slices.SortStableFunc(c.found.List, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &errkind.Error{Kind: errkind.Invalid, Err: &c.found}
}

// Reasons splits an error into its joined parts, for messages of one line each.
func Reasons(err error) []error {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		return many.Unwrap()
	}
	return []error{err}
}

// renamed notes a key by its older name, for the first few.
func (c *File) renamed(path, name string) {
	if len(c.older) < maxRenamed {
		c.older = append(c.older, fmt.Sprintf("%s is called %s now; the old name is read for one version more", path, name))
	}
}

// maxRenamed is how many of them are named.
const maxRenamed = 20

// Renamed returns a warning for each key of the file that has a new name, for the file's author.
func (c *File) Renamed() []string { return c.older }

// Suggest guesses what the author of word meant, of known: the word, empty if none is near, and a hint that always helps.
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

// Hint suggests the known words that the author of word may have meant: "did you mean x?", or the list of them.
func Hint(word string, known []string) string {
	_, hint := Suggest(word, known)
	return hint
}
