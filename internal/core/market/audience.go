package market

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/quantity"
)

// invite lists the jobs of built-in kinds that are asked for a window: all that are eligible as far as the audience goes, the
// first of the policy and the longest waiting, or those that changed if the window was offered before.
func (f *Floor) invite(now quantity.Instant, o *offer, w *window) []*Job {
	list := f.invited[:0]
	length := w.length(now)
	answers := func(j *Job) bool {
		if j.active == 0 || j.Spec().External {
			return false
		}
		if j.indexed {
			if j.ineligible != Eligible || j.answers[o.slice.class.at].need > length {
				if !o.full {
					j.countIn(&j.counts, o.slice.class.at, length, 1, now)
				}
				return false
			}
			return true
		}
		why := j.Ineligible(now)
		if why == Eligible && j.Avoids(o.slice) {
			why = TurnedDown
		}
		if why != Eligible {
			j.counts.add(why, now)
		}
		return why == Eligible
	}
	if !o.full {
		for _, j := range f.fresh {
			if answers(j) {
				list = append(list, j)
			}
		}
		f.invited = list
		return list
	}
	for _, j := range f.unindexed {
		if answers(j) {
			list = append(list, j)
		}
	}
	from := len(list)
	for _, g := range f.groups {
		if o.slice.class.at < len(g.rankings) {
			for j := range g.rankings[o.slice.class.at].Within(length) {
				list = append(list, j)
			}
		}
	}
	list = list[:from+f.admit(now, list[from:])]
	f.invited = list
	return list
}

// admit brings those that are asked to the front of a list in the order of the policy and returns how many they are: where
// there are more than the audience holds, one half are the first in that order, and one half have waited longest of the rest.
// So whoever has waited longest of all is always asked.
func (f *Floor) admit(now quantity.Instant, list []*Job) int {
	most := f.cfg.Market.Audience
	if len(list) <= most {
		return len(list)
	}
	slices.SortFunc(list[most/2:], func(a, b *Job) int {
		return cmp.Or(cmp.Compare(b.Waited(now), a.Waited(now)), byName(a, b))
	})
	return most
}
