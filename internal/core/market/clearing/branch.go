package clearing

import "math"

const (
	// Exhaustive is the number of bids up to which a plan with at most one bid a group is always the best there is.
	Exhaustive = 24
	// effort bounds the search beyond that, in rows looked at, some nanoseconds each.
	effort = 1 << 18
)

// tree is the state of the search.
type tree struct {
	left   int   // relaxations that may still be made
	open   int64 // the greatest bound of what was given up
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

// search is how many relaxations a search over so many rows may make.
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
