package clearing

import (
	"cmp"
	"math/bits"
	"slices"
)

// A bid is sorted as one word: a time above, its index below.
const (
	indexBits = 24
	indexMask = 1<<indexBits - 1
)

// Sorting by counting digits reads each word a few times whatever their number, so it pays once there are enough of them
// for its counters; with few words small digits do.
const (
	fewWords, someWords   = 96, 1024
	smallDigit, wideDigit = 8, 11
)

// order sorts bids by their ends.
type order struct {
	keys, spare []uint64
	base        int64 // the earliest end, taken from all
	counts      [1 << wideDigit]uint32
	// Where the keys were sorted by digits, counts has the places where the bids of each leading digit end; shift is what
	// is below that digit. Where they were not, shift is that of none: one stretch for all.
	shift int
}

// byEnd leaves in keys the sound bids that stand leaves room for, sorted by End.
func (o *order) byEnd(bids []Bid, stand *fixed) {
	o.keys = sized(o.keys, len(bids))
	n, latest := 0, int64(0)
	o.base = Horizon
	for i := range bids {
		b := &bids[i]
		if !b.sound() || stand.blocks(b) {
			continue
		}
		o.keys[n] = uint64(b.End)<<indexBits | uint64(i)
		n++
		o.base, latest = min(o.base, b.End), max(latest, b.End)
	}
	o.keys = o.keys[:n]
	if n == 0 {
		return
	}
	for i := range o.keys {
		o.keys[i] -= uint64(o.base) << indexBits
	}
	o.sort(uint64(latest - o.base))
}

// sort sorts keys by what is above the index, which is most at the highest. Equals keep their order.
func (o *order) sort(most uint64) {
	o.shift, o.counts[0] = 63, uint32(len(o.keys))
	if len(o.keys) < fewWords {
		slices.Sort(o.keys)
		return
	}
	digit := wideDigit
	if len(o.keys) < someWords {
		digit = smallDigit
	}
	o.spare = sized(o.spare, len(o.keys))
	counts := o.counts[:1<<digit]
	for shift := 0; shift < bits.Len64(most); shift += digit {
		o.shift = shift
		at, mask := indexBits+shift, uint64(len(counts)-1)
		clear(counts)
		for _, k := range o.keys {
			counts[k>>at&mask]++
		}
		sum := uint32(0)
		for d, n := range counts {
			counts[d] = sum
			sum += n
		}
		for _, k := range o.keys {
			d := k >> at & mask
			o.spare[counts[d]] = k
			counts[d]++
		}
		o.keys, o.spare = o.spare, o.keys
	}
}

// ties orders bids that end together by (Job, ID), and bids that even share these by Start, Weight and Work, so that the
// order of the input shows nowhere.
func (o *order) ties(bids []Bid) {
	for i := 0; i < len(o.keys); {
		j := i + 1
		for j < len(o.keys) && o.keys[j]>>indexBits == o.keys[i]>>indexBits {
			j++
		}
		if j > i+1 {
			slices.SortFunc(o.keys[i:j], func(x, y uint64) int {
				return compare(&bids[x&indexMask], &bids[y&indexMask])
			})
		}
		i = j
	}
}

// compare orders bids that end together: only bids that are alike in everything are equal.
func compare(a, b *Bid) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Start, b.Start), cmp.Compare(a.Weight, b.Weight),
		cmp.Compare(a.Work, b.Work))
}

// upTo is how many bids end at or before t, which is before the last of them ends. The leading digit says nearly where.
func (o *order) upTo(t int64) int32 {
	if t < o.base {
		return 0
	}
	at, digit := uint32(0), uint64(t-o.base)>>o.shift
	if digit > 0 {
		at = o.counts[digit-1]
	}
	limit := uint64(t-o.base+1) << indexBits
	keys := o.keys[at:o.counts[digit]]
	for len(keys) > 0 {
		half := len(keys) / 2
		if keys[half] < limit {
			at += uint32(half) + 1
			keys = keys[half+1:]
		} else {
			keys = keys[:half]
		}
	}
	return int32(at)
}
