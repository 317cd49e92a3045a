package flow

import (
	"fmt"
	"math/bits"
	"slices"

	"sluice.dev/sluice/internal/core/quantity"
)

// MaxClasses bounds the size classes, so that what is counted by class fits into a word.
const MaxClasses = 8

// Class is a size class, from 0, the smallest. A demand is of the smallest class whose level holds it; a free fragment (a
// slice that nobody holds) is of the largest class whose level it holds, so it serves every demand of that class and below.
type Class uint8

// Classes are the levels of the size classes, rising: capacities of the kinds of slices that there are.
type Classes []quantity.Amount

// Of is the class of a demand; ok is false if it is larger than every level.
func (c Classes) Of(demand quantity.Amount) (class Class, ok bool) {
	for i, level := range c {
		if demand <= level {
			return Class(i), true
		}
	}
	return 0, false
}

// Holds is the class of a fragment of a capacity; ok is false if it is below every level, and is of use to nobody.
func (c Classes) Holds(capacity quantity.Amount) (class Class, ok bool) {
	for i := len(c) - 1; i >= 0; i-- {
		if capacity >= c[i] {
			return Class(i), true
		}
	}
	return 0, false
}

// Levels are the classes of slices of these capacities: each that there is, or, of more than there may be classes, as many of them, spread
// evenly from the smallest to the largest.
func Levels(capacities []quantity.Amount) Classes {
	all := slices.Clone(capacities)
	slices.Sort(all)
	all = slices.Compact(all)
	if n := len(all); n > MaxClasses {
		for i := range MaxClasses {
			all[i] = all[i*(n-1)/(MaxClasses-1)]
		}
		all = all[:MaxClasses]
	}
	return Classes(all)
}

func (c Classes) validate(problem func(bad bool, format string, args ...any)) {
	problem(len(c) == 0 || len(c) > MaxClasses, "flow: there are %d size classes; give 1 to %d levels", len(c), MaxClasses)
	for i := range c {
		problem(c[i] <= 0, "flow: level %d of the size classes is %d; it must be positive", i, c[i])
		problem(i > 0 && c[i] <= c[i-1], "flow: level %d of the size classes is %d, not above level %d (%d); list them rising", i, c[i],
			i-1, c[max(0, i-1)])
	}
}

// Fragments counts fragments of one node by their own class, at most 255 of each.
type Fragments [MaxClasses]uint8

// Fit is the smallest class of fragment there that serves a class; ok is false if there is none. The counts are bytes of one word, so no
// jump depends on them.
func (f *Fragments) Fit(c Class) (fragment Class, ok bool) {
	word := (uint64(f[0]) | uint64(f[1])<<8 | uint64(f[2])<<16 | uint64(f[3])<<24 | uint64(f[4])<<32 | uint64(f[5])<<40 | uint64(
		f[6])<<48 | uint64(f[7])<<56) >> (8 * uint(c)) << (8 * uint(c))
	return Class(bits.TrailingZeros64(word)/8) & (MaxClasses - 1), word != 0
}

// String lists the counts, for tests and people.
func (f Fragments) String() string { return fmt.Sprint([MaxClasses]uint8(f)) }

// Hint is what is remembered of a node's free fragments: two bits for each class, which say how many of its fragments are large
// enough for it: 0, 1, 2, or 3 and more.
type Hint uint16

// hintOf rounds counts down to a hint.
func hintOf(f *Fragments) Hint {
	hint, n := Hint(0), 0
	for i := MaxClasses - 1; i >= 0; i-- {
		n += int(f[i])
		hint |= Hint(min(n, 3)) << (2 * i)
	}
	return hint
}

// Level of a class: how many of the node's fragments are large enough, up to 3; 0 beyond the last class.
func (h Hint) Level(c Class) int { return int(h>>(2*c)) & 3 }

// exact says whether the hint shows a fragment of just the class, so that larger ones stay whole for those who need them. Three and more
// of a class and of the next one do not show it: it counts as no.
func (h Hint) exact(c Class) bool { return h.Level(c) > h.Level(c+1) }
