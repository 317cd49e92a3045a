package clearing

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
)

func TestConflict(t *testing.T) {
	at := func(start, end int64, owner int32) Bid { return Bid{Start: start, End: end, Job: owner} }
	for name, c := range map[string]struct {
		bids        []Bid
		ranges      []job.Range
		early, late int32
		found       bool
	}{
		"none":                 {},
		"alternatives overlap": {[]Bid{at(0, 5, 0), at(4, 9, 0)}, []job.Range{{From: 0, To: 9}, {From: 0, To: 9}}, 0, 0, false},
		"a chain":              {[]Bid{at(5, 9, 0), at(0, 5, 0)}, []job.Range{{From: 4, To: 8}, {From: 0, To: 4}}, 0, 0, false},
		"the same work twice":  {[]Bid{at(5, 9, 0), at(0, 5, 0)}, []job.Range{{From: 3, To: 8}, {From: 0, To: 4}}, 1, 0, true},
		"two jobs":             {[]Bid{at(5, 9, 0), at(0, 5, 1)}, []job.Range{{From: 3, To: 8}, {From: 0, To: 4}}, 0, 0, false},
		"empty in time":        {[]Bid{at(5, 9, 0), at(0, 0, 0)}, []job.Range{{From: 3, To: 8}, {From: 0, To: 4}}, 0, 0, false},
		"empty in work":        {[]Bid{at(5, 9, 0), at(0, 5, 0)}, []job.Range{{From: 3, To: 8}, {From: 4, To: 4}}, 0, 0, false},
		"the least job, by start": {[]Bid{at(0, 2, 1), at(2, 4, 1), at(0, 2, 0), at(7, 9, 0), at(4, 6, 0)},
			[]job.Range{{From: 0, To: 1}, {From: 0, To: 1}, {From: 0, To: 1}, {From: 0, To: 1}, {From: 0, To: 1}}, 2, 4, true},
	} {
		t.Run(name, func(t *testing.T) {
			var k Clearer
			if early, late, found := k.Conflict(c.bids, c.ranges); early != c.early || late != c.late || found != c.found {
				t.Errorf("%d, %d, %v; want %d, %d, %v", early, late, found, c.early, c.late, c.found)
			}
		})
	}
}

// Conflict finds a pair if looking at every pair finds one, and what it finds is one, with the earliest second bid.
func TestConflictLooksAtEveryPair(t *testing.T) {
	var c Clearer
	breaks := func(bids []Bid, ranges []job.Range, i, j int32) bool {
		a, b := &bids[i], &bids[j]
		return a.Job == b.Job && a.fits() && b.fits() && a.End <= b.Start && !ranges[i].Empty() && !ranges[j].Empty() &&
			ranges[i].Overlaps(ranges[j])
	}
	rapid.Check(t, func(t *rapid.T) {
		bids := drawBids(t, 12, 12)
		ranges := drawRanges(t, len(bids))
		any := false
		owner, start := int32(0), int64(0)
		for i := range bids {
			for j := range bids {
				if breaks(bids, ranges, int32(i), int32(j)) {
					b := &bids[j]
					if !any || b.Job < owner || b.Job == owner && b.Start < start {
						owner, start = b.Job, b.Start
					}
					any = true
				}
			}
		}
		early, late, found := c.Conflict(bids, ranges)
		if found != any || found && (!breaks(bids, ranges, early, late) || bids[late].Job != owner || bids[late].Start != start) {
			t.Fatalf("%d, %d, %v; a pair exists: %v, of job %d with its second bid at %d", early, late, found, any, owner, start)
		}
	})
}

// drawn are ranges of work for a test of speed or memory.
func drawn(rng *rand.Rand, n int) []job.Range {
	out := make([]job.Range, n)
	for i := range out {
		from := rng.Int64N(1000)
		out[i] = job.Range{From: from, To: from + 1}
	}
	return out
}
