package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"runtime/debug"

	bolt "go.etcd.io/bbolt"
)

// boltStore is bbolt with its freelist synced; every value starts with 8 bytes of a chained digest, as bbolt has no
// checksum on its data pages.
type boltStore struct {
	db     *bolt.DB
	n      uint64
	digest [32]byte
}

func openBolt(dir string) (store, error) {
	db, err := bolt.Open(filepath.Join(dir, "bolt.db"), 0o600, nil)
	if err != nil {
		return nil, err
	}
	return &boltStore{db: db}, db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists([]byte("facts"))
		return err
	})
}

func chain(digest [32]byte, r []byte) [32]byte {
	h := sha256.New()
	h.Write(digest[:])
	h.Write(r)
	h.Sum(digest[:0])
	return digest
}

func (s *boltStore) append(batch [][]byte) error {
	n, digest := s.n, s.digest
	err := s.db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("facts"))
		b.FillPercent = 1
		for _, r := range batch {
			n++
			digest = chain(digest, r)
			if err := b.Put(binary.BigEndian.AppendUint64(nil, n), append(bytes.Clone(digest[:8]), r...)); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		s.n, s.digest = n, digest
	}
	return err
}

func (s *boltStore) close() error { return s.db.Close() }

// scanBolt reads without looking at the digest, so that what bbolt itself notices is told from what the digest would.
func scanBolt(dir string, f func([]byte)) error {
	debug.SetPanicOnFault(true)
	db, err := bolt.Open(filepath.Join(dir, "bolt.db"), 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer db.Close()
	return db.View(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("facts"))
		if b == nil {
			return fmt.Errorf("no bucket")
		}
		return b.ForEach(func(_, v []byte) error {
			f(v[min(8, len(v)):])
			return nil
		})
	})
}
