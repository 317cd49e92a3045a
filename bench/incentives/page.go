package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/report"
)

// bar is what a liar may gain at most: the upper end of the 95% interval.
const bar = .01

// page is docs/incentives.md under way.
type page struct {
	bytes.Buffer
	*results
	s   *settings
	dir string
}

func (p *page) say(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// write makes the page and its figures.
func (r *results) write(s *settings) error {
	p := &page{results: r, s: s, dir: filepath.Join(s.out, "incentives")}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	p.head()
	p.answer()
	if err := p.compared(); err != nil {
		return err
	}
	p.best()
	if err := p.many(); err != nil {
		return err
	}
	p.unsolved()
	return report.Create(filepath.Join(s.out, "incentives.md"), func(w io.Writer) error { _, err := w.Write(p.Bytes()); return err })
}

func (p *page) head() {
	p.say("# Incentives of JASDA\n\n")
	p.say("What does an owner gain whose agents do not bid honestly? Written by `make incentives`; every figure below comes from that " +
		"one\n")
	p.say("command, and the same seeds give the same bytes.\n\n")
	p.say("## How it is measured\n\n")
	p.say("%d owners, each with a queue of weight 1, submit tasks for %v to six slices (four of 10 GiB, two of 20) at a load of 1.2; "+
		"then all\n", owners, arrivals)
	p.say("is worked off. Half of the tasks are chains of steps, half have independent units; a task is a minute of work and a\n")
	p.say("log-normal more (8 minutes in the median, sigma .9). All jobs are external: simulated agents answer every round. Each game " +
		"is played twice on one seed, with the same\n")
	p.say("tasks: all honest, and with the liars. **Gain** is the change of the liar's speed, the inverse of the mean time from the " +
		"submission of\n")
	p.say("a task to its end, weighted by work; what never ends counts as %v. **Work** is what it had done when the arrivals end. The "+
		"slowdown of\n", limit)
	p.say("the others, and of all (**welfare**), are changes of the same mean time. Means are geometric over seeds, with 95%% intervals " +
		"by Student's\n")
	p.say("t; the tables have %d seeds, what is said of the default %d. The bar: the upper end of the gain at most %+.0f%%.\n\n", p.s.seeds,
		p.s.many, 100*bar)
	p.say("Credits: of each slice a credit every four milliseconds comes into being and is shared by weight among the queues that have " +
		"jobs. What\n")
	p.say("is won costs its score for each millisecond of its lease. A purse holds an hour's refill, and a queue's bids count as far as " +
		"its purse is full, so what it won lately is paid back in what it wins next. A\n")
	p.say("queue without credits still gets what nobody else wants. What never started is paid back. Who goes first because it starves " +
		"pays nothing.\n\n")
	p.say("| mechanism | |\n|---|---|\n")
	for _, m := range mechanisms() {
		p.say("| %s | %s |\n", m.name, m.summary)
	}
	p.say("\n| lie | |\n|---|---|\n")
	for _, l := range lies() {
		p.say("| %s | %s |\n", l.name, l.summary)
	}
	p.say("\n")
}

// answer is about the default market, on many seeds.
func (p *page) answer() {
	p.say("## The default market: %s\n\n", shipped().name)
	p.say("| lie | rounds | gain (95%%) | work | slowdown of the others | bar |\n|---|---|---|---|---|---|\n")
	worst, met := cell{gain: measure.Estimate{High: math.Inf(-1)}}, 0
	for _, c := range p.final {
		p.say("| %s | %d | %s | %s | %s | %s |\n", c.move, c.rounds, interval(c.gain), percent(c.work.Mean), interval(c.victims),
			verdict(c.gain))
		if c.gain.High > worst.gain.High {
			worst = c
		}
		if math.Expm1(c.gain.High) <= bar {
			met++
		}
	}
	p.say("\nThe bar is met for %d of %d lies. ", met, len(p.final))
	if math.Expm1(worst.gain.High) > bar {
		p.say("The furthest from it is *%s*: its upper end is %s, %.1f points over the bar. Where the interval\nholds 0 no gain is "+
			"shown, and more seeds would tell.", worst.move, percent(worst.gain.High), 100*(math.Expm1(worst.gain.High)-bar))
	}
	p.say("\n\n")
}

// compared is the table of lies and mechanisms.
func (p *page) compared() error {
	p.say("## What each lie gains in each mechanism\n\n| lie |")
	for _, m := range mechanisms() {
		p.say(" %s |", m.name)
	}
	p.say("\n|---|")
	for range mechanisms() {
		p.say("---|")
	}
	p.say("\n")
	chart := &report.Chart{Title: "Gain of over-declaring, splitting and colluding", Kind: report.Lines,
		X: report.Axis{Label: "mechanism, in the order of the table"}, Y: report.Axis{Label: "gain", Unit: measure.Share}}
	for _, row := range p.table {
		p.say("| %s |", row[0].move)
		line := report.Series{Name: row[0].move}
		for k, c := range row {
			p.say(" %s |", interval(c.gain))
			line.Dots = append(line.Dots, report.Dot{X: float64(k), Y: math.Expm1(c.gain.Mean), Low: math.Expm1(c.gain.Low),
				High: math.Expm1(c.gain.High)})
		}
		p.say("\n")
		if m := row[0].move; m == "over-declare" || m == "split" || m == "collude" {
			chart.Series = append(chart.Series, line)
		}
	}
	p.say("\nWhat the mechanisms cost where all are honest, against calibration without prices:\n\n")
	p.say("| mechanism | mean time to the end | fairness (Jain) |\n|---|---|---|\n")
	for _, c := range p.honest {
		p.say("| %s | %s | %.3f |\n", c.mechanism, interval(c.welfare), c.jain.Mean)
	}
	p.say("\n")
	return p.draw("gain.svg", chart)
}

func (p *page) draw(name string, c *report.Chart) error {
	if err := report.Create(filepath.Join(p.dir, name), c.SVG); err != nil {
		return err
	}
	p.say("![%s](incentives/%s)\n\n", c.Title, name)
	return nil
}

// best is what the search found.
func (p *page) best() {
	p.say("## Best responses\n\n")
	p.say("%d answers to the others' honesty are tried: scores multiplied by %s, all variants or the longest or shortest, jobs as they\n",
		len(candidates()), "a quarter to two or all the highest")
	p.say("are or in two or four, in time or in the last moment. The best on a few seeds are tried on more, the best of these on seeds " +
		"of\n")
	p.say("its own, so that it is not the luckiest. The first row of each is that one.\n\n")
	for _, of := range []struct {
		name  string
		cells []cell
	}{{"the default, " + shipped().name, p.responses}, {mechanisms()[unpaid].name + ", nothing paid", p.unpaid}} {
		p.say("**%s**\n\n| response | rounds | gain (95%%) | work | bar |\n|---|---|---|---|---|\n", of.name)
		for _, c := range of.cells {
			p.say("| %s | %d | %s | %s | %s |\n", c.move, c.rounds, interval(c.gain), percent(c.work.Mean), verdict(c.gain))
		}
		p.say("\n")
	}
}

// many is what becomes of all where many lie.
func (p *page) many() error {
	p.say("## Many liars in the default market\n\n| lie | liars | gain of the liars | slowdown of the others | of all | fairness "+
		"(Jain), all honest %.3f |\n|---|---|---|---|---|---|\n", p.crowds[0][0].jainHonest.Mean)
	chart := &report.Chart{Title: "Slowdown of the honest owners", X: report.Axis{Label: "liars", Unit: measure.Share},
		Y: report.Axis{Label: "slowdown", Unit: measure.Share}}
	for _, row := range p.results.crowds {
		line := report.Series{Name: row[0].move, Dots: []report.Dot{{X: 0, Y: 0, Low: math.NaN(), High: math.NaN()}}}
		for _, c := range row {
			p.say("| %s | %d%% | %s | %s | %s | %.3f |\n", c.move, 100*c.liars/owners, interval(c.gain), interval(c.victims),
				interval(c.welfare), c.jain.Mean)
			line.Dots = append(line.Dots, report.Dot{X: float64(c.liars) / owners, Y: math.Expm1(c.victims.Mean),
				Low: math.Expm1(c.victims.Low), High: math.Expm1(c.victims.High)})
		}
		chart.Series = append(chart.Series, line)
	}
	p.say("\n")
	return p.draw("victims.svg", chart)
}

func (p *page) unsolved() {
	p.say("## What is proved, and what is not solved\n\n")
	p.say("In one window, with values that depend on nothing else, no declaration beats the truth under VCG prices: the test\n")
	p.say("`TestTruthIsDominantInOneShot` of internal/core/market/clearing tries every combination. Beyond that the tests beside it " +
		"show a lie\n")
	p.say("that pays where they are named:\n\n")
	for _, line := range []string{
		"*Two together.* VCG is not proof against collusion: two that declare the highest drive each other's price to nothing " +
			"(`TestTwoWhoColludePayNothing`).",
		"*One as two.* A job that is priced in parts may pay less than as a whole (`TestOneJobAsTwoPaysLess`). A queue's purse bounds " +
			"what that brings in the long run. Part of what splitting gains is not the price: a small job does all that is left of it " +
			"in one variant, and declares so in truth.",
		"*Paying one's bid.* In one window a first price rewards bids just over the next one (`TestFirstPricesRewardShading`). Over " +
			"many the purse takes most of that away, since credits saved buy nothing but the next windows; the search above tries it. " +
			"VCG prices are truthful in one window, and only where plans are exact: not where they are exclusive or joint " +
			"(`TestExclusivityBreaksPrices`).",
		"*Repeated rounds.* Who expects less competition soon may wait (`TestRepeatedRoundsRewardWaiting`). Prices are right in each " +
			"round and say nothing of the next. What is planned and not yet sold is priced again when its time comes.",
		"*Chains of variants* are priced as one job, exactly; but a chain job that wins now has less to win later, and its score does " +
			"not say so.",
		"*What is paid for.* Prices are by the time of a lease. Where they were the same for short and long ones (a bid by its score " +
			"counted as ten minutes) hoarding gained 9.5% (5.5 to 13.7) and sending only the longest variants 30% (22 to 37); with a " +
			"refill four times as large purses stayed full, and splitting gained 42% (22 to 67).",
		"*VCG by score.* Where bids are weighed by their score alone, clearing knows no time and prices are multiplied by that of the " +
			"lease: they are VCG's only with `weigh: time`.",
		"*Short purses.* A bid that is scaled down to what a queue can pay is no longer its value. That is what makes queues pay at " +
			"all: credits buy nothing but slice-time.",
		"*Queues.* Credits are shared among queues. Who may make queues, or name any, has as many purses: give queues to people, not " +
			"people to queues (`auth`).",
		"*One queue.* Within one queue nothing is paid by anyone against anyone: there only calibration holds.",
		"*Who goes first because it starves* pays nothing: a way to get time free for those who can wait as long as that.",
		"*Continuations* are not paid for: a running subjob that goes on because nobody outbids it pays what its first window cost.",
		"*A record without history.* A new queue begins fully trusted and with a full purse, and the first lie of each is believed.",
		"*Restore passed off as run.* A plan that hides its restore in its run time has a better overhead feature. The observed score " +
			"takes the same plan, so that this lie is not found out, only the time that it really took.",
		"*Urgency.* A subjob that does only a part of its work in time keeps the whole of its urgency in the observed score.",
	} {
		p.say("- %s\n", line)
	}
}

// interval is a change for people: of a logarithm with its interval.
func interval(e measure.Estimate) string {
	if e.Low == e.High {
		return percent(e.Mean)
	}
	return fmt.Sprintf("%s (%s to %s)", percent(e.Mean), percent(e.Low), percent(e.High))
}

func percent(log float64) string {
	if math.IsNaN(log) {
		return "-"
	}
	text := fmt.Sprintf("%+.1f%%", 100*math.Expm1(log))
	if text == "-0.0%" || text == "+0.0%" {
		return "0.0%"
	}
	return text
}

// verdict holds a gain against the bar.
func verdict(gain measure.Estimate) string {
	switch {
	case math.Expm1(gain.High) <= bar:
		return "met"
	case math.Expm1(gain.Low) > bar:
		return "missed"
	}
	return "not shown"
}
