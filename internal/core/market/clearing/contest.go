package clearing

import "slices"

// near is how far behind the best plan another may be and still be worth making better: this part of its value.
const near = 32

// contest finds disjoint rows of great weight, at most one of each group. The problem is NP-hard (Spieksma, "On the
// approximability of an interval scheduling problem", 1999), so three parts work together, each with its own proof:
// twoPhase gives half of the best at least, bargain gives an upper bound near it, and branch closes the gap where the
// instance is small enough.
type contest struct {
	rows []row
	most []int64 // by group: the greatest weight of its rows

	// The plan under relaxation: rows of one group may all be taken, but each costs the group's price.
	price  []int64
	barred []int32 // by row: how many decisions on the way here forbid it
	best   []int64
	taken  []int32 // what the relaxed plan took, in order
	count  []int32 // by group: how many of taken

	// The best plan so far, and what it is made with.
	pick  []int32
	value int64
	bound int64
	plain int64 // the optimum if a group could win often
	keep  []int32
	lead  []int32 // by group: its heaviest row in keep, -1
	asked []int64 // prices of the lowest bound

	phase phases
	tree  tree
}

// set takes rows, in order of their ends, of groups 0 to n-1, and forgets what was.
func (x *contest) set(rows []row, n int) {
	x.rows = rows
	x.most = filled(x.most, n, 0)
	for j := range rows {
		x.most[rows[j].group] = max(x.most[rows[j].group], rows[j].weight)
	}
	x.price, x.count, x.lead = filled(x.price, n, 0), filled(x.count, n, 0), filled(x.lead, n, -1)
	x.barred, x.best = filled(x.barred, len(rows), 0), sized(x.best, len(rows)+1)
	x.taken, x.pick, x.value = x.taken[:0], x.pick[:0], 0
}

// solve leaves the best plan found in pick and value and an upper bound in bound, at most twice the value. They are equal
// if the plan is the best there is.
func (x *contest) solve() {
	x.plain = x.relax() // with every price 0
	x.bound = x.plain
	x.offer()
	if x.value == x.bound {
		return
	}
	x.bound = min(x.bound, x.twoPhase())
	x.bargain()
	if x.value < x.bound {
		x.branch(search(len(x.rows)))
	}
}

// relax plans as if a group could win often, at these prices, and returns an upper bound for the rows that are not
// barred: the plan's weight less the prices of its rows, plus every price once. A plan that keeps the rule pays each price
// at most once, so it is worth no more than that.
func (x *contest) relax() int64 {
	x.best[0] = 0
	for j := range x.rows {
		r := &x.rows[j]
		v := x.best[j]
		if x.barred[j] == 0 {
			v = max(v, r.weight-x.price[r.group]+x.best[r.before])
		}
		x.best[j+1] = v
	}
	for _, j := range x.taken {
		x.count[x.rows[j].group] = 0
	}
	x.taken = x.trace(x.taken[:0])
	for _, j := range x.taken {
		x.count[x.rows[j].group]++
	}
	sum := x.best[len(x.rows)]
	for _, p := range x.price {
		sum += p
	}
	return sum
}

// trace appends to the rows that best was made of, in order.
func (x *contest) trace(to []int32) []int32 {
	from := len(to)
	for j := len(x.rows); j > 0; {
		if x.best[j] == x.best[j-1] {
			j--
			continue
		}
		to = append(to, int32(j-1))
		j = int(x.rows[j-1].before)
	}
	slices.Reverse(to[from:])
	return to
}

// offer makes a plan that keeps the rule out of what was taken, and remembers it if it is the best so far: of every group
// the heaviest row stays, then what became free is filled the same way until nothing fits. A plan near the best so far is
// made over by swaps as long as that makes it better.
func (x *contest) offer() {
	x.keep = append(x.keep[:0], x.taken...)
	for last := int64(-1); ; {
		value := x.lawful()
		if value > x.value {
			x.pick, x.value = append(x.pick[:0], x.keep...), value
		}
		if value <= last || value < x.value-x.value/near {
			break
		}
		last = value
		x.swap()
	}
	for _, j := range x.keep {
		x.lead[x.rows[j].group] = -1
	}
}

// lawful makes keep a plan that keeps the rule and has no room for more, and says what it is worth.
func (x *contest) lawful() (value int64) {
	for {
		x.thin()
		x.fill()
		from := len(x.keep)
		x.keep = x.trace(x.keep)
		if len(x.keep) == from {
			break
		}
	}
	for _, j := range x.keep {
		value += x.rows[j].weight
	}
	return value
}

// swap plans anew where every row of a group that keep has costs what keep would lose with its own row of the group: a row
// is taken if it is worth what it drives out, in time and in its group. Where such a plan takes two new rows of a group it
// promises too much, so it is not always better.
func (x *contest) swap() {
	x.best[0] = 0
	for j := range x.rows {
		r := &x.rows[j]
		w := r.weight
		if own := x.lead[r.group]; own >= 0 && int(own) != j {
			w -= x.rows[own].weight
		}
		x.best[j+1] = max(x.best[j], w+x.best[r.before])
	}
	for _, j := range x.keep {
		x.lead[x.rows[j].group] = -1
	}
	x.keep = x.trace(x.keep[:0])
}

// thin leaves in keep the heaviest row of each group, the earlier one of equals, and in order.
func (x *contest) thin() {
	for _, j := range x.keep {
		x.lead[x.rows[j].group] = -1
	}
	for _, j := range x.keep {
		g := x.rows[j].group
		if old := x.lead[g]; old < 0 || x.rows[j].weight > x.rows[old].weight {
			x.lead[g] = j
		}
	}
	n := 0
	for _, j := range x.keep {
		if x.lead[x.rows[j].group] == j {
			x.keep[n] = j
			n++
		}
	}
	x.keep = x.keep[:n]
	slices.Sort(x.keep)
}

// fill plans with the rows of groups not in keep, in the room that keep leaves. A row overlaps one of keep that ends no
// later if that is not before it, and one that ends later if the next one starts before it ends.
func (x *contest) fill() {
	x.best[0] = 0
	next, last := 0, int32(-1)
	for j := range x.rows {
		r := &x.rows[j]
		v := x.best[j]
		if next < len(x.keep) && int(x.keep[next]) == j {
			last = int32(j)
			next++
		} else if x.lead[r.group] < 0 && last < r.before && (next == len(x.keep) || x.rows[x.keep[next]].start >= r.end) {
			v = max(v, r.weight+x.best[r.before])
		}
		x.best[j+1] = v
	}
}
