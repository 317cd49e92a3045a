package local

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/disk"
	"sluice.dev/sluice/internal/edge/journal/journaltest"
)

// TestNewerFormatIsRefusedUntouched: every file with a version this build does not know stops it before it changes
// anything, and is not taken for damage.
func TestNewerFormatIsRefusedUntouched(t *testing.T) {
	p, _, _ := filled(t, 3)
	j, _, _, err := replayed(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(journaltest.Snapshot(j, []byte("state")), j.Close()); err != nil {
		t.Fatal(err)
	}
	p.plant(segmentTemp, []byte("left over"))
	for _, name := range p.Files() {
		if name == segmentTemp {
			continue
		}
		c := p.Copy().(place)
		b := bytes.Clone(p.Get(name))
		for off := 0; off < len(b); off += headStride { // both copies of the head; others have one prefix
			if off == 0 || name == headName {
				binary.LittleEndian.PutUint32(b[off+8:], 1+binary.LittleEndian.Uint32(b[off+8:]))
				binary.LittleEndian.PutUint32(b[off+12:], crcOf(b[off:off+12]))
			}
		}
		c.Rot(name, b)
		_, _, _, err := replayed(c.dir)
		if errkind.Of(err) != errkind.Unsupported || !strings.Contains(err.Error(), name+": it has format ") {
			t.Errorf("%s of a newer format: %v (%v)", name, err, errkind.Of(err))
		}
		if _, err := Verify(c.dir); errkind.Of(err) != errkind.Unsupported {
			t.Errorf("Verify of a newer %s: %v", name, err)
		}
		if !slices.Equal(c.Files(), p.Files()) {
			t.Errorf("files changed from %v to %v", p.Files(), c.Files())
		}
		for _, other := range p.Files() {
			if want := p.Get(other); other != name && !bytes.Equal(c.Get(other), want) {
				t.Errorf("%s was changed", other)
			}
		}
		if !bytes.Equal(c.Get(name), b) {
			t.Errorf("%s was changed", name)
		}
	}
}

// plant adds a file.
func (p place) plant(name string, content []byte) {
	f, err := limited{diskOf(p), p.room}.Create(name)
	if err != nil {
		p.t.Fatal(err)
	}
	_, err = f.WriteAt(content, 0)
	if err = errors.Join(err, f.Close()); err != nil {
		p.t.Fatal(err)
	}
}

// TestAllProblemsAtOnce: one error names every damaged place.
func TestAllProblemsAtOnce(t *testing.T) {
	p := newPlace(t)
	j, err := p.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = j.Replay(nil, nil); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		if _, err = j.Append([][]byte{bytes.Repeat([]byte{byte(i)}, 60)}); err != nil {
			t.Fatal(err)
		}
	}
	if err = j.Close(); err != nil {
		t.Fatal(err)
	}
	var segments []string
	for _, name := range p.Files() {
		if _, ok := parseName(name, segmentSuffix); ok {
			segments = append(segments, name)
		}
	}
	if len(segments) < 6 {
		t.Fatalf("only %d segments", len(segments))
	}
	// Bytes behind the last batch of a segment that is closed: nothing is lost, but nobody of us wrote them.
	c := p.Copy().(place)
	c.Rot(segments[2], append(c.Get(segments[2]), "more"...))
	if _, _, _, err = replayed(c.dir); errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), segments[2]) {
		t.Errorf("a closed segment that grew: %v", err)
	}
	garble := func(name string, off int) {
		b := p.Get(name)
		b[off] ^= 0xff
		p.Rot(name, b)
	}
	garble(segments[1], 200)  // a batch
	garble(segments[3], 20)   // a header
	p.Rot(segments[4], nil)   // a whole segment
	garble(segments[5], 3*64) // a batch of another
	_, _, _, err = replayed(p.dir)
	for _, name := range []string{segments[1], segments[3], segments[5]} {
		if errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
	report, err := Verify(p.dir)
	if err != nil || len(report.Problems) < 4 {
		t.Errorf("%d problems, %v: %v", len(report.Problems), err, report.Problems)
	}
}

// TestTwoJournalsMixed: files that are whole but belong to another journal are refused.
func TestTwoJournalsMixed(t *testing.T) {
	a, _, _ := filled(t, 3)
	b := newPlace(t)
	j, err := b.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = j.Replay(nil, nil); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err = j.Append([][]byte{[]byte("of another"), []byte("journal")}); err != nil {
			t.Fatal(err)
		}
	}
	if err = j.Close(); err != nil {
		t.Fatal(err)
	}
	c := a.Copy().(place)
	c.Rot(headName, b.Get(headName))
	if _, _, _, err := replayed(c.dir); errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), "two journals") {
		t.Errorf("the head of another journal: %v", err)
	}
}

// TestVerifyChangesNothing and says what the next start will mend.
func TestVerifyChangesNothing(t *testing.T) {
	p, _, at := filled(t, 3)
	p.plant(stateTemp, []byte("left over"))
	b := p.Get(segmentName(1))
	p.Rot(segmentName(1), append(b, "an unfinished write"...))
	before := map[string]string{}
	for _, name := range p.Files() {
		before[name] = string(p.Get(name))
	}
	n := 0
	report, err := dump(disk.OS(p.dir), nil, func(journal.Position, []byte) error { n++; return nil })
	if err != nil || n != 6 || report.Last != at[3] || report.Records != 6 || report.Segments != 1 || len(report.Problems) != 0 ||
		report.Holder != 0 {
		t.Fatalf("%d records, %+v, %v", n, report, err)
	}
	if notes := strings.Join(report.Notes, "\n"); len(report.Notes) != 2 || !strings.Contains(notes, stateTemp) ||
		!strings.Contains(notes, "unfinished write of 19 bytes") {
		t.Errorf("notes: %q", notes)
	}
	for _, name := range p.Files() {
		if before[name] != string(p.Get(name)) {
			t.Errorf("%s was changed", name)
		}
		delete(before, name)
	}
	if len(before) > 0 {
		t.Errorf("removed: %v", before)
	}
	stop := errors.New("stop")
	if _, err := dump(disk.OS(p.dir), nil, func(journal.Position, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the callback's error was lost: %v", err)
	}
}

// TestAMissingHeadIsRefused: without the head nobody would notice records that were cut off at the end, so the journal does
// not open, even where it is whole. A person may accept the end that is there, and no other.
func TestAMissingHeadIsRefused(t *testing.T) {
	p, starts, _ := filled(t, 4)
	garbled := bytes.Repeat([]byte{0xa5}, headSize)
	whole := p.Get(segmentName(1))
	for what, head := range map[string][]byte{"missing": nil, "unreadable": garbled} {
		for n := range 4 { // cut at each boundary in turn, and not at all
			c := p.Copy().(place)
			c.Rot(headName, head)
			c.Rot(segmentName(1), bytes.Clone(whole[:starts[n+1]]))
			last := uint64(2 * (n + 1))
			_, _, _, err := replayed(c.dir)
			if errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), headName) ||
				!strings.Contains(err.Error(), "sluice journal truncate") {
				t.Fatalf("the head is %s, %d batches are left: %v", what, n+1, err)
			}
			if err := AcceptEnd(c.dir, last+1); errkind.Of(err) != errkind.Invalid ||
				!strings.Contains(err.Error(), fmt.Sprintf("ends with record %d", last)) {
				t.Fatalf("another end was accepted: %v", err)
			}
			if _, _, _, err := replayed(c.dir); errkind.Of(err) != errkind.Corrupt {
				t.Fatalf("what was refused changed the journal: %v", err)
			}
			if err := AcceptEnd(c.dir, last); err != nil {
				t.Fatal(err)
			}
			j, records, _, err := replayed(c.dir)
			if err != nil || uint64(len(records)) != last {
				t.Fatalf("after the end was accepted: %d records, want %d: %v", len(records), last, err)
			}
			if err := AcceptEnd(c.dir, last); errkind.Of(err) != errkind.Conflict {
				t.Errorf("while it is open: %v", err)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if err := AcceptEnd(c.dir, last); errkind.Of(err) != errkind.Invalid {
				t.Errorf("with a head that is there: %v", err)
			}
		}
	}
	c := p.Copy().(place)
	c.Rot(headName, nil)
	bad := bytes.Clone(whole)
	bad[starts[1]+3] ^= 0x10
	c.Rot(segmentName(1), bad)
	if err := AcceptEnd(c.dir, 8); errkind.Of(err) != errkind.Corrupt || slices.Contains(c.Files(), headName) {
		t.Errorf("a journal with other damage was accepted: %v", err)
	}
}
