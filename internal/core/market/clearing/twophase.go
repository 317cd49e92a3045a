package clearing

import "slices"

// phases is what twoPhase works with.
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
