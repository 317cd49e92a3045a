package local

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/journaltest"
)

// inOnePiece is a snapshot of version 1.
func inOnePiece(at journal.Position, state []byte) []byte {
	h := stateHeader{at: at, length: uint64(len(state)), sum: sha256.Sum256(state)}
	b := h.bytes()
	binary.LittleEndian.PutUint32(b[8:], 1)
	binary.LittleEndian.PutUint32(b[12:], crcOf(b[:12]))
	return append(appendSum(b[:stateHeaderSize-4], 0), state...)
}

// TestASnapshotInOnePiece, as earlier versions wrote it, is read, and superseded by one of this version. Nothing of it is
// handed over before all of it is proven.
func TestASnapshotInOnePiece(t *testing.T) {
	p, _, at := filled(t, 3)
	j, _, _, err := replayed(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(journaltest.Snapshot(j, []byte("as it is written now")), j.Close()); err != nil {
		t.Fatal(err)
	}
	state := bytes.Repeat([]byte("a state of many bytes, "), chunkBytes/10)
	name := stateName(at[3].Seq)
	p.Rot(name, inOnePiece(at[3], state))
	read := func(p place) (got []byte, j journal.Journal, err error) {
		if j, err = Open(p.dir, Options{}); err != nil {
			t.Fatal(err)
		}
		_, err = j.Replay(func(r io.Reader) (err error) { got, err = io.ReadAll(r); return err }, nil)
		return got, j, err
	}
	got, j, err := read(p)
	if err != nil || !bytes.Equal(got, state) {
		t.Fatalf("%d bytes, want %d: %v", len(got), len(state), err)
	}
	if size, _ := j.Size(); size < int64(len(state)) {
		t.Errorf("a snapshot of %d bytes is counted as %d", len(state), size)
	}
	if err := errors.Join(journaltest.Snapshot(j, []byte("the next")), j.Close()); err != nil {
		t.Fatal(err)
	}
	got, j, err = read(p)
	if err = errors.Join(err, j.Close()); err != nil || string(got) != "the next" {
		t.Fatalf("%q, %v", got, err)
	}
	for what, damage := range map[string]func([]byte) []byte{
		"cut":  func(b []byte) []byte { return b[:len(b)-1] },
		"flip": func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"more": func(b []byte) []byte { return append(b, 0) },
	} {
		c := p.Copy().(place)
		c.Rot(name, damage(inOnePiece(at[3], state)))
		got, j, err := read(c)
		if errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), name) || len(got) > 0 {
			t.Errorf("%s: %d bytes were handed over: %v", what, len(got), err)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}
