package report

import (
	"fmt"
	"math"
	"strings"

	"sluice.dev/sluice/internal/lab/measure"
)

// Contest is what is compared: the first of the names with the best of the others, on the same seeds.
type Contest struct {
	// Where it takes place: a scenario with its settings.
	Where string
	Names []string
	// Values of a metric under a name, one for each seed in the same order; NaN where there is none.
	Values func(name, metric string) []float64
}

// verdict is who won by a metric.
type verdict struct {
	first, other string
	// means, and the estimate of first less other on the seeds that both have.
	mean, against float64
	difference    measure.Estimate
	info          measure.Info
}

// winner is empty where the interval holds 0, or where there is none.
func (v *verdict) winner() string {
	d := v.difference
	switch {
	case d.N < 2 || d.Low <= 0 && d.High >= 0 || math.IsNaN(d.Low):
		return ""
	case (d.Mean < 0) == (v.info.Better == measure.Lower):
		return v.first
	}
	return v.other
}

// judge finds the best of the others by a metric that has better and worse; false where nothing can be compared.
func (c *Contest) judge(metric string) (v verdict, ok bool) {
	v.info = measure.About(metric)
	sign := 1.0
	if v.info.Better == measure.Lower {
		sign = -1
	}
	if len(c.Names) < 2 || v.info.Better == measure.Neither {
		return v, false
	}
	v.first = c.Names[0]
	mine := c.Values(v.first, metric)
	for _, name := range c.Names[1:] {
		other := c.Values(name, metric)
		d := measure.Difference(mine, other)
		if d.N == 0 {
			continue
		}
		// Means over the seeds that both have.
		x, y := []float64(nil), []float64(nil)
		for i := range min(len(mine), len(other)) {
			if !math.IsNaN(mine[i]) && !math.IsNaN(other[i]) {
				x, y = append(x, mine[i]), append(y, other[i])
			}
		}
		if mean := measure.Mean(y).Mean; !ok || sign*mean > sign*v.against {
			ok = true
			v.other, v.mean, v.against, v.difference = name, measure.Mean(x).Mean, mean, d
		}
	}
	return v, ok
}

// Verdict is one sentence: what is compared by a metric and which won, with the interval; or that no difference is shown where the interval
// holds 0. It includes unfinished jobs, since they look like speed.
func (c *Contest) Verdict(metric string) string {
	v, ok := c.judge(metric)
	if !ok {
		return c.alone(metric)
	}
	other := v.other
	if n := len(c.Names) - 1; n > 1 {
		other += fmt.Sprintf(", the best of %d others", n)
	}
	d, by := v.difference, label(v.info)
	means := v.say(v.mean) + " against " + v.say(v.against)
	place := fmt.Sprintf("%s on %s: by %s ", c.Where, plural(d.N, "seed"), by)
	var text string
	switch winner := v.winner(); {
	case d.N < 2:
		text = fmt.Sprintf("%s%s has %s of %s; one seed can not say whether that is more than chance", place, v.first, means, other)
	case winner == "":
		text = fmt.Sprintf("%sno difference is shown between %s and %s: %s, %s (95%% interval %s to %s)",
			place, v.first, other, means, v.signed(d.Mean), v.signed(d.Low), v.signed(d.High))
	case winner == v.first:
		text = fmt.Sprintf("%s%s beats %s: %s, %s", place, v.first, other, means, v.apart())
	default:
		text = fmt.Sprintf("%s%s loses to %s: %s, %s", place, v.first, other, means, v.apart())
	}
	return text + c.undone(v) + "."
}

// short is what a chart's title says of who won; nothing where there is no interval.
func (c *Contest) short(metric string) string {
	v, ok := c.judge(metric)
	switch {
	case !ok || v.difference.N < 2:
		return ""
	case v.winner() == "":
		return ": no difference shown between " + v.first + " and " + v.other
	case v.winner() == v.first:
		return ": " + v.first + " beats " + v.other
	}
	return ": " + v.first + " loses to " + v.other
}

// say is a value in the unit that is best for the larger of the two.
func (v *verdict) say(x float64) string {
	return figureLike(x, max(math.Abs(v.mean), math.Abs(v.against)), v.info.Unit)
}

// apart is a difference that is none by chance, with its interval, the smaller end first.
func (v *verdict) apart() string {
	d := v.difference
	low, high, word := d.Low, d.High, "more"
	if d.Mean < 0 {
		low, high, word = -d.High, -d.Low, "less"
	}
	return fmt.Sprintf("%s %s (95%% interval %s to %s)", v.points(math.Abs(d.Mean)), word, v.points(low), v.points(high))
}

// points is a difference; of shares it is in percentage points.
func (v *verdict) points(x float64) string {
	if v.info.Unit == measure.Share {
		return digits(100*x) + " points"
	}
	return v.say(x)
}

func (v *verdict) signed(x float64) string {
	if x < 0 {
		return "−" + v.points(-x)
	}
	return "+" + v.points(x)
}

// label is a metric's title within a sentence: "mean wait" of "Wait, mean".
func label(info measure.Info) string {
	what, of, divided := strings.Cut(info.Title, ", ")
	text := strings.ToLower(what[:1]) + what[1:]
	if divided {
		return of + " " + text
	}
	return text
}

// alone is the verdict on one alone.
func (c *Contest) alone(metric string) string {
	if len(c.Names) == 0 {
		return ""
	}
	e := measure.Mean(c.Values(c.Names[0], metric))
	if e.N == 0 {
		return ""
	}
	info := measure.About(metric)
	text := fmt.Sprintf("%s on %s: %s has a %s of %s", c.Where, plural(e.N, "seed"), c.Names[0], label(info), figure(e.Mean, info.Unit))
	if e.N > 1 {
		text += fmt.Sprintf(" (95%% interval %s to %s)", figure(e.Low, info.Unit), figure(e.High, info.Unit))
	}
	return text + ", and is compared with nothing."
}

// undone tells of jobs that one of the two did not do and the other did.
func (c *Contest) undone(v verdict) string {
	var list []string
	for _, metric := range []string{measure.Unfinished, measure.Rejected, measure.Failed} {
		x, y := measure.Mean(c.Values(v.first, metric)).Mean, measure.Mean(c.Values(v.other, metric)).Mean
		if x != y && (x > 0 || y > 0) {
			what := strings.ToLower(measure.About(metric).Title)
			list = append(list, fmt.Sprintf("%s: %s of %s, %s of %s", what, figure(x, measure.Plain), v.first, figure(y, measure.Plain),
				v.other))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "; but not all did the same work (" + strings.Join(list, "; ") + ")"
}

// verdict of a study: of its one scenario, or how often the first won over all of its scenarios and settings.
func (s *Study) verdict() string {
	const metric = measure.CompletionMean
	groups := s.groups()
	if len(groups) == 1 {
		c := groups[0].contest()
		return c.Verdict(metric)
	}
	won, lost, open, single := 0, 0, 0, false
	first := ""
	for _, g := range groups {
		c := g.contest()
		v, ok := c.judge(metric)
		if !ok || first != "" && v.first != first {
			continue
		}
		first = v.first
		single = single || v.difference.N < 2
		switch v.winner() {
		case "":
			open++
		case v.first:
			won++
		default:
			lost++
		}
	}
	if first == "" {
		return ""
	}
	text := fmt.Sprintf("%s against the best of the others by %s: it wins in %d of %d settings, loses in %d, and in %d no difference is "+
		"shown (95%% intervals",
		first, label(measure.About(metric)), won, won+lost+open, lost, open)
	if single {
		text += "; a setting with one seed has none"
	}
	return text + ")."
}

func (g *group) contest() Contest {
	return Contest{Where: g.name, Names: mechanisms(g.rows), Values: g.values}
}
