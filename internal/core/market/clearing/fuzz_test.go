package clearing

import (
	"encoding/binary"
	"slices"
	"testing"

	"sluice.dev/sluice/internal/core/job"
)

// decoded makes bids and their work out of bytes, ten each: any start, length, weight, job and range, unsound ones too.
func decoded(data []byte) (bids []Bid, ranges []job.Range) {
	for ; len(data) >= 10 && len(bids) < 64; data = data[10:] {
		start := int64(int8(data[0]))
		weight := int64(int16(binary.LittleEndian.Uint16(data[2:])))
		bids = append(bids, Bid{
			Start: start, End: start + int64(int8(data[1])), Weight: weight,
			Job: int32(int8(data[4])), Work: int32(data[5]), ID: int32(data[6]),
		})
		ranges = append(ranges, job.Range{From: int64(data[7]), To: int64(data[8])})
	}
	return bids, ranges
}

// FuzzClear: whatever the bids, plans keep their rules, bounds hold, prices are within weights, and the small ones are the
// best there is.
func FuzzClear(f *testing.F) {
	f.Add(
		[]byte(
			"\x00\x04\x06\x00\x00\x00\x00\x00\x09\x00\x04\x04\x06\x00\x00\x00\x01\x00\x09\x00\x02\x05\x07\x00\x01\x00\x00\x00\x05\x01\x07\x03\x04\x00\x02\x00\x00\x00\x03\x01"))
	f.Add([]byte("\xff\x80\x00\x80\xff\x01\x02\x03\x04\x05\x05\x00\x01\x00\x7f\x00\x00\x07\x07\x02"))
	f.Fuzz(func(t *testing.T, data []byte) {
		bids, ranges := decoded(data)
		var c Clearer
		won, value := c.Clear(bids)
		verify(t, bids, won, value, disjoint)
		for k, p := range c.Prices(bids, won) {
			if p < 0 || p > bids[won[k]].Weight {
				t.Fatalf("price %d of %+v", p, bids[won[k]])
			}
		}
		plain := value
		fixed := []int32{int32(len(data)), int32(len(bids)) / 2, 0}
		won, _, value = c.Around(bids, fixed)
		verify(t, bids, won, value, disjoint)
		x := c.Exclusive(bids, nil)
		verify(t, bids, x.Won, x.Value, onePerJob)
		if x.Value > x.Bound || x.Bound > plain || x.Bound > 2*x.Value {
			t.Fatalf("exclusive %+v, plain %d", x, plain)
		}
		x = c.Exclusive(bids, fixed)
		verify(t, bids, x.Won, x.Value, onePerJob)
		windows, all := spread(bids, func(i int) int { return int(data[i*10+9]) % 3 }, 3)
		lawful(t, windows, all, c.Joint(windows, nil))
		lawful(t, windows, all, c.Joint(windows, []At{{1, 0}, {0, 0}, {7, 7}, {-1, 0}}))
		if len(bids) <= 8 {
			if want := brute(bids, disjoint); plain != want {
				t.Fatalf("value %d; the best is %d", plain, want)
			}
			if x, want := c.Exclusive(bids, nil), brute(bids, onePerJob); x.Value != want {
				t.Fatalf("exclusive value %d; the best is %d", x.Value, want)
			}
		}
		if early, late, found := c.Conflict(bids, ranges); found {
			a, b := bids[early], bids[late]
			if a.Job != b.Job || a.overlaps(&b) || !ranges[early].Overlaps(ranges[late]) {
				t.Fatalf("%+v over %v and %+v over %v break nothing", a, ranges[early], b, ranges[late])
			}
			return
		}
		// With the rule kept the plain plan sells no work twice.
		c.Clear(bids)
		for k, i := range c.won {
			if slices.ContainsFunc(c.won[:k], func(j int32) bool {
				return bids[j].Job == bids[i].Job && !ranges[j].Empty() && !ranges[i].Empty() && ranges[j].Overlaps(ranges[i])
			}) {
				t.Fatalf("work sold twice: %v of %+v", c.won, bids)
			}
		}
	})
}
