package jobs

import (
	"fmt"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/show"
)

// lossColumns are what a job bid for and lost, and what won there.
func lossColumns(a *session.Session) []command.Column[*pb.Loss] {
	type loss = *pb.Loss
	return []command.Column[loss]{
		{Key: "count", Head: "LOST", Value: func(l loss) any { return l.Count }},
		{Key: "last", Head: "LAST", Value: func(l loss) any { return show.Stamp(l.Last) },
			Text: func(l loss) string { return show.Clock(a, l.Last) }},
		{Key: "profile", Head: "ON", Value: func(l loss) any { return l.Profile }},
		{Key: "slice", Value: func(l loss) any { return l.Slice }},
		{Key: "score", Head: "SCORE", Value: func(l loss) any { return l.Score },
			Text: func(l loss) string { return show.Decimal(l.Score) }},
		{Key: "weight", Head: "WEIGHT", Value: func(l loss) any { return l.Weight },
			Text: func(l loss) string { return show.Decimal(l.Weight) }},
		{Key: "winner", Head: "WON BY", Value: func(l loss) any { return l.Winner }, Text: func(l loss) string {
			if l.Winners > 1 {
				return fmt.Sprintf("%s and %d more", l.Winner, l.Winners-1)
			}
			return l.Winner
		}},
		{Key: "winnerQueue", Head: "QUEUE", Value: func(l loss) any { return l.WinnerQueue }},
		{Key: "winnerScore", Value: func(l loss) any { return l.WinnerScore }},
		{Key: "winnerWeight", Value: func(l loss) any { return l.WinnerWeight }},
		{Key: "winners", Value: func(l loss) any { return l.Winners }},
		{Key: "winnersWeight", Head: "WITH", Value: func(l loss) any { return l.WinnersWeight },
			Text: func(l loss) string { return show.Decimal(l.WinnersWeight) }},
		{Key: "by", Head: "BY", Value: func(l loss) any { return l.By }, Text: func(l loss) string {
			if l.By <= 0 {
				return "-"
			}
			return show.Decimal(l.By)
		}},
		{Key: "starved", Value: func(l loss) any { return l.Starved }},
	}
}

// prospectRecord is how a job stands against others, for programs; nothing of what its market does not have.
func prospectRecord(a *session.Session, e *pb.Explanation) command.Record {
	r := command.Record{{Key: "prospect", Value: e.Prospect}}
	if len(e.Losses) > 0 {
		losses := make([]command.Record, len(e.Losses))
		for i, l := range e.Losses {
			losses[i] = command.Describe(l, lossColumns(a))
		}
		r = append(r, command.Pair{Key: "losses", Value: losses})
	}
	if k := e.Rank; k != nil {
		var latest any
		if g := k.Latest; g != nil {
			latest = command.Record{{Key: "slice", Value: g.Slice}, {Key: "seconds", Value: show.Seconds(g.Length)},
				{Key: "at", Value: show.Stamp(g.At)}, {Key: "winner", Value: g.Winner}, {Key: "winnerQueue", Value: g.WinnerQueue}}
		}
		r = append(r, command.Pair{Key: "rank", Value: command.Record{{Key: "place", Value: k.Place}, {Key: "of", Value: k.Of},
			{Key: "policy", Value: k.Policy}, {Key: "profile", Value: k.Profile}, {Key: "slice", Value: k.Slice},
			{Key: "latest", Value: latest}}})
	}
	return r
}
