// Package fluid is arithmetic that says what the flow of Laminar should do, from how it works and not from how it was seen to work: hops,
// tasks placed and leftover used, against load and the age of digests.
//
// # Equations
//
// A zone has c slices that rigid work leaves, and h of them are free; -h tickets wait there if h is below 0. Slices become free at f(h) =
// (c - max(h, 0))/m, where m is the mean length of a task. A ticket is drawn to a zone at a rate A w, in proportion to what the zone's
// digest said, w = max(1, 10 T, h(then)), with A such that all zones together are sent all that arrives: E[A w] = lambda + what moves. So
// h goes up by one at rate f(h) and down by one at rate A w(then), and by rigid jobs that come and go; between two digests w is constant.
// That is a chain of (h(then), h), solved on a lattice; what it settles on is one zone among very many.
//
//   - A digest of period T is used until the next one, and a gate makes its tables anew once a period: its age is T on average, like that
//     of one that is held for 2T. One that is first
//     late and then held for T swings less, so this is too dark where a zone fills within a period.
//   - Of those that wait who gives up first is served first. So of q nobody gives up while q < fW, W being their patience, and what comes
//     beyond that is lost. Without patience that is
//     Erlang's loss, and with W beyond all bounds nobody gives up.
//   - A ticket that waits goes to another zone after ZoneHops looks at Pace, Resplits times, and stays in the last one for what is left of
//     its patience. Which share of those
//     that wait may still move is the same in all zones here.
//   - The rigid part of a zone is a compound Poisson number: jobs of 1 to Width slices. What it leaves in a zone (three values) and in the
//     world (five) is
//     drawn once, since rigid jobs last many patiences; and on top, jobs that come and go let h walk at random with the same variance.
//   - A hop to what looks free fails if somebody is on the way to the same fragment, within a round trip, or if rigid work has taken it
//     since the node's report, half a period old:
//     with chance min(1, (arrivals x 2 Delay + rigid x T/2)/h). A ticket that finds no room has asked Guesses nodes.
//
// # What it does not know
//
// Sizes: there is one class, and any slice serves any task. Lengths: they are exponential with one mean; how many run at a fixed rate does
// not depend on more (Erlang), how fast a zone that was sent too much empties does: short ones, of which most has just come, go first.
// Long tasks have so much more patience than short ones that they wait for all of those: what is lost is long first, and that is parked
// and counts as placed, which is right for windows shorter than its patience.
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
	// Load on what rigid work leaves; tasks of mean length Mean; Long is the share of those that are parked and not given up.
	Load, Mean, Long float64
	Patience         float64
	// Age is the period of digests and reports; Delay of a message.
	Age, Delay float64
	// Pace between looks, of which ZoneHops are made in a zone before another is drawn, Resplits times; Guesses is how many nodes are
	// asked by a ticket that finds no room.
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

// at computes zones with this mean number of slices and this rate of tasks to each.
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

// gauss3 and gauss5 approximate a normal distribution with a deviation (Gauss and Hermite): exact for the mean of polynomials up to degree
// 5 and 9.
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

// bins is about how many places a lattice has.
const bins = 60

// zone is the chain of one kind of zones: how likely each state is, by what their digest said (then) and what is free now.
type zone struct {
	slices, share float64
	step          float64 // of the lattice, in slices
	low           int     // the place of 0
	// By place: the weight that a digest gives it, how many slices become free in a second, how many of those that wait give up, if none
	// may move, and how many move, if all may.
	weight, out, lost, move []float64
	// p is by then and now; next is scratch.
	p, next [][]float64
}

// newZone is a zone of which the share min(Load, .95) is in use, as its digest says. Its lattice has room for twice as many waiting tickets
// as it serves within their patience, but for most at most.
func (m *Model) newZone(slices, share, most float64) *zone {
	z := &zone{slices: slices, share: share}
	wait := math.Ceil(min(2*slices/m.Mean*m.Patience, most))
	z.step = math.Max(1, math.Round((slices+wait)/bins))
	z.low = int(math.Ceil(wait / z.step))
	n := z.low + int(math.Round(slices/z.step)) + 1
	z.weight, z.out, z.lost, z.move = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range z.weight {
		h := z.free(i)
		if z.weight[i] = max(1, 10*m.Age, h); m.Uniform {
			z.weight[i] = 1
		}
		z.out[i] = (slices - max(h, 0)) / m.Mean
		if h < 0 {
			z.lost[i], z.move[i] = giveUp(-h, z.out[i], m.last()), -h/m.stay()
		}
	}
	z.p, z.next = square(n), square(n)
	start := z.low + int(math.Round((1-min(m.Load, .95))*slices/z.step))
	z.p[min(start, n-1)][min(start, n-1)] = 1
	return z
}

func square(n int) [][]float64 {
	out := make([][]float64, n)
	for i := range out {
		out[i] = make([]float64, n)
	}
	return out
}

// free is the value of a place.
func (z *zone) free(i int) float64 { return float64(i-z.low) * z.step }

// digest lets every zone say what it has now.
func (z *zone) digest() {
	for then := range z.next {
		clear(z.next[then])
	}
	for then := range z.p {
		for now, p := range z.p[then] {
			z.next[now][now] += p
		}
	}
	z.p, z.next = z.next, z.p
}

// meanWeight is of the digests' weights.
func (z *zone) meanWeight() (sum float64) {
	for then := range z.p {
		for _, p := range z.p[then] {
			sum += p * z.weight[then]
		}
	}
	return sum
}

// tally is what was counted: the integrals of time, and of what came, came to a full zone, gave up, moved, failed hops, and waits.
type tally struct{ time, came, full, lost, moved, missed, waits float64 }

// rates are those of one row of a lattice: up and down by a place, and what of it gives up and moves.
type rates struct{ rise, fall, lost, move, above []float64 }

// row sets the rates where tickets come at a rate, walk is the variance that rigid work adds in a second, and a share of those that wait
// may move.
func (z *zone) row(come, walk, may float64, r *rates) {
	n := len(z.weight)
	for i := range n {
		r.lost[i], r.move[i] = (1-may)*z.lost[i], may*z.move[i]
		out := z.out[i] + r.lost[i] + r.move[i]
		variance, drift := (come+out+walk)/(z.step*z.step), (out-come)/z.step
		total := max(variance, math.Abs(drift))
		r.rise[i], r.fall[i] = (total+drift)/2, (total-drift)/2
	}
	r.lost[0] += max(0, r.fall[0]*z.step) // tasks that can not wait are lost
	if z.low == 0 {
		r.lost[0] = come
	}
	r.fall[0], r.rise[n-1] = 0, 0
}

// step lets dt pass in one row by the implicit rule of Euler, which no rate is too fast for: (1 - dt G) next = p, solved in place.
func (r *rates) step(p []float64, dt float64) {
	n, above := len(p), r.above
	for i := range n {
		diagonal := 1 + dt*(r.rise[i]+r.fall[i])
		if i > 0 {
			below := dt * r.rise[i-1]
			diagonal -= below * above[i-1]
			p[i] += below * p[i-1]
		}
		if i < n-1 {
			above[i] = dt * r.fall[i+1] / diagonal
		}
		p[i] /= diagonal
	}
	for i := n - 2; i >= 0; i-- {
		p[i] += above[i] * p[i+1]
	}
}

// pass lets dt pass while digests stay the same; a is the rate for a unit of weight, and may the share of those that wait that may move.
func (m *Model) pass(z *zone, a, may, dt float64, r *rates, t *tally) {
	jobs, squares := m.jobs()
	walk, taken := 0., 0. // what rigid jobs take and give in a second: variance, and what they take
	if m.Share > 0 {
		walk, taken = 2*jobs/m.Length*squares, m.Share*float64(m.Slices)/m.Length
	}
	for then, p := range z.p {
		mass := 0.
		for _, x := range p {
			mass += x
		}
		if mass < 1e-9 {
			continue
		}
		come := a * z.weight[then]
		z.row(come, walk, may, r)
		r.step(p, dt)
		for i, x := range p {
			t.add(x*z.share*dt, z.free(i), come, r.lost[i], r.move[i], come*2*m.Delay+taken*m.Age/2)
		}
	}
}

// add counts a state in which h are free for a time, and so many want one fragment at once or take it unseen.
func (t *tally) add(time, h, come, lost, move, others float64) {
	t.time += time
	t.came += time * come
	t.lost += time * lost
	t.moved += time * move
	if h <= 0 {
		t.full += time * come
		t.waits += time * -h
		return
	}
	miss := min(.9, others/h)
	t.missed += time * come * miss / (1 - miss)
}

// movers is the share of those that wait that may still move: what has found no room in its first or second zone, and not those in the
// last one. full of those that come find no room, fresh come for the first time, and served of all that wait get a place, in a second each.
func (m *Model) movers(fresh, full, waits, served float64) float64 {
	if waits < 1e-9 {
		return 1
	}
	hazard := max(served/waits, 1e-9)
	sum, come := 0., fresh*full
	for range m.Resplits {
		stay := come / (1/m.stay() + hazard)
		sum, come = sum+stay, stay/m.stay()*full
	}
	last := come * -math.Expm1(-hazard*m.last()) / hazard
	return sum / max(sum+last, 1e-12)
}

// stay is how long a ticket that waits does so in a zone before it moves, last how long in the last one.
func (m *Model) stay() float64 { return m.Pace * float64(m.ZoneHops) }

func (m *Model) last() float64 { return max(0, m.Patience-float64(m.Resplits)*m.stay()) }

// settle runs all zones until they are as they stay, and counts. Digests go out all at once here, which makes no difference: zones do not
// see each other.
func (m *Model) settle(zones []*zone, arrivals float64) Figures {
	hold := max(2*m.Age, .01)
	steps := int(math.Ceil(hold / .02))
	dt := hold / float64(steps)
	warm, until := 5*m.Mean, max(8*m.Mean, 5*m.Mean+2*hold) // seconds
	var t tally
	move, may, slices, longest := 0., 1., 0., 0
	for _, z := range zones {
		slices += z.share * z.slices
		longest = max(longest, len(z.weight))
	}
	row := func() []float64 { return make([]float64, longest) }
	r := &rates{row(), row(), row(), row(), row()}
	for at := 0.; at < until; at += hold {
		mean := 0.
		for _, z := range zones {
			z.digest()
			mean += z.share * z.meanWeight()
		}
		if at < warm {
			t = tally{}
		}
		for range steps {
			was := t
			for _, z := range zones {
				m.pass(z, (arrivals+move)/mean, may, dt, r, &t)
			}
			full := (t.full - was.full) / (t.came - was.came)
			lost := (t.lost - was.lost) / dt
			move += ((t.moved-was.moved)/dt - move) / 4
			may += (m.movers(arrivals, full, (t.waits-was.waits)/dt, arrivals*full-lost) - may) / 4
		}
	}
	seconds := t.came / (arrivals + t.moved/t.time)
	lost, full := t.lost/seconds/arrivals, t.full/t.came
	return Figures{
		Placed: 1 - max(0, lost-m.Long), Full: full, Use: (1 - lost) * arrivals * m.Mean / slices,
		Hops: 1 + t.missed/max(t.came-t.full, 1e-12) + full*float64(m.Guesses),
	}
}
