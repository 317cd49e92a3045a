// Package journal is the contract of the store that makes facts durable: an ordered sequence of records with a snapshot.
// Kinds live in folders below; every kind passes journaltest. A record that Append returned for is never lost
// silently: what was synced and is missing or damaged is found by Open or Replay, named and refused; what was never
// acknowledged may be dropped. It must not know what a record means.
package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strconv"
)

// Position names a record and everything before it: its sequence number (from 1) and the chained digest up to it. The
// zero Position is before the first record. A Position handed to somebody else (a lease in a run directory, an
// acknowledgement to a client) is a second witness: a journal that ends before it, or has another digest there, has lost
// what it promised.
type Position struct {
	Seq    uint64
	Digest [32]byte
}

// String is the form people see: sequence and the first bytes of the digest.
func (p Position) String() string {
	return strconv.FormatUint(p.Seq, 10) + "/" + hex.EncodeToString(p.Digest[:6])
}

// Next is the position of a record that follows p: its digest is SHA-256 over p's digest and the record. Every kind
// computes positions so, which makes a witness independent of the kind.
func (p Position) Next(record []byte) Position {
	h := sha256.New()
	h.Write(p.Digest[:])
	h.Write(record)
	n := Position{Seq: p.Seq + 1}
	h.Sum(n.Digest[:0])
	return n
}

// Journal is one open journal with a single writer. It is not safe for concurrent use, but for a Snapshot that is written beside.
type Journal interface {
	// Replay hands over the latest snapshot, if there is one (the callback is not called otherwise), then every record
	// after it in order, and returns the position of the last. It is called once, before the first Append. An error of
	// the callbacks ends it and is returned as it is; the journal is then of no further use. What they are given lives as long
	// as their call. The bytes of state are whole as far as they come; that it has all of them is known when Replay returns.
	Replay(snapshot func(state io.Reader) error, record func(p Position, data []byte) error) (Position, error)
	// Append makes all records durable with one sync and returns the position of the last; after a crash either all of
	// a batch are there or none. On an error nothing of the batch counts: the journal is as before and the same call may
	// be made again. An error of kind Exhausted means that room must be made, Invalid that the records are too large
	// (MaxRecord, MaxBatch); any other kind means that the journal can't be used any more. No records: no sync.
	Append(records [][]byte) (Position, error)
	// Snapshot begins one of the state as of the last appended record. Its bytes follow, beside what is appended meanwhile;
	// until its Commit has come back nothing is changed by it. There is one at a time. Errors are as of Append.
	Snapshot() (Snapshot, error)
	// Check compares witnesses with the journal and says of each, in their order: nil if the journal has that record with that digest,
	// or if it is older than the latest snapshot; an error of kind Corrupt that names what is missing otherwise. It is called after
	// Replay. Any number of them costs at most one reading of the journal.
	Check(witnesses []Position) []error
	// Size is the number of bytes on disk and the number of records since the last snapshot.
	Size() (bytes int64, records uint64)
	// Close releases the journal. What was appended is durable without it. A snapshot that is being written is over first.
	Close() error
}

// Snapshot is a snapshot that is being written. One goroutine may use it while another uses its journal. Errors are as of
// Append; after one it can only be given up, and after one of kind Exhausted the journal is as before.
type Snapshot interface {
	// Write appends to it.
	io.Writer
	// Commit makes what was written durable as the journal's snapshot, in one step, and then drops the records before its
	// position, but keeps the ability to check a witness not older than that.
	Commit() error
	// Abort gives it up: the room that it took is free again. After Commit has succeeded it does nothing.
	Abort() error
}

const (
	// MaxRecord is the largest record, in bytes.
	MaxRecord = 16 << 20
	// MaxBatch is the largest sum of the records of one Append, in bytes.
	MaxBatch = 64 << 20
)
