package zone

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/score"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

// compare tells a waiting job how it stands against others: what it lost its bids to, or its place in the policy's order, and
// when it is likely to be served.
func (z *Zone) compare(now quantity.Instant, s *state, e *status.Explanation) {
	if e.Job.State != job.Waiting {
		return
	}
	var parts []string
	if z.cfg.Market != nil {
		e.Losses = s.lost()
		if text := lossesText(e.Losses); text != "" {
			parts = append(parts, text)
		}
	} else if e.Rank = z.rank(now, s); e.Rank.Place > 0 {
		parts = append(parts, rankText(now, &e.Rank))
	}
	switch {
	case e.Job.StartLate <= now:
	case s.Started == 0:
		parts = append(parts, "likely to start "+within(now, e.Job.StartEarly, e.Job.StartLate))
	default:
		parts = append(parts, "likely to go on "+within(now, e.Job.StartEarly, e.Job.StartLate))
	}
	e.Prospect = strings.Join(parts, "; ")
}

// lost lists a job's losses, the latest first.
func (s *state) lost() (out []status.Loss) {
	for i := range s.losses {
		l := &s.losses[i]
		out = append(out, status.Loss{
			Profile: l.class.label(), Slice: l.slice, Count: l.count, Last: l.at, Score: l.score, Weight: l.weight,
			Winner: l.winner.job, WinnerQueue: l.winner.queue, WinnerScore: l.winner.score, WinnerWeight: l.winner.weight,
			Winners: l.winners, WinnersWeight: l.winnerWeight, Starved: l.starved,
		})
	}
	slices.SortStableFunc(out, func(a, b status.Loss) int { return cmp.Compare(b.Last, a.Last) })
	return out
}

// label is what the slices of a class are called.
func (c *class) label() string {
	if c.profile != "" {
		return c.profile
	}
	return fmt.Sprintf("%d MiB", c.capacity[trp.Memory]>>20)
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
		text = fmt.Sprintf("it bid in a round on %s, and lost: its best bid scored %s and weighed %s, ", l.Slice, decimal(l.Score), decimal(l.Weight))
	}
	if l.Winners == 1 {
		text += fmt.Sprintf("%s of queue %s scored %s and weighed %s", l.Winner, l.WinnerQueue, decimal(l.WinnerScore), decimal(l.WinnerWeight))
	} else {
		text += fmt.Sprintf("%d others in its time weighed %s, most of it %s of queue %s", l.Winners, decimal(l.WinnersWeight), l.Winner, l.WinnerQueue)
	}
	switch {
	case l.Starved:
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
		text += fmt.Sprintf("; the last window it could have used, on %s, went to %s of queue %s %s ago", g.Slice, g.Winner, g.WinnerQueue, brief(now.Sub(g.At)))
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

// rank is a job's place in the policy's order on the kind of slice that it could have used last, or could use first.
func (z *Zone) rank(now quantity.Instant, s *state) status.Rank {
	var r status.Rank
	sl, latest := z.missed(now, s)
	if sl == nil {
		return r
	}
	own, ok := z.contends(now, s, sl.class)
	if !ok {
		return r
	}
	n, ahead, of := len(z.live), 0, 0
	for i := range sample(n, mostRanked) {
		o := z.live[i]
		if o == s {
			continue
		}
		if c, ok := z.contends(now, o, sl.class); ok {
			of++
			if z.cfg.Policy.Compare(&c, &own) < 0 {
				ahead++
			}
		}
	}
	whole := func(part int) int { return int(quantity.MulDiv(int64(part), int64(n), int64(min(n, mostRanked)))) }
	return status.Rank{
		Place: whole(ahead) + 1, Of: whole(of) + 1, About: n > mostRanked,
		Policy: z.cfg.Policy.Name(), Profile: sl.class.label(), Slice: sl.id, Latest: latest,
	}
}

// mostRanked is how many jobs are held against one that asks for its rank. Of more, a sample that is spread over all of them is,
// and stands for the others.
const mostRanked = 4096

// missed is the latest window that a job could have used and another got, with its slice; if there is none a slice that it could use.
func (z *Zone) missed(now quantity.Instant, s *state) (at *slice, latest status.Given) {
	since := max(s.Submitted, s.Served)
	contends := make([]bool, len(z.classes))
	for i, c := range z.classes {
		_, contends[i] = z.contends(now, s, c)
	}
	for _, sl := range z.slices {
		if !sl.view.Usable {
			continue
		}
		if at == nil && contends[sl.class.at] {
			at = sl
		}
		for i := range sl.class.given {
			g := &sl.class.given[i]
			if g.slice != sl.id || g.to.job == s.Job || g.at < since || g.at <= latest.At {
				continue
			}
			if _, refusal := z.fit(s, sl.class, now, now.Add(g.length)); refusal.Why == atomizer.Interested {
				at, latest = sl, status.Given{Slice: g.slice, Length: g.length, At: g.at, Winner: g.to.job, WinnerQueue: g.to.queue}
			}
		}
	}
	return at, latest
}

// contends is what the policy sees of a job that waits for slices of a class.
func (z *Zone) contends(now quantity.Instant, s *state, c *class) (policy.Candidate, bool) {
	if z.deafness(now, s) != interested {
		return policy.Candidate{}, false
	}
	end := now.Add(z.cfg.Horizon)
	if s.Spec.Kind == job.Rigid {
		end = quantity.Never
	}
	p, refusal := z.fit(s, c, now, end)
	if refusal.Why != atomizer.Interested {
		return policy.Candidate{}, false
	}
	return z.candidate(now, s, c, end, &p), true
}
