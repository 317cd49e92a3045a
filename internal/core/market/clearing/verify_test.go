package clearing

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/job"
)

// Conflict verifies the rule against selling work twice: two bids of one job overlap in time or do disjoint ranges of work, so that no plan
// sells work twice. ranges[i] is the work of bids[i]. It returns the first pair that breaks the rule, the earlier bid first:
// of the least job the bid that starts first and comes after one that does some of the same work. A bid that is empty in
// time or work breaks nothing. O(M log M).
func (c *Clearer) Conflict(bids []Bid, ranges []job.Range) (early, late int32, found bool) {
	o := &c.order
	o.keys = o.keys[:0]
	most := uint64(0)
	for i := range bids {
		if b := &bids[i]; b.fits() && !ranges[i].Empty() {
			o.keys = append(o.keys, uint64(b.Job)<<indexBits|uint64(i))
			most = max(most, uint64(b.Job))
		}
	}
	c.count = -1
	o.sort(most)
	for i := 0; i < len(o.keys); {
		j, owner := i, o.keys[i]>>indexBits
		latest, earliest := int64(0), int64(Horizon)
		for ; j < len(o.keys) && o.keys[j]>>indexBits == owner; j++ {
			b := &bids[o.keys[j]&indexMask]
			latest, earliest = max(latest, b.Start), min(earliest, b.End)
		}
		if latest >= earliest { // else all of them overlap
			if early, late, found = conflicts.sweep(bids, ranges, o.keys[i:j]); found {
				return early, late, true
			}
		}
		i = j
	}
	return 0, 0, false
}

// sweep goes through one job's bids by start. What has ended by then must share no work with the bid that starts: the
// furthest that any range beginning before its end reaches must not be beyond its beginning.
func (r *rules) sweep(bids []Bid, ranges []job.Range, keys []uint64) (early, late int32, found bool) {
	r.byStart, r.froms = r.byStart[:0], r.froms[:0]
	for _, k := range keys {
		i := int32(k & indexMask)
		r.byStart, r.froms = append(r.byStart, i), append(r.froms, ranges[i].From)
	}
	r.byEnd = append(r.byEnd[:0], r.byStart...)
	slices.SortFunc(r.byStart, func(i, j int32) int {
		return cmp.Or(cmp.Compare(bids[i].Start, bids[j].Start), cmp.Compare(bids[i].ID, bids[j].ID))
	})
	slices.SortFunc(r.byEnd, func(i, j int32) int {
		return cmp.Or(cmp.Compare(bids[i].End, bids[j].End), cmp.Compare(bids[i].ID, bids[j].ID))
	})
	slices.Sort(r.froms)
	r.reach = filled(r.reach, len(keys)+1, 0)
	ended := 0
	for _, i := range r.byStart {
		for ; ended < len(keys) && bids[r.byEnd[ended]].End <= bids[i].Start; ended++ {
			r.see(r.byEnd[ended], ranges)
		}
		if k := r.furthest(ranges[i].To, ranges); k >= 0 && ranges[k].To > ranges[i].From {
			return k, i, true
		}
	}
	return 0, 0, false
}

// see adds bid i to the tree.
func (r *rules) see(i int32, ranges []job.Range) {
	at, _ := slices.BinarySearch(r.froms, ranges[i].From)
	for at++; at < len(r.reach); at += at & -at {
		if k := r.reach[at]; k == 0 || ranges[k-1].To < ranges[i].To {
			r.reach[at] = i + 1
		}
	}
}

// furthest is the bid seen that reaches furthest of those whose work begins before to; -1 for none.
func (r *rules) furthest(to int64, ranges []job.Range) int32 {
	at, _ := slices.BinarySearch(r.froms, to)
	best := int32(-1)
	for ; at > 0; at -= at & -at {
		if k := r.reach[at] - 1; k >= 0 && (best < 0 || ranges[k].To > ranges[best].To) {
			best = k
		}
	}
	return best
}

// conflicts is scratch.
var conflicts rules

// rules is what Conflict works with.
type rules struct {
	byStart, byEnd []int32
	froms          []int64
	reach          []int32 // a Fenwick tree over froms: which of the bids seen reaches furthest, as index + 1
}
