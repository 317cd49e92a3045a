package window

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Audit lists what the board keeps that differs from what it would find now, dirty slices left out. For tests, between two steps: it must
// always be empty.
func (b *Board) Audit(now quantity.Instant) (wrong []string) {
	note := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	counts := map[*Class][2]int{}
	for i, s := range b.slices {
		n := counts[s.class]
		if n[0]++; s.Usable() {
			n[1]++
		}
		counts[s.class] = n
		note(s.at != i, "slice %s: its place is %d, should be %d", s.Name(), s.at, i)
		note(!b.unsorted && i > 0 && smaller(b.slices[i-1], s) >= 0, "slice %s is out of order", s.Name())
		note(s.dirty != b.dirty.Has(i), "slice %s: dirty %v, and in the list of those %v", s.Name(), s.dirty, !s.dirty)
		if s.dirty {
			continue
		}
		kept, is := since(now, s.unsold), since(now, s.Supply.Unsold(now, nil))
		note(!slices.Equal(kept, is), "slice %s: unsold is %v, should be %v", s.Name(), kept, is)
		note(s.stands != s.Begun(now) || s.stands != b.open.Has(i), "slice %s: a window stands: %v, should be %v", s.Name(), s.stands,
			!s.stands)
	}
	for _, c := range b.classes {
		for i := c.quiet.Next(0); i >= 0; i = c.quiet.Next(i + 1) {
			s := b.slices[i]
			note(s.class != c || b.turn.Has(i), "slice %s: quiet as one of class %s, and it is of %s", s.Name(), c.label, s.class.label)
			note(!s.dirty && !s.Asked(now), "slice %s: quiet without a window that everybody was asked about", s.Name())
		}
		note(counts[c] != [2]int{c.slices, c.usable}, "class %s: %d slices, %d of them usable, should be %v", c.label, c.slices, c.usable,
			counts[c])
	}
	return wrong
}

// since is the rest of gaps from an instant on.
func since(now quantity.Instant, gaps []protocol.Gap) (out []protocol.Gap) {
	for _, g := range gaps {
		if g.Start = max(g.Start, now); g.Start < g.End {
			out = append(out, g)
		}
	}
	return out
}
