package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/status"
)

// compare tells a waiting job how it stands against others: what it lost its bids to, or its place in the policy's order, and
// when it is likely to be served.
func (v *View) compare(now quantity.Instant, j *home.Job, e *status.Explanation) {
	if e.Job.State != job.Waiting || len(j.Claims()) > 0 {
		return
	}
	var parts []string
	if v.cfg.Trust != nil {
		e.Losses = v.floor.Losses(j)
		if text := lossesText(e.Losses); text != "" {
			parts = append(parts, text)
		}
	} else if e.Rank = v.floor.Rank(now, j); e.Rank.Place > 0 {
		parts = append(parts, rankText(now, &e.Rank))
	}
	switch {
	case e.Job.StartLate <= now:
	case j.History().Started() == 0:
		parts = append(parts, "likely to start "+within(now, e.Job.StartEarly, e.Job.StartLate))
	default:
		parts = append(parts, "likely to go on "+within(now, e.Job.StartEarly, e.Job.StartLate))
	}
	e.Prospect = strings.Join(parts, "; ")
}

// lossesText is the loss that was missed by least, the windows of all of them counted.
func lossesText(list []status.Loss) string {
	if len(list) == 0 {
		return ""
	}
	n := int64(0)
	for i := range list {
		n += list[i].Count
	}
	l := slices.MinFunc(list, func(a, b status.Loss) int { return cmp.Compare(a.By(), b.By()) })
	text := fmt.Sprintf("it bid in %d rounds since it was last served, and lost; nearest on %s: its best bid scored %s and weighed %s, ",
		n, l.Slice, decimal(l.Score), decimal(l.Weight))
	if n == 1 {
		text = fmt.Sprintf("it bid in a round on %s, and lost: its best bid scored %s and weighed %s, ", l.Slice, decimal(l.Score),
			decimal(l.Weight))
	}
	if l.Winners == 1 {
		text += fmt.Sprintf("%s of queue %s scored %s and weighed %s", l.Winner, l.WinnerQueue, decimal(l.WinnerScore),
			decimal(l.WinnerWeight))
	} else {
		text += fmt.Sprintf("%d others in its time weighed %s, most of it %s of queue %s", l.Winners, decimal(l.WinnersWeight), l.Winner,
			l.WinnerQueue)
	}
	switch {
	case l.Late:
		return text + "; who has waited too long goes first, whatever others are worth"
	case l.By() > 0:
		return text + ": it lost by " + decimal(l.By())
	}
	return text + "; that was no loss by weight: what begins sooner, or goes with other pieces of the round, went first"
}

// decimal writes millionths with two digits behind the point, and none from a thousand on.
func decimal(n int64) string {
	if n >= 1000*score.One {
		return fmt.Sprint((n + score.One/2) / score.One)
	}
	n = (n + score.One/200) / (score.One / 100)
	return fmt.Sprintf("%d.%02d", n/100, n%100)
}

// rankText says the place, and who got the latest window.
func rankText(now quantity.Instant, r *status.Rank) string {
	ahead, about := "nobody is ahead of it", ""
	if r.About {
		ahead, about = "few jobs are ahead of it", "about "
	}
	if n := r.Place - 1; n == 1 {
		ahead = "1 job is ahead of it"
	} else if n > 1 {
		ahead = fmt.Sprintf("%s%d jobs are ahead of it", about, n)
	}
	text := about + fmt.Sprintf("%d of the %d that wait for a slice such as %s, by policy %s: %s", r.Place, r.Of, r.Slice, r.Policy, ahead)
	if g := &r.Latest; g.Winner != "" {
		text += fmt.Sprintf("; the last window it could have used, on %s, went to %s of queue %s %s ago", g.Slice, g.Winner, g.WinnerQueue,
			brief(now.Sub(g.At)))
	}
	return text
}

// within says a range of instants as how far they are ahead.
func within(now, early, late quantity.Instant) string {
	switch {
	case late.Sub(now) < time.Second:
		return "within a second"
	case brief(late.Sub(now)) == brief(early.Sub(now)):
		return "in about " + brief(late.Sub(now))
	}
	return "within " + brief(max(0, early.Sub(now))) + " to " + brief(late.Sub(now))
}

// brief is a length of time in full seconds, without those that are 0: 3m, not 3m0s.
func brief(d time.Duration) string {
	text := d.Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
