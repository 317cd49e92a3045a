package jobs

import (
	"fmt"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/show"
)

// standing says in a few lines what declared against observed has shown of a job. A market that does not negotiate says nothing
// but where the profile is from, if it is not the declared one.
func standing(j *pb.Job) (lines [][2]string) {
	t := j.GetTrust()
	if t != nil {
		lines = append(lines, [2]string{"trust", trustText(t)})
		if t.Seen > 0 && t.Pace > 0 {
			lines = append(lines, [2]string{"pace", fmt.Sprintf("its subjobs take %s of the time that is planned for them",
				show.Decimal(t.Pace))})
		}
	}
	memory := ""
	if t.GetRuns() > 0 {
		memory = fmt.Sprintf("%d of %d subjobs passed what they were sold; ", t.Excess, t.Runs)
	}
	if text := j.GetProfile().GetText(); text != "" && (text != "declared" || memory != "") {
		lines = append(lines, [2]string{"memory", memory + "profile " + text})
	}
	return lines
}

func trustText(t *pb.Trust) string {
	if t.Seen == 0 {
		return "nothing of it was observed yet: it begins with what is believed of its queue"
	}
	return fmt.Sprintf("what it declares is believed to %s (error %s over %d subjobs, observed %s)", show.Percent(t.Believed),
		show.Decimal(t.Error), t.Seen, show.Decimal(t.History))
}

// standingRecord is the same for programs; nothing where no market negotiates and the profile is as declared.
func standingRecord(j *pb.Job) (r command.Record) {
	if t := j.GetTrust(); t != nil {
		r = append(r, command.Pair{Key: "trust", Value: trustRecord(t)})
	}
	if p := j.GetProfile(); p != nil && (j.GetTrust() != nil || p.Runs > 0 || p.Spread > 0) {
		r = append(r, command.Pair{Key: "profile", Value: command.Record{{Key: "source", Value: p.Source}, {Key: "runs", Value: p.Runs},
			{Key: "spread", Value: p.Spread}}})
	}
	return r
}

func trustRecord(t *pb.Trust) any {
	if t == nil {
		return nil
	}
	return command.Record{
		{Key: "believed", Value: t.Believed}, {Key: "error", Value: t.Error}, {Key: "history", Value: t.History},
		{Key: "seen", Value: t.Seen}, {Key: "pace", Value: t.Pace},
		{Key: "runs", Value: t.Runs}, {Key: "excess", Value: t.Excess}, {Key: "evidence", Value: t.Evidence},
	}
}

// standingColumns are what a market that negotiates knows of a queue.
func standingColumns() []command.Column[*pb.Queue] {
	type queue = *pb.Queue
	return []command.Column[queue]{
		{Key: "trust", Head: "TRUST", Value: func(q queue) any { return trustRecord(q.Trust) },
			Text: func(q queue) string { return show.Percent(q.Trust.GetBelieved()) }},
		{Key: "credits", Head: "CREDITS", Value: func(q queue) any { return q.Credits }},
	}
}

// bidColumns are what a subjob was won with.
func bidColumns() []command.Column[*pb.Subjob] {
	type sub = *pb.Subjob
	number := func(of func(*pb.Bid) float64) func(sub) string {
		return func(s sub) string {
			if s.Bid == nil {
				return ""
			}
			return show.Decimal(of(s.Bid))
		}
	}
	return []command.Column[sub]{
		{Head: "DECLARED", Wide: true, Text: number((*pb.Bid).GetScore)},
		{Head: "BELIEVED", Wide: true, Text: number((*pb.Bid).GetCalibrated)},
		{Head: "WEIGHT", Wide: true, Text: number((*pb.Bid).GetWeight)},
		{Head: "PRICE", Wide: true, Text: func(s sub) string { return show.NonZero(s.Bid.GetPrice()) }},
		{Key: "bid", Value: func(s sub) any {
			if s.Bid == nil {
				return nil
			}
			return command.Record{{Key: "score", Value: s.Bid.Score}, {Key: "calibrated", Value: s.Bid.Calibrated},
				{Key: "weight", Value: s.Bid.Weight}, {Key: "price", Value: s.Bid.Price}, {Key: "option", Value: s.Bid.Option}}
		}},
	}
}
