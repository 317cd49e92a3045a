package fluid

import "math"

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

// newZone is a zone in which all is free; most is how many may wait for a second's worth of patience.
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

// meanWeight is of what digests said.
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
	r.lost[0] += max(0, r.fall[0]*z.step) // who can not wait is lost
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

// pass lets dt pass while digests stand still; a is the rate for a unit of weight, and may the share of those that wait that may move.
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
