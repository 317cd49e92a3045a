package fluid

import "math"

// Model is a world under the flow, times in seconds.
type Model struct {
	// Zones, and slices in each.
	Zones, Slices int
	// Share that rigid work holds on average, in jobs of 1 to Width slices and mean length Length.
	Share  float64
	Width  int
	Length float64
	// Load of what rigid work leaves; tasks of mean length Mean; Long is the share of those that are parked and not given up.
	Load, Mean, Long float64
	Patience         float64
	// Age is the period of digests and reports; Delay of a message.
	Age, Delay float64
	// Pace between looks, of which ZoneHops are made in a zone before another is drawn, Resplits times; Guesses is how many nodes are
	// asked in vain by who finds no room.
	Pace                        float64
	Guesses, ZoneHops, Resplits int
	// Uniform: zones are drawn alike.
	Uniform bool
}

// Figures are what a model says.
type Figures struct {
	// Placed of all tasks, Hops for each that is placed, Use of what rigid work leaves, Full: the share of tickets that find no room where
	// they come first.
	Placed, Hops, Use, Full float64
}

// Usual is a world as those that ship, with a number of zones of 100 nodes.
func Usual(zones int) Model {
	return Model{
		Zones: zones, Slices: 400, Share: .4, Width: 16, Length: 30, Load: .9, Mean: .8*1 + .2*6.8, Long: .2, Patience: 1,
		Age: .1, Delay: .0005, Pace: .02, Guesses: 1, ZoneHops: 8, Resplits: 2,
	}
}

// Solve is what happens on average.
func (m *Model) Solve() (out Figures) {
	mean := float64(m.Slices) * (1 - m.Share)
	// The world's leftover, then each zone's beside it: what all zones have more or less than usual, the zones among each other do not.
	for _, world := range gauss5(m.deviation() / mean / math.Sqrt(float64(m.Zones))) {
		x := m.at(mean*(1+world.at), m.Load*mean/m.Mean)
		out.Placed += world.weight * x.Placed
		out.Hops += world.weight * x.Hops
		out.Use += world.weight * x.Use
		out.Full += world.weight * x.Full
	}
	return out
}

// at is what happens where zones have so many slices on average and tasks come at a rate to each.
func (m *Model) at(mean, arrivals float64) Figures {
	var zones []*zone
	among := math.Sqrt(max(0, 1-1/float64(m.Zones)))
	for _, p := range gauss3(m.deviation() * among) {
		c := mean + p.at
		zones = append(zones, m.newZone(max(1, c), p.weight, 1.5*float64(m.Slices)*(1-m.Share)))
	}
	return m.settle(zones, arrivals)
}

// deviation of a zone's leftover: a compound Poisson number.
func (m *Model) deviation() float64 {
	if m.Share == 0 {
		return 0
	}
	jobs, square := m.jobs()
	return math.Sqrt(jobs * square)
}

// jobs is how many rigid jobs a zone has on average, and the mean square of their width.
func (m *Model) jobs() (number, square float64) {
	w := float64(m.Width)
	return m.Share * float64(m.Slices) / ((w + 1) / 2), (w + 1) * (2*w + 1) / 6
}

// giveUp is how many of q that wait give up in a second, if who gives up first is served first, at a rate: none as long as all are served
// within their patience.
func giveUp(q, rate, patience float64) float64 {
	const at = .02 // seconds in which those beyond are gone
	return max(0, q-rate*patience) / at
}

// point is a value with its weight.
type point struct{ at, weight float64 }

// gauss3 and gauss5 stand for a normal distribution with a deviation (Gauss and Hermite): polynomials up to degree 5 and 9 have the right
// mean.
func gauss3(s float64) []point {
	if s == 0 {
		return []point{{0, 1}}
	}
	a := math.Sqrt(3) * s
	return []point{{-a, 1. / 6}, {0, 2. / 3}, {a, 1. / 6}}
}

func gauss5(s float64) []point {
	if s == 0 {
		return []point{{0, 1}}
	}
	a, b := math.Sqrt(5-math.Sqrt(10))*s, math.Sqrt(5+math.Sqrt(10))*s
	near, far := (7+2*math.Sqrt(10))/60, (7-2*math.Sqrt(10))/60
	return []point{{-b, far}, {-a, near}, {0, 8. / 15}, {a, near}, {b, far}}
}
