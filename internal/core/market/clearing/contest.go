package clearing

import (
	"math"
	"slices"
)

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

// trace appends to to the rows that make up best, in order.
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

const (
	// rounds of bargaining at most. More than these move the bound of a thousand bids by less than a thousandth.
	rounds = 80
	// stale rounds without a lower bound halve the step.
	stale = 4
)

// bargain lowers the bound by raising the price of groups that the relaxed plan takes more than once and lowering that of
// groups it does not take (Lagrangian relaxation of the rule, with Polyak's step). Every round gives a bound, and its plan
// is offered. The least that this can reach is the bound of the linear program, whose gap
// is at most 2: the extras of twoPhase are a solution of its dual.
func (x *contest) bargain() {
	x.asked = append(x.asked[:0], x.price...)
	halved, since := uint(0), 0
	for range rounds {
		bound := x.relax()
		if bound < x.bound {
			x.bound, since = bound, 0
			x.asked = append(x.asked[:0], x.price...)
		} else if since++; since == stale {
			halved, since = halved+1, 0
		}
		norm := int64(0)
		for g, n := range x.count {
			if off := int64(n) - 1; x.price[g] > 0 || off > 0 {
				norm += off * off
			}
		}
		x.offer()
		if norm == 0 || x.value == x.bound {
			break
		}
		step := max(1, ((bound-x.value)>>halved)/norm)
		for g, n := range x.count {
			if off := int64(n) - 1; x.price[g] > 0 || off > 0 {
				x.price[g] = min(max(x.price[g]+step*off, 0), x.most[g]) // above most it can't be had anyway
			}
		}
	}
}

const (
	// Exhaustive is the number of bids up to which a plan with at most one bid a group is always the best there is.
	Exhaustive = 24
	// effort bounds the search beyond that, in rows looked at, some nanoseconds each.
	effort = 1 << 18
)

// tree is the state of the search.
type tree struct {
	left   int   // relaxations that may still be made
	open   int64 // the greatest bound of abandoned branches
	groups []int32
	first  []int32 // by group: its first place in groups; one more at the end
	claims []claim // by group, those taken
}

// branch searches depth first for the best plan. Where the relaxed plan takes two rows of a group, no plan takes both, so
// either the group's rows up to the first of them are out or the later ones are. Each such split parts the choices of one
// row of each group into two, so there are no more leaves than choices: with M rows at most 3^(M/3), 6,561 for Exhaustive.
// Beyond that the search ends after limit relaxations, and the bound is the greatest of what it has not looked into.
func (x *contest) branch(limit int) {
	x.members()
	x.tree.open, x.tree.left = 0, limit
	x.node(x.bound)
	x.bound = min(x.bound, max(x.value, x.tree.open))
}

// search is how many relaxations a search over rows may make.
func search(rows int) int {
	if rows <= Exhaustive {
		return math.MaxInt
	}
	return effort / rows
}

// members lists every group's rows.
func (x *contest) members() {
	t := &x.tree
	t.first = filled(t.first, len(x.most)+1, 0)
	for j := range x.rows {
		t.first[x.rows[j].group+1]++
	}
	for g := range x.most {
		t.first[g+1] += t.first[g]
	}
	t.groups = sized(t.groups, len(x.rows))
	for j := range x.rows {
		g := x.rows[j].group
		t.groups[t.first[g]] = int32(j)
		t.first[g]++
	}
	copy(t.first[1:], t.first)
	t.first[0] = 0
}

// node looks at what is not barred, which is worth at most bound.
func (x *contest) node(bound int64) {
	t := &x.tree
	copy(x.price, x.asked)
	for {
		if bound <= x.value {
			return
		}
		if t.left == 0 {
			t.open = max(t.open, bound)
			return
		}
		t.left--
		bound = min(bound, x.relax())
		group, early, late := x.dispute()
		x.offer()
		if bound <= x.value {
			return
		}
		if group >= 0 {
			x.split(group, early, late, bound)
			return
		}
		// Nothing is taken twice. If besides no price is asked for what is not taken, this plan is the best here;
		// otherwise drop those prices and look again.
		idle := false
		for g, p := range x.price {
			if p > 0 && x.count[g] == 0 {
				x.price[g], idle = 0, true
			}
		}
		if !idle {
			return
		}
	}
}

// claim is what the relaxed plan takes of one group: weight in all and of its heaviest row, and its first two rows.
type claim struct {
	sum, most   int64
	early, late int32
}

// dispute finds the group that would lose most if it kept one of the rows taken, and the first two of these; -1 if every
// group has one at most.
func (x *contest) dispute() (group, early, late int32) {
	t := &x.tree
	t.claims = sized(t.claims, len(x.most))
	for _, j := range x.taken {
		t.claims[x.rows[j].group] = claim{early: -1, late: -1}
	}
	group = -1
	loss := int64(0)
	for _, j := range x.taken {
		g, weight := x.rows[j].group, x.rows[j].weight
		k := &t.claims[g]
		k.sum, k.most = k.sum+weight, max(k.most, weight)
		if k.early < 0 {
			k.early = j
			continue
		}
		if k.late < 0 {
			k.late = j
		}
		if k.sum-k.most > loss {
			group, early, late, loss = g, k.early, k.late, k.sum-k.most
		}
	}
	return group, early, late
}

// split looks at both halves, the one that keeps the heavier of the two rows first.
func (x *contest) split(group, early, late int32, bound int64) {
	keepLate := x.rows[late].weight > x.rows[early].weight
	for _, outEarly := range [2]bool{keepLate, !keepLate} {
		x.bar(group, early, outEarly, 1)
		x.node(bound)
		x.bar(group, early, outEarly, -1)
	}
}

// bar forbids (by 1) or allows again (by -1) the group's rows up to j, or those after it.
func (x *contest) bar(group, j int32, upTo bool, by int32) {
	for k := x.tree.first[group]; k < x.tree.first[group+1]; k++ {
		if m := x.tree.groups[k]; m <= j == upTo {
			x.barred[m] += by
		}
	}
}

// phases is the scratch space of twoPhase.
type phases struct {
	stack []pushed
	sum   []int64 // sum[k]: the extras of the first k of stack
	depth []int32 // by row: how many were pushed before it
	head  []int32 // by group: its latest on stack, -1
}

// pushed is a row on the stack: what it adds (extra), what its group has added up to it (own), and the group's one before.
type pushed struct {
	row, prev  int32
	extra, own int64
}

// twoPhase makes a plan worth at least half of the best and returns twice what proves it, an upper bound (Berman and
// DasGupta, "Multi-phase algorithms for throughput maximization for real-time scheduling", 2000; Bar-Noy and others, local
// ratio). Rows are taken by end; one is pushed if its weight exceeds the extras of those pushed before that exclude it (in
// its group, or overlapping it), by its extra. Then the stack is popped, and a row is taken if nothing taken excludes it.
//
// Proof. Let S be the sum of all extras. The plan is worth at least S: each pushed row is taken or excluded by a taken one
// that was pushed later, whose weight contains its extra. The best plan is worth at most 2S: the weight of each of its rows
// is at most the extras, its own included, of what excludes it and was pushed no later, and each pushed row counts so for
// at most two rows of the plan: one of its group, and one that overlaps it and ends no earlier, for two such both have its
// last instant. O(M) after sorting, but for the rows of a group that overlap each other, which are looked through.
func (x *contest) twoPhase() (bound int64) {
	bound = x.phases()
	x.suggest(x.keep)
	return bound
}

// phases leaves the plan in keep.
func (x *contest) phases() (bound int64) {
	p := &x.phase
	p.stack, p.sum = p.stack[:0], append(p.sum[:0], 0)
	p.depth, p.head = sized(p.depth, len(x.rows)), filled(p.head, len(x.most), -1)
	for j := range x.rows {
		r := &x.rows[j]
		p.depth[j] = int32(len(p.stack))
		early := len(p.stack) // those before it do not overlap this row
		if int(r.before) < j {
			early = int(p.depth[r.before])
		}
		extra := r.weight - (p.sum[len(p.stack)] - p.sum[early])
		k := p.head[r.group]
		for k >= int32(early) {
			k = p.stack[k].prev
		}
		if k >= 0 {
			extra -= p.stack[k].own
		}
		if extra <= 0 {
			continue
		}
		own := extra
		if prev := p.head[r.group]; prev >= 0 {
			own += p.stack[prev].own
		}
		p.stack = append(p.stack, pushed{row: int32(j), prev: p.head[r.group], extra: extra, own: own})
		p.head[r.group] = int32(len(p.stack) - 1)
		p.sum = append(p.sum, p.sum[len(p.sum)-1]+extra)
	}

	x.keep = x.keep[:0]
	free := int64(Horizon)
	for _, s := range slices.Backward(p.stack) {
		r := &x.rows[s.row]
		if r.end <= free && x.lead[r.group] < 0 {
			x.lead[r.group] = s.row
			x.keep = append(x.keep, s.row)
			free = r.start
		}
	}
	slices.Reverse(x.keep)
	for _, j := range x.keep {
		x.lead[x.rows[j].group] = -1
	}
	return 2 * p.sum[len(p.stack)]
}

// suggest offers a plan from elsewhere: the relaxed plan becomes this one.
func (x *contest) suggest(rows []int32) {
	for _, j := range x.taken {
		x.count[x.rows[j].group] = 0
	}
	x.taken = append(x.taken[:0], rows...)
	for _, j := range x.taken {
		x.count[x.rows[j].group]++
	}
	x.offer()
}
