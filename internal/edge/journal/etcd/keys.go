//go:build etcd

package etcd

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/edge/journal"
)

// keys are the names of a journal's keys: what they begin with.
type keys string

func (k keys) leader() string { return string(k) + "leader" }
func (k keys) alive() string  { return string(k) + "alive" }
func (k keys) id() string     { return string(k) + "id" }
func (k keys) last() string   { return string(k) + "last" }
func (k keys) state() string  { return string(k) + "state" }

func (k keys) batch(first uint64) string { return fmt.Sprintf("%sbatch/%016x", string(k), first) }

// part is one part of what a single value has no room for: of the batch that begins with a record, or of the snapshot as of one. Each try
// to write it has names of its own, so that a request of an earlier one, which etcd may still carry out, changes nothing of it.
func (k keys) part(of string, seq uint64, t try, n int) string {
	return fmt.Sprintf("%s/%08x", k.tryOf(of, seq, t), n)
}

// tryOf is what the keys of one try begin with.
func (k keys) tryOf(of string, seq uint64, t try) string {
	return fmt.Sprintf("%s%s/%016x/%x-%x", string(k), of, seq, t.term, t.number)
}

// own is a key's name within its journal.
func (k keys) own(key []byte) string { return strings.TrimPrefix(string(key), string(k)) }

// firstOf is the record that the key of a batch says it begins with.
func (k keys) firstOf(key []byte) (uint64, error) {
	return strconv.ParseUint(strings.TrimPrefix(k.own(key), "batch/"), 16, 64)
}

const (
	// version of the values.
	version = 1
	// sealSize is the length of a value's seal: the beginning of SHA-256 over its name and its content.
	sealSize = 16
	// positionSize is the length of a position.
	positionSize = 8 + 32
)

// seal is a value of a key: its seal, and its content.
func seal(name string, content ...[]byte) []byte {
	size := sealSize
	for _, c := range content {
		size += len(c)
	}
	v := make([]byte, sealSize, size)
	for _, c := range content {
		v = append(v, c...)
	}
	copy(v, sealOf(name, v[sealSize:]))
	return v
}

func sealOf(name string, content []byte) []byte {
	h := sha256.New()
	h.Write([]byte(name))
	h.Write([]byte{0})
	h.Write(content)
	return h.Sum(nil)[:sealSize]
}

var errSeal = errors.New("its digest is not that of its content")

// unseal is the content of a value.
func unseal(name string, v []byte) ([]byte, error) {
	if len(v) < sealSize || !bytes.Equal(v[:sealSize], sealOf(name, v[sealSize:])) {
		return nil, errSeal
	}
	return v[sealSize:], nil
}

func appendPosition(b []byte, p journal.Position) []byte {
	return append(binary.BigEndian.AppendUint64(b, p.Seq), p.Digest[:]...)
}

var errShort = errors.New("it is too short")

func readPosition(b []byte) (p journal.Position, rest []byte, err error) {
	if len(b) < positionSize {
		return p, nil, errShort
	}
	p.Seq = binary.BigEndian.Uint64(b)
	copy(p.Digest[:], b[8:])
	return p, b[positionSize:], nil
}

// try is one try to write what has parts: the revision that made its writer the writer, and which of its tries it was.
type try struct{ term, number uint64 }

// header is what stands in front: of a batch the position behind it, of a snapshot its own; parts is how many keys the rest is in, 0
// if it follows; length is how long it is.
type header struct {
	at     journal.Position
	try    try
	parts  int
	length int64
}

// headerSize is the length of a header.
const headerSize = 1 + positionSize + 4*8

func (h header) append(b []byte) []byte {
	b = appendPosition(append(b, version), h.at)
	for _, v := range []uint64{h.try.term, h.try.number, uint64(h.parts), uint64(h.length)} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return b
}

func readHeader(b []byte) (h header, rest []byte, err error) {
	if len(b) < headerSize {
		return h, nil, errShort
	}
	if b[0] != version {
		return h, nil, fmt.Errorf("it is of version %d, and this build reads version %d: run the build that wrote it, or a later one", b[0], version)
	}
	h.at, b, _ = readPosition(b[1:]) // long enough
	h.try = try{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
	h.parts, h.length = int(binary.BigEndian.Uint64(b[16:])), int64(binary.BigEndian.Uint64(b[24:]))
	return h, b[32:], nil
}

// appendRecords appends records, each behind its length.
func appendRecords(b []byte, records [][]byte) []byte {
	for _, r := range records {
		b = append(binary.AppendUvarint(b, uint64(len(r))), r...)
	}
	return b
}

// eachRecord hands over the records of a batch behind the position before it, and returns that of the last. An error of the callback
// ends it.
func eachRecord(before journal.Position, b []byte, record func(journal.Position, []byte) error) (journal.Position, error) {
	for len(b) > 0 {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return before, errShort
		}
		b = b[size:]
		before = before.Next(b[:n])
		if err := record(before, b[:n]); err != nil {
			return before, err
		}
		b = b[n:]
	}
	return before, nil
}
