package journaltest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
)

// stride is how many places are left out between two trials: none in memory, many on a real disk.
func stride(s Store) int {
	if _, fast := s.(Powered); fast {
		return 1
	}
	return 41
}

// populate fills a store with a snapshot and several segments after it, closed properly.
func populate(t *testing.T, s Store) *model {
	t.Helper()
	m := &model{}
	j := must(t, s, m)
	add(t, j, m, batch(0, 20)...)
	state := bytes.Repeat([]byte("the state after twenty records, "), 40) // several chunks
	if err := Snapshot(j, state); err != nil {
		t.Fatal(err)
	}
	m.snapshot(state)
	for i := range 8 {
		add(t, j, m, batch(20+4*i, 1+i%4)...)
	}
	shut(t, j)
	return m
}

// intact wants the store refused with the name of the file, or whole.
func intact(t *testing.T, s Store, m *model, file, what string) outcome {
	t.Helper()
	o := reopen(t, s)
	if o.refused != nil {
		if !strings.Contains(o.refused.Error(), file) {
			t.Fatalf("%s: refused without naming %s: %v", what, file, o.refused)
		}
		return o
	}
	if err := o.held.equal(m); err != nil {
		t.Fatalf("%s was not noticed: %v", what, err)
	}
	shut(t, o.j)
	return o
}

func flippedBits(t *testing.T, k Kind) {
	s := k(t)
	m := populate(t, s)
	refused := 0
	for _, name := range s.Files() {
		b := s.Get(name)
		for i := 0; i < len(b); i += stride(s) {
			c := s.Copy()
			bad := bytes.Clone(b)
			bad[i] ^= 1 << (i % 8)
			c.Rot(name, bad)
			if o := intact(t, c, m, name, fmt.Sprintf("bit %d of byte %d of %s", i%8, i, name)); o.refused != nil {
				refused++
				if !slices.Equal(c.Get(name), bad) {
					t.Fatalf("%s was changed although it was refused", name)
				}
			}
		}
	}
	if refused == 0 {
		t.Fatal("no flip was refused: this test flips nothing that matters")
	}
}

func cutFiles(t *testing.T, k Kind) {
	s := k(t)
	m := populate(t, s)
	for _, name := range s.Files() {
		b := s.Get(name)
		for n := 0; n < len(b); n += stride(s) {
			c := s.Copy()
			c.Rot(name, bytes.Clone(b[:n]))
			intact(t, c, m, name, fmt.Sprintf("%s cut at byte %d of %d", name, n, len(b)))
		}
	}
}

func missingFiles(t *testing.T, k Kind) {
	s := k(t)
	m := populate(t, s)
	all := s.Copy()
	for _, name := range s.Files() {
		c := s.Copy()
		c.Rot(name, nil)
		o := reopen(t, c)
		if o.refused == nil {
			if err := o.held.equal(m); err != nil {
				t.Fatalf("%s is missing, and that was not noticed: %v", name, err)
			}
			if len(o.notices) == 0 {
				t.Fatalf("%s was made again in silence", name)
			}
			shut(t, o.j)
		}
		all.Rot(name, nil)
	}
	// With everything gone nothing inside can tell; a witness can.
	o := reopen(t, all)
	if o.refused != nil || len(o.held.records) != 0 {
		t.Fatalf("an empty directory: %v, %d records", o.refused, len(o.held.records))
	}
	if err := check(o.j, m.last()); errkind.Of(err) != errkind.Corrupt {
		t.Fatalf("a witness of %s was content with an empty journal: %v", m.last(), err)
	}
	shut(t, o.j)
}

func zeroedSectors(t *testing.T, k Kind) {
	s := k(t)
	m := populate(t, s)
	for _, name := range s.Files() {
		b := s.Get(name)
		for _, size := range []int{8, 64, 512} {
			for i := 0; i < len(b); i += 7 * stride(s) {
				bad := bytes.Clone(b)
				clear(bad[i:min(i+size, len(b))])
				c := s.Copy()
				c.Rot(name, bad)
				intact(t, c, m, name, fmt.Sprintf("%d zeros at byte %d of %s", size, i, name))
			}
		}
	}
}

func fullDiskAtAppend(t *testing.T, k Kind) {
	s, m := k(t), &model{}
	j := must(t, s, m)
	full := 0
	for room := range 240 / stride(s) {
		b := batch(room*3, 3)
		s.SetRoom(int64(room * stride(s)))
		got, err := j.Append(b)
		if err != nil {
			full++
			for range 2 {
				if errkind.Of(err) != errkind.Exhausted || got != (journal.Position{}) {
					t.Fatalf("with room for %d bytes: %s, %v", room, got, err)
				}
				s.SetRoom(0)
				got, err = j.Append(b)
			}
			// What a restart would find now: nothing of the batch.
			shut(t, mustQuietly(t, s.Copy(), m))
			s.SetRoom(-1)
			if got, err = j.Append(b); err != nil {
				t.Fatalf("room was made: %v", err)
			}
		}
		m.append(b)
		if got != m.last() {
			t.Fatalf("Append returned %s, want %s", got, m.last())
		}
	}
	s.SetRoom(-1)
	shut(t, j)
	shut(t, must(t, s, m))
	if full == 0 {
		t.Fatal("the disk was never full")
	}
}

func fullDiskAtSnapshot(t *testing.T, k Kind) {
	s, m := k(t), &model{}
	j := must(t, s, m)
	full := 0
	for room := 0; room < 1400; room += 7 * stride(s) {
		add(t, j, m, batch(room, 2)...)
		state := bytes.Repeat(fmt.Appendf(nil, "state with room for %d", room), 40) // several chunks
		s.SetRoom(int64(room))
		err := Snapshot(j, state)
		if err != nil {
			full++
			if errkind.Of(err) != errkind.Exhausted {
				t.Fatalf("with room for %d bytes: %v", room, err)
			}
			shut(t, mustQuietly(t, s.Copy(), m))
			s.SetRoom(-1)
			add(t, j, m, batch(room+2, 1)...) // it goes on with or without a snapshot
			if err := Snapshot(j, state); err != nil {
				t.Fatalf("room was made: %v", err)
			}
		}
		m.snapshot(state)
		s.SetRoom(-1)
	}
	shut(t, j)
	shut(t, must(t, s, m))
	if full == 0 {
		t.Fatal("the disk was never full")
	}
}
