package cli

import (
	"fmt"

	pb "sluice.dev/sluice/internal/edge/wire/sluice/v1alpha1"
)

// lossColumns are what a job bid for and lost, and what won there.
func lossColumns(a *app) []column[*pb.Loss] {
	type loss = *pb.Loss
	return []column[loss]{
		{key: "count", head: "LOST", value: func(l loss) any { return l.Count }},
		{key: "last", head: "LAST", value: func(l loss) any { return stamp(l.Last) }, text: func(l loss) string { return a.clock(l.Last) }},
		{key: "profile", head: "ON", value: func(l loss) any { return l.Profile }},
		{key: "slice", value: func(l loss) any { return l.Slice }},
		{key: "score", head: "SCORE", value: func(l loss) any { return l.Score }, text: func(l loss) string { return decimal(l.Score) }},
		{key: "weight", head: "WEIGHT", value: func(l loss) any { return l.Weight }, text: func(l loss) string { return decimal(l.Weight) }},
		{key: "winner", head: "WON BY", value: func(l loss) any { return l.Winner }, text: func(l loss) string {
			if l.Winners > 1 {
				return fmt.Sprintf("%s and %d more", l.Winner, l.Winners-1)
			}
			return l.Winner
		}},
		{key: "winnerQueue", head: "QUEUE", value: func(l loss) any { return l.WinnerQueue }},
		{key: "winnerScore", value: func(l loss) any { return l.WinnerScore }},
		{key: "winnerWeight", value: func(l loss) any { return l.WinnerWeight }},
		{key: "winners", value: func(l loss) any { return l.Winners }},
		{key: "winnersWeight", head: "WITH", value: func(l loss) any { return l.WinnersWeight }, text: func(l loss) string { return decimal(l.WinnersWeight) }},
		{key: "by", head: "BY", value: func(l loss) any { return l.By }, text: func(l loss) string {
			if l.By <= 0 {
				return "-"
			}
			return decimal(l.By)
		}},
		{key: "starved", value: func(l loss) any { return l.Starved }},
	}
}

// prospectRecord is how a job stands against others, for programs; nothing of what its market does not have.
func prospectRecord(a *app, e *pb.Explanation) record {
	r := record{{"prospect", e.Prospect}}
	if len(e.Losses) > 0 {
		losses := make([]record, len(e.Losses))
		for i, l := range e.Losses {
			losses[i] = describe(l, lossColumns(a))
		}
		r = append(r, pair{"losses", losses})
	}
	if k := e.Rank; k != nil {
		var latest any
		if g := k.Latest; g != nil {
			latest = record{{"slice", g.Slice}, {"seconds", seconds(g.Length)}, {"at", stamp(g.At)}, {"winner", g.Winner}, {"winnerQueue", g.WinnerQueue}}
		}
		r = append(r, pair{"rank", record{{"place", k.Place}, {"of", k.Of}, {"policy", k.Policy}, {"profile", k.Profile}, {"slice", k.Slice}, {"latest", latest}}})
	}
	return r
}
