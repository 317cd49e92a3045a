package main

import (
	"fmt"
	"math"
	"strings"

	"sluice.dev/sluice/internal/lab/measure"
)

// measured is what a mechanism does at a point, as the frontier has it.
type measured struct{ placed, messages, landing float64 }

// What is taken for equal: a thousandth of the tasks, a twentieth of messages and of landing.
const (
	samePlaced = .001
	sameCost   = 1.05
)

// atLeast: the other is as good in all three, but for what is taken for equal.
func (a measured) atLeast(b measured) bool {
	return a.placed > b.placed-samePlaced && a.messages < b.messages*sameCost && a.landing < b.landing*sameCost
}

// wins says in what a is better than b, if it is as good in all else.
func (a measured) wins(b measured) (in []string) {
	if !a.atLeast(b) {
		return nil
	}
	if a.placed >= b.placed+samePlaced {
		in = append(in, "placed")
	}
	if a.messages*sameCost <= b.messages {
		in = append(in, "messages")
	}
	if a.landing*sameCost <= b.landing {
		in = append(in, "landing")
	}
	return in
}

// measured is a mechanism at a point.
func (r *result) measured(x float64, m string) measured {
	return measured{r.mean(x, m, measure.PlacedShare), r.mean(x, m, measure.MessagesPerTask), r.mean(x, m, measure.LandingP99)}
}

// peers are those of a study that laminar is compared with.
func (r *result) peers() (out []string) {
	for _, m := range r.names() {
		if m != ours && m != "omniscient" && !strings.HasPrefix(m, ours+":") {
			out = append(out, m)
		}
	}
	return out
}

// wins lists every point where a peer beats laminar: places as many with as few messages and lands as soon, and is better in one of them.
func (p *page) wins(done []result) {
	p.say("## Where a peer wins\n\nAt a point a peer wins if it places as many tasks (within %g) with as few messages and as short a "+
		"p99 of landing (within 5%%), and is better in at least one of the three by more than that. ", samePlaced)
	p.say("All points of the studies of load and scale, means over seeds; the omniscient placer is no peer.\n\n| study | point | peer | " +
		"better in | placed, peer and laminar | messages | landing p99 |\n|---|---|---|---|---|---|---|\n")
	points, lost, beaten, neither := 0, 0, 0, 0
	for i := range done {
		r := &done[i]
		if len(r.frontier) == 0 {
			continue
		}
		for _, pt := range r.points {
			own := r.measured(pt.x, ours)
			for _, m := range r.peers() {
				other := r.measured(pt.x, m)
				if math.IsNaN(other.landing) {
					continue
				}
				points++
				in := other.wins(own)
				switch {
				case len(in) > 0:
					lost++
					p.say("| %s | %s | %s | %s | %.4f, %.4f | %.2f, %.2f | %s, %s |\n", r.name, pt.label, m, strings.Join(in, ", "),
						other.placed, own.placed, other.messages, own.messages,
						value(measure.LandingP99, other.landing), value(measure.LandingP99, own.landing))
				case len(own.wins(other)) > 0:
					beaten++
				default:
					neither++
				}
			}
		}
	}
	p.say("\nOf %d comparisons a peer wins %d, laminar wins %d, and in %d each is better in something.\n\n", points, lost, beaten, neither)
	p.say("%s\n", why)
}

// parted says where the theory and what was simulated part.
func (p *page) parted(done []result) {
	p.say("## Theory and simulation\n\n| study | point | hops: simulated, theory | placed | leftover use |\n|---|---|---|---|---|\n")
	for i := range done {
		r := &done[i]
		if r.theory == nil || len(r.rows) == 0 {
			continue
		}
		for _, pt := range r.points {
			f := r.solved[pt.x]
			hops, placed, use := r.mean(pt.x, ours, measure.HopsMean), r.mean(pt.x, ours, measure.PlacedShare),
				r.mean(pt.x, ours, measure.LeftoverUse)
			if math.Abs(math.Log(hops/f.Hops)) < .15 && math.Abs(placed-f.Placed) < .01 && math.Abs(use-f.Use) < .02 {
				continue
			}
			p.say("| %s | %s | %s | %s | %s |\n", r.name, pt.label, both("%.2f", hops, f.Hops), both("%.3f", placed, f.Placed),
				both("%.3f", use, f.Use))
		}
	}
	p.say("\nAt all points that are not listed hops agree within 15%%, placed within .01 and use within .02. %s\n\n", parting)
}

func both(format string, a, b float64) string { return fmt.Sprintf(format+", "+format, a, b) }

// why and parting are what people have made of the tables above.
const (
	why = `Why: who knows the whole cluster needs no second message for a grant and a claim, no report and no digest. That is two messages of laminar's six and a half (see direct below) for a home that
may die between grant and start, and one and a half for news; what central, omega, two-level and spillback save by it they can not give back when a scheduler dies, of which nothing is
counted here. The central queue lands sooner at every load up to 20,000 tasks a second, which is what one scheduler decides, and with 100,000 nodes it places .40. Beyond load .95 a task of
laminar's waits in its zone for some looks before it goes to another, and one queue for all has no such thing.
`
	parting = `Where they part. *Use, and hops at loads of .95 to 1.05*: worlds that begin full have 2 to 3% more leftover in their first seconds than later ([adr/0037](adr/0037-lean-nodes.md)), so they are
at a smaller load than they say. *Beyond load 1*: a long task that is woken searches anew and counts its hops again, of which the model knows nothing. *Digests older than the time in which a zone
fills* (some .2 s at load .9): the model's zones swing more, since it holds a digest for two periods instead of delaying it by one, and since short tasks, which have mostly just come and leave first, are
not told from long ones. *Everywhere*: sizes, of which there are four in truth, fill one by one.`
)
