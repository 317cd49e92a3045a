package clearing

import "slices"

// fixed are bids that stand before anything is cleared, and what they leave room for.
type fixed struct {
	bids  []Bid   // in order of start
	index []int32 // what stands, in order of start
	alone bool    // one bid a job: the others of a job that stands are out
	jobs  []bool  // that stand; only if alone
	value int64
}

func (f *fixed) clear() {
	f.bids, f.index, f.alone, f.value = f.bids[:0], f.index[:0], false, 0
}

// set lets the listed bids stand in the order given, as far as the earlier ones leave room.
func (f *fixed) set(bids []Bid, list []int32, alone bool) {
	f.clear()
	f.alone = alone
	if alone {
		f.jobs = filled(f.jobs, jobs(bids), false)
	}
	for _, i := range list {
		if i < 0 || int(i) >= len(bids) || !bids[i].fits() || f.blocks(&bids[i]) {
			continue
		}
		at, _ := f.find(bids[i].Start)
		f.bids = slices.Insert(f.bids, at, bids[i])
		f.index = slices.Insert(f.index, at, i)
		f.value += bids[i].Weight
		if alone {
			f.jobs[bids[i].Job] = true
		}
	}
}

// find is the place of the first that starts at t or later.
func (f *fixed) find(t int64) (int, bool) {
	return slices.BinarySearchFunc(f.bids, t, func(b Bid, t int64) int {
		if b.Start < t {
			return -1
		}
		return 1
	})
}

// blocks reports whether a fixed bid is in the way of b.
func (f *fixed) blocks(b *Bid) bool {
	if len(f.bids) == 0 {
		return false
	}
	if f.alone && f.jobs[b.Job] {
		return true
	}
	next, _ := f.find(b.End)
	return next > 0 && f.bids[next-1].overlaps(b)
}

// jobs is one more than the greatest job of a bid that fits.
func jobs(bids []Bid) int {
	n := int32(0)
	for i := range bids {
		if bids[i].fits() {
			n = max(n, bids[i].Job+1)
		}
	}
	return int(n)
}
