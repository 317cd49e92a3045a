package main

import (
	"path/filepath"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

type walStore struct {
	w *wal.WAL
	n uint64
}

func openWAL(dir string) (store, error) {
	wal.SegmentSizeBytes = 4 << 20
	w, err := wal.Create(zap.NewNop(), filepath.Join(dir, "wal"), nil)
	return &walStore{w: w}, err
}

func (s *walStore) append(batch [][]byte) error {
	entries := make([]raftpb.Entry, len(batch))
	n := s.n
	for i, r := range batch {
		n++
		entries[i] = raftpb.Entry{Term: 1, Index: n, Data: r}
	}
	err := s.w.Save(raftpb.HardState{Term: 1, Commit: n}, entries)
	if err == nil {
		s.n = n
	}
	return err
}

func (s *walStore) close() error { return s.w.Close() }

// scanWAL opens for writing, as a restart does; a torn end is repaired once, as etcd does.
func scanWAL(dir string, f func([]byte)) error {
	w, err := wal.Open(zap.NewNop(), filepath.Join(dir, "wal"), walpb.Snapshot{})
	if err != nil {
		return err
	}
	defer w.Close()
	_, _, entries, err := w.ReadAll()
	if err != nil {
		return err
	}
	for _, e := range entries {
		f(e.Data)
	}
	return nil
}
