package history

import (
	"cmp"
	"slices"
)

const (
	unwatched     = "a time in which nobody looked at the cluster"
	unwatchedDone = "its free devices do not count as idle: keep what records it running"
)

// watches are the times in which somebody looked, in order and disjoint; nil for a log that was not watched as it grew.
func watches(b *Book) (out []Gap) {
	slices.SortFunc(b.watched, func(x, y Gap) int { return cmp.Or(cmp.Compare(x.From, y.From), cmp.Compare(x.To, y.To)) })
	for _, g := range b.watched {
		if n := len(out); n > 0 && g.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, g.To)
		} else {
			out = append(out, g)
		}
	}
	b.watched = slices.Clone(out)
	return out
}

// unobserved takes free devices away where nobody looked.
func unobserved(b *Book) {
	seen := watches(b)
	for i := 1; i < len(seen); i++ {
		from, to := seen[i-1].To, seen[i].From
		b.Absent(AwayRow{All: true, Away: Away{From: from, To: to, Why: Unrecorded}})
		b.odd(unwatched, unwatchedDone).add(place{text: stamp(from) + " to " + stamp(to)})
	}
}
