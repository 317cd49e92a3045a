package index

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/quantity"
)

// Audit lists what the index keeps that differs from what it would find now, stale entries left out. For tests, between two steps: it must
// always be empty. It costs as much as a pass without an index.
func (x *Index) Audit(now quantity.Instant) (wrong []string) {
	note := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	ranked := map[*Job]int{}
	for _, g := range x.rankings.groups {
		for i := range g.lists {
			for j := range g.lists[i].All() {
				ranked[j]++
			}
		}
	}
	for _, j := range x.jobs {
		if j.stale {
			continue
		}
		var e Entry
		x.examiner.examine(now, j, &e)
		kept, name := j.entry, j.Name()
		if e.moves && kept.moves && kept.key.Attained <= e.key.Attained {
			kept.key.Attained = e.key.Attained // what it had when it was looked at last
		}
		note(kept.indexed != e.indexed || kept.ranked != e.ranked || kept.moves != e.moves, "job %s: indexed %v, should be %v", name, kept,
			e)
		note(e.indexed && kept.ineligible != e.ineligible, "job %s: ineligible for %d, should be for %d", name, kept.ineligible,
			e.ineligible)
		note(e.indexed && !slices.Equal(kept.answers, e.answers), "job %s: it answers %v, should answer %v", name, kept.answers, e.answers)
		note(e.ranked && kept.key != e.key, "job %s: ranked by %v, should be by %v", name, kept.key, e.key)
		places := 0
		for i := range e.answers {
			if e.ranked && e.can(i) {
				places++
			}
		}
		note(j.inLate != (e.ranked && j.knownLate()), "job %s: among those that are late: %v", name, j.inLate)
		note(ranked[j] != places, "job %s: it is in %d rankings, should be in %d", name, ranked[j], places)
		note((j.unindexed > 0) == e.indexed, "job %s: indexed %v, and asked each time %v", name, e.indexed, j.unindexed > 0)
		note(e.indexed && kept.Eligibility() == explain.Eligible && kept.Classes() != len(x.board.Classes()), "job %s: %d classes", name,
			kept.Classes())
	}
	return wrong
}
