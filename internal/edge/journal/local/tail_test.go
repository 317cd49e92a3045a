package local

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
)

// replayed opens the directory and collects what it holds.
func replayed(dir string) (j journal.Journal, records []string, notices []string, err error) {
	j, err = Open(dir, Options{SegmentBytes: 400, Notice: func(s string) { notices = append(notices, s) }})
	if err != nil {
		return nil, nil, notices, err
	}
	_, err = j.Replay(nil, func(_ journal.Position, data []byte) error {
		records = append(records, string(data))
		return nil
	})
	if err != nil {
		err = errors.Join(err, j.Close())
	}
	return j, records, notices, err
}

// filled is a place with one segment of n batches of two records each, and the offsets at which batches start; the last
// is the end of the file.
func filled(t testing.TB, n int) (p place, starts []int, at []journal.Position) {
	p = newPlace(t)
	j, err := Open(p.dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Replay(nil, nil); err != nil {
		t.Fatal(err)
	}
	at = append(at, journal.Position{})
	for i := range n {
		starts = append(starts, len(p.Get(segmentName(1))))
		last, err := j.Append([][]byte{fmt.Appendf(nil, "first of %d", i), bytes.Repeat([]byte{byte(i)}, 30)})
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, last)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return p, append(starts, len(p.Get(segmentName(1)))), at
}

// places are where the tail is cut: around every boundary, and every fifth byte.
func places(starts []int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for n := segmentHeaderSize; n < starts[len(starts)-1]; n++ {
			i, at := slices.BinarySearch(starts, n)
			near := at || starts[i]-n < 3 || (i > 0 && n-starts[i-1] < 3)
			if (near || n%5 == 0) && !yield(n) {
				return
			}
		}
	}
}

// TestCutTailWithAHeadThatIsBehind: off a record boundary the unfinished write is dropped and told; on a boundary nothing
// inside can tell. In both a witness does.
func TestCutTailWithAHeadThatIsBehind(t *testing.T) {
	p, starts, at := filled(t, 4)
	whole := p.Get(segmentName(1))
	for n := range places(starts) {
		c := p.Copy().(place)
		c.Rot(headName, headContent(journal.Position{})) // as a power cut may leave it
		c.Rot(segmentName(1), bytes.Clone(whole[:n]))
		j, records, notices, err := replayed(c.dir)
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		batches, boundary := slices.BinarySearch(starts, n)
		if !boundary {
			batches--
		}
		if len(records) != 2*batches {
			t.Fatalf("cut at %d: %d records, want %d", n, len(records), 2*batches)
		}
		if told := strings.Contains(fmt.Sprint(notices), "dropped an unfinished write"); told == boundary {
			t.Fatalf("cut at %d (boundary: %v): told %q", n, boundary, notices)
		}
		errs := j.Check([]journal.Position{at[4], at[batches]})
		if errs[1] != nil {
			t.Fatal(errs[1])
		}
		err = errs[0]
		if errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), fmt.Sprintf("%d records are missing", 8-2*batches)) {
			t.Fatalf("cut at %d: the witness was content: %v", n, err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCutTailWithTheHead: the head alone notices every cut, and names segment, offset and record.
func TestCutTailWithTheHead(t *testing.T) {
	p, starts, _ := filled(t, 4)
	whole := p.Get(segmentName(1))
	for n := range places(starts) {
		c := p.Copy().(place)
		c.Rot(segmentName(1), bytes.Clone(whole[:n]))
		_, _, _, err := replayed(c.dir)
		batches, boundary := slices.BinarySearch(starts, n)
		if !boundary {
			batches--
		}
		want := fmt.Sprintf("%s, byte %d, record %d: ", segmentName(1), starts[batches], 2*batches+1)
		if errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "backup") {
			t.Fatalf("cut at %d: %v, want %q", n, err, want)
		}
	}
}

// TestFlipsWithAHeadThatIsBehind: a flipped bit in the last batch is told from an unfinished write, by the bit alone.
func TestFlipsWithAHeadThatIsBehind(t *testing.T) {
	p, starts, _ := filled(t, 3)
	whole := p.Get(segmentName(1))
	dir := p.Copy().(place)
	for i := range len(whole) {
		bad := bytes.Clone(whole)
		bad[i] ^= 1 << (i % 8)
		dir.Rot(segmentName(1), bad)
		report, err := Verify(dir.dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Problems) == 0 || report.Problems[0].File != segmentName(1) {
			t.Fatalf("flip at byte %d: %+v", i, report)
		}
		if b, _ := slices.BinarySearch(starts, i+1); i >= segmentHeaderSize && (report.Problems[0].Offset != int64(starts[b-1]) ||
			report.Problems[0].Seq != uint64(2*b-1)) {
			t.Fatalf("flip at byte %d of the batch at %d is named %v", i, starts[b-1], report.Problems[0])
		}
	}
	dir.Rot(headName, headContent(journal.Position{})) // as a power cut may leave it
	for i := segmentHeaderSize; i < len(whole); i++ {
		bad := bytes.Clone(whole)
		bad[i] ^= 1 << (i % 8)
		dir.Rot(segmentName(1), bad)
		if report, err := Verify(dir.dir); err != nil || len(report.Problems) == 0 {
			t.Fatalf("flip at byte %d, head behind: %+v, %v", i, report, err)
		}
	}
}

// TestTornWrites: a last batch of which some sectors were never written is an unfinished write.
func TestTornWrites(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		at := journal.Position{}
		good, at := appendFrame(segmentHeader(at), at, [][]byte{{1}, {2}})
		n := rapid.IntRange(1, 4000).Draw(r, "length")
		whole, _ := appendFrame(bytes.Clone(good), at, [][]byte{bytes.Repeat([]byte{0xaa}, n)})
		torn := bytes.Clone(whole)
		if rapid.Bool().Draw(r, "short") {
			torn = torn[:rapid.IntRange(len(good)+1, len(whole)-1).Draw(r, "size")]
		} else {
			from := rapid.IntRange(len(good), len(whole)-1).Draw(r, "from")
			clear(torn[from:min(len(torn), from+rapid.IntRange(8, 512).Draw(r, "zeros"))])
		}
		if len(torn) == len(whole) && flips(torn, whole) < 2 {
			return // nothing is missing, or no more than a flipped bit would change
		}
		off, last, end, err := scan(torn, segmentHeaderSize, journal.Position{}, func(int64, []entry) error { return nil })
		if err != nil || end == nil || off != int64(len(good)) || last != at {
			r.Fatalf("stopped at %d (%v), want %d", off, end, len(good))
		}
		if !end.unfinished {
			r.Fatalf("cannot be unfinished: %s", end.why)
		}
		if why := damagedTail(torn, end, at); why != "" {
			r.Fatalf("taken for damage: %s", why)
		}
	})
}

// flips counts the bits in which two texts of one length differ.
func flips(a, b []byte) (n int) {
	for i := range a {
		n += bits.OnesCount8(a[i] ^ b[i])
	}
	return n
}

// TestDamageBeforeALaterBatch: more than a flipped bit, but another batch stands behind it.
func TestDamageBeforeALaterBatch(t *testing.T) {
	p, starts, _ := filled(t, 3)
	p.Rot(headName, headContent(journal.Position{})) // as a power cut may leave it
	whole := p.Get(segmentName(1))
	for _, size := range []int{2, 40, 70} {
		bad := bytes.Clone(whole)
		for i := range size {
			bad[starts[0]+3+i] ^= 0x5a
		}
		p.Rot(segmentName(1), bad)
		report, err := Verify(p.dir)
		if err != nil || len(report.Problems) != 1 || !strings.Contains(report.Problems[0].What, "stands behind it at byte") {
			t.Errorf("%d bytes of the first batch: %+v, %v", size, report, err)
		}
	}
}

// TestForgedBatch: checksums that are right do not make a record out of what was not written.
func TestForgedBatch(t *testing.T) {
	at := journal.Position{}
	good, after := appendFrame(segmentHeader(at), at, [][]byte{[]byte("first")})
	elsewhere := after
	elsewhere.Digest[0] ^= 1
	stray, _ := appendFrame(nil, elsewhere, [][]byte{[]byte("second")})
	_, last, end, err := scan(append(bytes.Clone(good), stray...), segmentHeaderSize, at, func(int64, []entry) error { return nil })
	if err != nil || last != after || end == nil || end.unfinished || !strings.Contains(end.why, "digest") {
		t.Errorf("a batch of another chain: stopped at %s with %+v, %v", last, end, err)
	}
	twice := append(bytes.Clone(good), good[segmentHeaderSize:]...)
	_, last, end, err = scan(twice, segmentHeaderSize, at, func(int64, []entry) error { return nil })
	if err != nil || last != after || end == nil || end.unfinished {
		t.Errorf("the same batch twice: stopped at %s with %+v, %v", last, end, err)
	}
	_, last, end, err = scan(twice[:len(twice)-1], segmentHeaderSize, at, func(int64, []entry) error { return nil })
	if err != nil || last != after || end == nil || end.unfinished {
		t.Errorf("a part of the same batch again: stopped at %s with %+v, %v", last, end, err)
	}
}

// TestHeadTakesTurns: the copy that is not written is the position before, so a torn write leaves it.
func TestHeadTakesTurns(t *testing.T) {
	p, _, at := filled(t, 4)
	for round := range 3 {
		b := p.Get(headName)
		first, _, _ := parseHead(b[:headStride])
		other, _, _ := parseHead(b[headStride:])
		if first.Seq > other.Seq {
			first, other = other, first
		}
		if n := len(at); other != at[n-1] || first != at[n-2] {
			t.Fatalf("round %d: the head has %s and %s, want %s and %s", round, first, other, at[n-2], at[n-1])
		}
		j, _, notices, err := replayed(p.dir)
		if err != nil || len(notices) > 0 {
			t.Fatal(err, notices)
		}
		next, err := j.Append([][]byte{{byte(round)}})
		if err := errors.Join(err, j.Close()); err != nil {
			t.Fatal(err)
		}
		at = append(at, next)
	}
}

// TestLocate compares with trying every bit.
func TestLocate(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(r, "bytes")
		sum := crcOf(b)
		i, bit := rapid.IntRange(0, len(b)-1).Draw(r, "byte"), rapid.IntRange(0, 7).Draw(r, "bit")
		b[i] ^= 1 << bit
		at, mask, ok := locate(b, sum)
		if !ok || at != i || mask != 1<<bit {
			r.Fatalf("found byte %d, mask %x (%v), want %d, %x", at, mask, ok, i, 1<<bit)
		}
		garbage := rapid.Uint32().Draw(r, "sum")
		if at, mask, ok := locate(b, garbage); ok && at < len(b) {
			b[at] ^= mask
			if crcOf(b) != garbage {
				r.Fatal("the bit it found does not explain the checksum")
			}
		}
	})
}

// FuzzScan: arbitrary bytes after a good batch never panic, never yield what was not written, and are sorted into
// damage and unfinished writes without an error.
func FuzzScan(f *testing.F) {
	good, at := appendFrame(segmentHeader(journal.Position{}), journal.Position{}, [][]byte{{1}, {2, 3}})
	next, _ := appendFrame(bytes.Clone(good), at, [][]byte{[]byte("four"), nil})
	f.Add([]byte{})
	f.Add(next[len(good):])
	f.Add(next[len(good) : len(next)-1])
	f.Add(make([]byte, 100))
	f.Add(append(bytes.Clone(next[len(good):]), next[len(good):]...))
	f.Fuzz(func(t *testing.T, b []byte) {
		file := append(bytes.Clone(good), b...)
		want := journal.Position{}
		off, last, end, err := scan(file, segmentHeaderSize, want, func(_ int64, records []entry) error {
			for _, r := range records {
				if want = want.Next(r.data); want != r.at {
					t.Fatal("a record out of the chain")
				}
			}
			return nil
		})
		if err != nil || last != want || off < int64(len(good)) || last.Seq < 2 || (end == nil) != (off == int64(len(file))) {
			t.Fatalf("ended at byte %d, %s: %v, %v", off, last, end, err)
		}
		if end != nil && end.unfinished {
			_ = damagedTail(file, end, last)
		}
	})
}
