package market

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Audit says what the floor keeps that is not what it would find if it looked now, what is marked for another look left out. It is
// for tests, between two steps: nothing that is said here may ever be read. It costs as much as a pass without an index.
func (f *Floor) Audit(now quantity.Instant) (wrong []string) {
	note := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	ranked := map[*Job]int{}
	for _, g := range f.groups {
		for i := range g.rankings {
			for j := range g.rankings[i].All() {
				ranked[j]++
			}
		}
	}
	for _, j := range f.jobs {
		if j.stale {
			continue
		}
		var e entry
		f.examine(now, j, &e)
		kept := j.entry
		if e.moves && kept.moves && kept.key.Attained <= e.key.Attained {
			kept.key.Attained = e.key.Attained // what it had when it was looked at last
		}
		note(kept.indexed != e.indexed || kept.ranked != e.ranked || kept.moves != e.moves, "job %s: indexed %v and ranked %v, should be %v and %v", j.Name(), kept.indexed, kept.ranked, e.indexed, e.ranked)
		note(e.indexed && kept.ineligible != e.ineligible, "job %s: ineligible for %d, should be for %d", j.Name(), kept.ineligible, e.ineligible)
		note(e.indexed && !slices.Equal(kept.answers, e.answers), "job %s: it answers %v, should answer %v", j.Name(), kept.answers, e.answers)
		note(e.ranked && kept.key != e.key, "job %s: ranked by %v, should be by %v", j.Name(), kept.key, e.key)
		places := 0
		for i := range e.answers {
			if e.ranked && e.answers[i].need != never {
				places++
			}
		}
		note(j.inLate != (e.ranked && j.knownLate()), "job %s: among those that are late: %v", j.Name(), j.inLate)
		note(ranked[j] != places, "job %s: it is in %d rankings, should be in %d", j.Name(), ranked[j], places)
		note((j.unindexed > 0) == e.indexed, "job %s: indexed %v, and asked each time %v", j.Name(), e.indexed, j.unindexed > 0)
	}
	counts := map[*Class][2]int{}
	for i, s := range f.slices {
		n := counts[s.class]
		if n[0]++; s.Usable() {
			n[1]++
		}
		counts[s.class] = n
		note(s.at != i, "slice %s: its place is %d, should be %d", s.Name(), s.at, i)
		note(!f.unsorted && i > 0 && smaller(f.slices[i-1], s) >= 0, "slice %s is out of order", s.Name())
		note(s.dirty != f.dirty.Has(i), "slice %s: dirty %v, and in the list of those %v", s.Name(), s.dirty, !s.dirty)
		if s.dirty {
			continue
		}
		kept := since(now, s.unsold)
		note(!slices.Equal(kept, since(now, s.Supply.Unsold(now, nil))), "slice %s: unsold is %v, should be %v", s.Name(), kept, s.Supply.Unsold(now, nil))
		note(f.plain == nil && (s.stands != s.standing(now) || s.stands != f.open.Has(i)), "slice %s: a window stands: %v, should be %v", s.Name(), s.stands, s.standing(now))
	}
	for _, c := range f.classes {
		for i := c.quiet.Next(0); i >= 0; i = c.quiet.Next(i + 1) {
			s := f.slices[i]
			note(s.class != c || f.turn.Has(i), "slice %s: quiet as one of class %s, and it is of %s, in turn %v", s.Name(), c.Label(), s.class.Label(), f.turn.Has(i))
			note(!s.dirty && !slices.ContainsFunc(s.windows, func(w window) bool { return w.start <= now && w.offered }), "slice %s: quiet without a window that everybody was asked about", s.Name())
		}
		note(counts[c] != [2]int{c.slices, c.usable}, "class %s: %d slices, %d of them usable, should be %v", c.Label(), c.slices, c.usable, counts[c])
	}
	return wrong
}

// since is what is left of gaps from an instant on.
func since(now quantity.Instant, gaps []protocol.Gap) (out []protocol.Gap) {
	for _, g := range gaps {
		if g.Start = max(g.Start, now); g.Start < g.End {
			out = append(out, g)
		}
	}
	return out
}
