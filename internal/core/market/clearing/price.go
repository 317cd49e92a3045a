package clearing

import (
	"math/bits"
	"sort"

	"sluice.dev/sluice/internal/core/invariant"
)

// Prices says what each winner pays by the rule of Vickrey, Clarke and Groves: the best that the others could have without
// its job, less what they have with it. It prices the winners of this Clearer's latest Clear or Around; bids and won must
// be those, or it panics. The answer runs along won. A job that won several bids pays for all at once, divided among them
// by weight. What is fixed did not win by weight: it pays nothing, and the others are priced as if its time were not
// there.
//
// Each price is from 0 to the weight of its bid: others can not lose more by the job than its bids displace, for else the
// plan without it would have been better. Being exact takes an exact plan: there is nothing like it for Exclusive and Joint.
//
// Where all bids of a job overlap pairwise they share an instant, its cut (the latest start; Helly), so a plan without the
// job either has nothing at the cut, F(cut) + B(cut), or one foreign bid across it, F(start) + weight + B(end), with F the
// best that ends by then and B the best that starts from then on: no bid of the job is in any of these. All are had
// together in O(M log M). For a job with a chain of bids the plan is made again without it, O(M) each.
func (c *Clearer) Prices(bids []Bid, won []int32) []int64 {
	p := &c.prices
	invariant.Check(c.count == len(bids) && len(won) == len(c.won), "clearing: prices are asked for what this clearer has not cleared")
	c.seats()
	c.cross()
	for k := range p.winners {
		w := &p.winners[k]
		if w.cut < 0 {
			w.price = c.again(c.rows[w.first].group, int(w.first))
		}
		w.price -= c.best[len(c.rows)] - w.weight
	}
	p.paid = p.paid[:0]
	next := 0
	for _, i := range won {
		if next == len(c.wonRows) || c.rows[c.wonRows[next]].bid != i {
			p.paid = append(p.paid, 0)
			continue
		}
		r := &c.rows[c.wonRows[next]]
		p.paid = append(p.paid, p.winners[p.seat[r.group]].charge(r.weight))
		next++
	}
	invariant.Check(next == len(c.wonRows), "clearing: prices are asked for what this clearer has not cleared")
	return p.paid
}

// charge is the part of the price that falls to the next bid, which has this weight: the parts add up to the price, and
// none is more than its weight.
func (w *winner) charge(weight int64) int64 {
	w.share += weight
	hi, lo := bits.Mul64(uint64(w.price), uint64(w.share))
	sum, _ := bits.Div64(hi, lo, uint64(w.weight))
	part := int64(sum) - w.charged
	w.charged = int64(sum)
	return part
}

// seats finds the jobs that won, and where all bids of each overlap.
func (c *Clearer) seats() {
	p := &c.prices
	n := int32(0)
	for j := range c.rows {
		n = max(n, c.rows[j].group+1)
	}
	p.seat = filled(p.seat, int(n), -1)
	p.winners = p.winners[:0]
	for _, j := range c.wonRows {
		r := &c.rows[j]
		if p.seat[r.group] < 0 {
			p.seat[r.group] = int32(len(p.winners))
			p.winners = append(p.winners, winner{earliest: Horizon, first: -1})
		}
		p.winners[p.seat[r.group]].weight += r.weight
	}
	for j := range c.rows {
		r := &c.rows[j]
		if k := p.seat[r.group]; k >= 0 {
			w := &p.winners[k]
			w.latest, w.earliest = max(w.latest, r.start), min(w.earliest, r.end)
			if w.first < 0 {
				w.first = int32(j)
			}
		}
	}
	// Winners do not overlap, and a cut is within its job's win: cuts come out in order.
	p.cuts, p.owner = p.cuts[:0], p.owner[:0]
	for k := range p.winners {
		w := &p.winners[k]
		w.cut = -1
		if w.latest < w.earliest {
			w.cut = int32(len(p.cuts))
			p.cuts, p.owner = append(p.cuts, w.latest), append(p.owner, int32(k))
		}
	}
}

// cross gives every winner with a cut, as its price, the best plan without its job.
func (c *Clearer) cross() {
	p, n, cuts := &c.prices, len(c.rows), len(c.prices.cuts)
	if cuts == 0 {
		return
	}
	c.byStart()
	p.next, p.below, p.after = sized(p.next, n), sized(p.below, n), sized(p.after, n+1)
	starts := c.order.keys
	q, h := 0, 0
	for j := range c.rows {
		end := c.rows[j].end
		for q < n && int64(starts[q]>>indexBits)+c.order.base < end {
			q++
		}
		for h < cuts && p.cuts[h] < end {
			h++
		}
		p.next[j], p.below[j] = int32(q), int32(h)
	}
	p.reach = filled(p.reach, cuts*bits.Len(uint(cuts)), 0)
	p.after[n] = 0
	lo := cuts
	for i := n - 1; i >= 0; i-- {
		j := starts[i] & indexMask
		r := &c.rows[j]
		for lo > 0 && p.cuts[lo-1] >= r.start {
			lo--
		}
		with := r.weight + p.after[p.next[j]]
		p.after[i] = max(p.after[i+1], with)
		hi := int(p.below[j])
		if lo >= hi {
			continue
		}
		with += c.best[r.before]
		own := -1
		if k := p.seat[r.group]; k >= 0 {
			own = int(p.winners[k].cut)
		}
		if own < lo || own >= hi {
			p.raise(lo, hi, with)
			continue
		}
		p.raise(lo, own, with)
		p.raise(own+1, hi, with)
	}
	p.settle()
	for k, cut := range p.cuts {
		idle := c.best[sort.Search(n, func(j int) bool { return c.rows[j].end > cut })] +
			p.after[sort.Search(n, func(i int) bool { return int64(starts[i]>>indexBits)+c.order.base > cut })]
		p.winners[p.owner[k]].price = max(idle, p.reach[k])
	}
}

// byStart sorts the rows' places by start, into the keys that load is done with.
func (c *Clearer) byStart() {
	o := &c.order
	o.keys = sized(o.keys, len(c.rows))
	o.base = Horizon
	latest := int64(0)
	for j := range c.rows {
		o.base, latest = min(o.base, c.rows[j].start), max(latest, c.rows[j].start)
	}
	for j := range c.rows {
		o.keys[j] = uint64(c.rows[j].start-o.base)<<indexBits | uint64(j)
	}
	o.sort(uint64(latest - o.base))
}

// raise notes value for the cuts [lo, hi), in the two blocks of 2^level cuts that cover them.
func (p *pricing) raise(lo, hi int, value int64) {
	if lo >= hi {
		return
	}
	level := bits.Len(uint(hi-lo)) - 1
	of := p.reach[level*len(p.cuts):]
	of[lo] = max(of[lo], value)
	of[hi-1<<level] = max(of[hi-1<<level], value)
}

// settle hands every level's blocks down to the two halves below, so that level 0 has the best for each cut.
func (p *pricing) settle() {
	n := len(p.cuts)
	for level := bits.Len(uint(n)) - 1; level > 0; level-- {
		of, half := p.reach[level*n:], p.reach[(level-1)*n:]
		for k := 0; k+1<<level <= n; k++ {
			half[k] = max(half[k], of[k])
			half[k+1<<(level-1)] = max(half[k+1<<(level-1)], of[k])
		}
	}
}

// again is the most that all are worth without a job whose first row is known.
func (c *Clearer) again(group int32, first int) int64 {
	p := &c.prices
	p.without = sized(p.without, len(c.rows)+1)
	copy(p.without, c.best[:first+1])
	for j := first; j < len(c.rows); j++ {
		r := &c.rows[j]
		p.without[j+1] = p.without[j]
		if r.group != group {
			p.without[j+1] = max(p.without[j], r.weight+p.without[r.before])
		}
	}
	return p.without[len(c.rows)]
}
