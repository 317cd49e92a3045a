package main

import (
	"fmt"
	"math"
	"strings"

	pages "sluice.dev/sluice/bench/page"
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
	for _, m := range r.Names() {
		if m != ours && m != "omniscient" && !strings.HasPrefix(m, ours+":") {
			out = append(out, m)
		}
	}
	return out
}

// comparisons are what all points at which laminar has peers came to: the rows of those at which a peer wins, and how many there are.
type comparisons struct {
	Rows                          []string
	Points, Lost, Beaten, Neither int
}

// Wins looks for points where a peer beats laminar: places as many with as few messages and lands as soon, and is better in one of them.
func (p *page) Wins() (c comparisons) {
	for i := range p.Done {
		r := &p.Done[i]
		if len(r.Frontier) == 0 {
			continue
		}
		for _, pt := range r.Points {
			own := r.measured(pt.X, ours)
			for _, m := range r.peers() {
				other := r.measured(pt.X, m)
				if math.IsNaN(other.landing) {
					continue
				}
				c.Points++
				in := other.wins(own)
				switch {
				case len(in) > 0:
					c.Lost++
					c.Rows = append(c.Rows, pages.Row(r.Name, pt.Label, m, strings.Join(in, ", "), both("%.4f", other.placed, own.placed),
						both("%.2f", other.messages, own.messages),
						value(measure.LandingP99, other.landing)+", "+value(measure.LandingP99, own.landing)))
				case len(own.wins(other)) > 0:
					c.Beaten++
				default:
					c.Neither++
				}
			}
		}
	}
	return c
}

// Parted are the rows of points at which the theory and what was simulated part.
func (p *page) Parted() (rows []string) {
	for i := range p.Done {
		r := &p.Done[i]
		if r.Theory.Vary == "" || len(r.Rows) == 0 {
			continue
		}
		for _, pt := range r.Points {
			f := r.solved[pt.X]
			hops, placed, use := r.mean(pt.X, ours, measure.HopsMean), r.mean(pt.X, ours, measure.PlacedShare),
				r.mean(pt.X, ours, measure.LeftoverUse)
			if math.Abs(math.Log(hops/f.Hops)) < .15 && math.Abs(placed-f.Placed) < .01 && math.Abs(use-f.Use) < .02 {
				continue
			}
			rows = append(rows, pages.Row(r.Name, pt.Label, both("%.2f", hops, f.Hops), both("%.3f", placed, f.Placed),
				both("%.3f", use, f.Use)))
		}
	}
	return rows
}

func both(format string, a, b float64) string { return fmt.Sprintf(format+", "+format, a, b) }
