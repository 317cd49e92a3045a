package bolt

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/archive"
)

// A value is its version, its fields and the CRC-32C of its key, version and fields: the store checks its two first pages alone,
// and would hand out a flipped bit as good. The key is in it, so that a value under another key is damage too.
const (
	version  = 1
	sumBytes = 4
)

var errDamaged = errors.New("its checksum is not that of its content")

var sumTable = crc32.MakeTable(crc32.Castagnoli)

func sum(key, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, sumTable), sumTable, body)
}

// seal ends a value that begins at dst[0].
func seal(dst, key []byte) []byte { return binary.LittleEndian.AppendUint32(dst, sum(key, dst)) }

// opened is what is between version and sum of a value that is whole.
func opened(key, value []byte) ([]byte, error) {
	at := len(value) - sumBytes
	if at < 1 || binary.LittleEndian.Uint32(value[at:]) != sum(key, value[:at]) {
		return nil, errDamaged
	}
	if value[0] != version {
		return nil, errors.New("a newer build wrote it")
	}
	return value[1:at], nil
}

// A part's key is its actor's role and the job's name.
func partKey(role protocol.Role, name job.ID) []byte {
	return append([]byte{byte(role)}, name...)
}

// Index keys begin with an instant that sorts as bytes, and end with the job's name.
func timeKey(at quantity.Instant, name job.ID) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(name)), uint64(at)^1<<63), name...)
}

func readTimeKey(key []byte) (quantity.Instant, job.ID, bool) {
	if len(key) <= 8 {
		return 0, "", false
	}
	return quantity.Instant(binary.BigEndian.Uint64(key) ^ 1<<63), job.ID(key[8:]), true
}

// A list's key is the state, marked so that no role looks like it (scan), and the place in the list.
const stateMark = 0x80

func listKey(state job.State, at archive.Cursor) []byte {
	return append([]byte{stateMark | byte(state)}, timeKey(at.Submitted, at.Job)...)
}

// appendEntry writes what the list's index says besides its key.
func appendEntry(dst []byte, e *archive.Entry) []byte {
	dst = binary.AppendUvarint(dst, uint64(e.Generation))
	dst = binary.AppendVarint(dst, int64(e.Ended))
	dst = append(dst, byte(e.State))
	dst = append(binary.AppendUvarint(dst, uint64(len(e.Queue))), e.Queue...)
	return append(binary.AppendUvarint(dst, uint64(len(e.Workdir))), e.Workdir...)
}

// fields reads a value's fields one after the other; what is missing makes it bad.
type fields struct {
	rest []byte
	bad  bool
}

func (f *fields) uvarint() uint64 {
	v, n := binary.Uvarint(f.rest)
	return v * f.skip(n)
}

func (f *fields) varint() int64 {
	v, n := binary.Varint(f.rest)
	return v * int64(f.skip(n))
}

// skip is 1, or 0 where the field was not there.
func (f *fields) skip(n int) uint64 {
	if n <= 0 {
		f.bad, f.rest = true, nil
		return 0
	}
	f.rest = f.rest[n:]
	return 1
}

func (f *fields) bytes(n uint64) []byte {
	if n > uint64(len(f.rest)) {
		f.bad, f.rest = true, nil
		return nil
	}
	b := f.rest[:n]
	f.rest = f.rest[n:]
	return b
}

func (f *fields) byte() byte {
	if b := f.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (f *fields) entry(e *archive.Entry) {
	e.Generation = job.Generation(f.uvarint())
	e.Ended = quantity.Instant(f.varint())
	e.State = job.State(f.byte())
	e.Queue = string(f.bytes(f.uvarint()))
	e.Workdir = string(f.bytes(f.uvarint()))
}

// sealPart is the value of a part.
func sealPart(key []byte, p *archive.Part) []byte {
	v := make([]byte, 0, len(p.Data)+64)
	v = append(v, version)
	if p.Role == protocol.Gate {
		v = binary.AppendVarint(v, int64(p.Entry.Submitted))
		v = appendEntry(v, p.Entry)
	} else {
		v = binary.AppendUvarint(v, uint64(p.Generation))
	}
	return seal(append(v, p.Data...), key)
}

// openPart reads a part; Data is of the store's memory.
func openPart(key, value []byte) (archive.Part, error) {
	p := archive.Part{Role: protocol.Role(key[0]), Job: job.ID(key[1:])}
	body, err := opened(key, value)
	if err != nil {
		return p, err
	}
	f := fields{rest: body}
	if p.Role == protocol.Gate {
		p.Entry = &archive.Entry{Job: p.Job, Submitted: quantity.Instant(f.varint())}
		f.entry(p.Entry)
		p.Generation = p.Entry.Generation
	} else {
		p.Generation = job.Generation(f.uvarint())
	}
	p.Data = f.rest
	if f.bad {
		return p, errDamaged
	}
	return p, nil
}

// sealEntry is the value of a list. What is behind the entry's fields builds from before there were owners leave unread.
func sealEntry(key []byte, e *archive.Entry) []byte {
	return seal(append(appendEntry([]byte{version}, e), e.Owner...), key)
}

func openEntry(key, value []byte) (archive.Entry, error) {
	e, err := entryAt(key[1:], key, value)
	if err == nil && key[0] != stateMark|byte(e.State) {
		err = errDamaged
	}
	return e, err
}

// openOrdered reads an entry of the first format's list, whose key has no state.
func openOrdered(key, value []byte) (archive.Entry, error) { return entryAt(key, key, value) }

// entryAt reads the value under a key that ends with a place in the list.
func entryAt(place, key, value []byte) (e archive.Entry, err error) {
	at, name, ok := readTimeKey(place)
	body, err := opened(key, value)
	if err != nil {
		return e, err
	}
	e.Job, e.Submitted = name, at
	f := fields{rest: body}
	if f.entry(&e); !ok || f.bad {
		return e, errDamaged
	}
	e.Owner = string(f.rest)
	return e, nil
}

func sealEnded(key []byte, g job.Generation) []byte {
	return seal(binary.AppendUvarint([]byte{version}, uint64(g)), key)
}

func openEnded(key, value []byte) (archive.Ended, error) {
	at, name, ok := readTimeKey(key)
	body, err := opened(key, value)
	if err != nil {
		return archive.Ended{}, err
	}
	f := fields{rest: body}
	e := archive.Ended{At: at, Job: name, Generation: job.Generation(f.uvarint())}
	if !ok || f.bad {
		return e, errDamaged
	}
	return e, nil
}

// A stored work directory's value is how many jobs have it.
func sealUses(key []byte, n int64) []byte {
	return seal(binary.AppendVarint([]byte{version}, n), key)
}

func openUses(key, value []byte) (int64, error) {
	body, err := opened(key, value)
	if err != nil {
		return 0, err
	}
	f := fields{rest: body}
	if n := f.varint(); n > 0 && !f.bad {
		return n, nil
	}
	return 0, errDamaged
}

// totals are counted as the archive changes, in the transaction that changes it.
type totals struct {
	jobs, homes, givenUp int64
	changes              uint64
}

func sealTotals(key []byte, t totals) []byte {
	v := binary.AppendVarint([]byte{version}, t.jobs)
	v = binary.AppendVarint(binary.AppendVarint(v, t.homes), t.givenUp)
	return seal(binary.AppendUvarint(v, t.changes), key)
}

func openTotals(key, value []byte) (t totals, err error) {
	body, err := opened(key, value)
	if err != nil {
		return t, err
	}
	f := fields{rest: body}
	t.jobs, t.homes, t.givenUp, t.changes = f.varint(), f.varint(), f.varint(), f.uvarint()
	if f.bad || min(t.jobs, t.homes, t.givenUp) < 0 {
		return t, errDamaged
	}
	return t, nil
}
