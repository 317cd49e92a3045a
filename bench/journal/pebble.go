package main

import (
	"encoding/binary"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2"
)

type pebbleStore struct {
	db *pebble.DB
	n  uint64
}

// quiet ends the process on Fatalf as pebble asks, and says nothing else.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "Fatalf: "+format+"\n", args...)
	os.Exit(70)
}

func pebbleOptions() *pebble.Options {
	return &pebble.Options{FormatMajorVersion: pebble.FormatNewest, Logger: quiet{}}
}

func openPebble(dir string) (store, error) {
	db, err := pebble.Open(dir, pebbleOptions())
	if err != nil {
		return nil, err
	}
	return &pebbleStore{db: db}, nil
}

func (s *pebbleStore) append(batch [][]byte) error {
	b, n := s.db.NewBatch(), s.n
	for _, r := range batch {
		n++
		if err := b.Set(binary.BigEndian.AppendUint64(nil, n), r, nil); err != nil {
			return err
		}
	}
	err := b.Commit(pebble.Sync)
	if err == nil {
		s.n = n
	}
	return err
}

func (s *pebbleStore) close() error { return s.db.Close() }

func scanPebble(dir string, f func([]byte)) error {
	db, err := pebble.Open(dir, pebbleOptions())
	if err != nil {
		return err
	}
	defer db.Close()
	it, err := db.NewIter(nil)
	if err != nil {
		return err
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		f(it.Value())
	}
	return it.Error()
}
