package memory_test

import (
	"slices"
	"testing"

	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/disk"
	"sluice.dev/sluice/internal/edge/journal/journaltest"
	"sluice.dev/sluice/internal/edge/journal/local"
	"sluice.dev/sluice/internal/edge/journal/memory"
)

func TestConformance(t *testing.T) {
	journaltest.Run(t, func(testing.TB) journaltest.Store { return store{memory.New()} })
}

type store struct{ *memory.Disk }

func (s store) Open(notice func(string)) (journal.Journal, error) {
	return memory.Open(s.Disk, local.Options{SegmentBytes: 400, Notice: notice})
}

func (s store) Files() []string {
	names, _ := s.List()
	return slices.DeleteFunc(names, func(n string) bool { return n == disk.LockName })
}

func (s store) Get(name string) []byte {
	b, err := s.Disk.Get(name)
	if err != nil {
		panic(err)
	}
	return b
}

func (s store) Copy() journaltest.Store {
	c := store{memory.New()}
	for _, name := range s.Files() {
		c.Rot(name, s.Get(name))
	}
	return c
}

func (s store) Restart(seed uint64) journaltest.Powered { return store{s.Disk.Restart(seed)} }
