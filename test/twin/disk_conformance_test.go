package twin_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/disk"
	"sluice.dev/sluice/internal/edge/journal/journaltest"
	"sluice.dev/sluice/internal/edge/journal/local"
)

// TestMemoryDiskIsADisk: a journal on it keeps what every journal must.
func TestMemoryDiskIsADisk(t *testing.T) {
	journaltest.Run(t, func(testing.TB) journaltest.Store { return store{newDisk()} })
}

type store struct{ *memoryDisk }

func (s store) Open(notice func(string)) (journal.Journal, error) {
	return local.OpenOn(s.memoryDisk, local.Options{SegmentBytes: 400, Notice: notice})
}

func (s store) Files() []string {
	names, _ := s.List()
	return slices.DeleteFunc(names, func(n string) bool { return n == disk.LockName })
}

func (s store) Get(name string) []byte {
	b, err := s.memoryDisk.Get(name)
	if err != nil {
		panic(err)
	}
	return b
}

func (s store) Copy() journaltest.Store {
	c := store{newDisk()}
	for _, name := range s.Files() {
		c.Rot(name, s.Get(name))
	}
	return c
}

func (s store) Restart(seed uint64) journaltest.Powered { return store{s.memoryDisk.Restart(seed)} }

// TestTheHeadIsSyncedInTime: after Close the head outlives a power cut, and without Close it is behind by no more than
// the last two segments; so the loss of more than these is noticed from inside.
func TestTheHeadIsSyncedInTime(t *testing.T) {
	for seed := range uint64(20) {
		s := store{newDisk()}
		j, err := s.Open(func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := j.Replay(nil, nil); err != nil {
			t.Fatal(err)
		}
		for i := range 12 {
			if _, err := j.Append([][]byte{bytes.Repeat([]byte{byte(i)}, 150)}); err != nil {
				t.Fatal(err)
			}
		}
		cut := store{s.memoryDisk.Restart(seed)}
		names := cut.segments()
		if len(names) < 4 {
			t.Fatalf("only %d segments", len(names))
		}
		cut.Rot(names[len(names)-1], nil)
		cut.Rot(names[len(names)-2], nil)
		refused(t, cut, "two segments missing after a power cut")
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		cut = store{s.memoryDisk.Restart(seed)}
		last := cut.segments()[len(names)-1]
		cut.Rot(last, cut.Get(last)[:64])
		refused(t, cut, "the last segment emptied after Close and a power cut")
	}
}

func (s store) segments() []string {
	return slices.DeleteFunc(s.Files(), func(n string) bool { return !strings.HasSuffix(n, ".seg") })
}

func refused(t *testing.T, s store, what string) {
	t.Helper()
	j, err := s.Open(func(string) {})
	if err == nil {
		_, err = j.Replay(nil, func(journal.Position, []byte) error { return nil })
	}
	if errkind.Of(err) != errkind.Corrupt {
		t.Fatalf("%s: %v", what, err)
	}
}
