package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/edge/journal"
)

// FormatVersion is the version of the files this package writes, but for snapshots.
const FormatVersion = 1

// StateVersion is the version of the snapshots it writes: chunks, each with a checksum. Version 1 was one piece.
const StateVersion = 2

// newest is the latest version of a kind of file that this build reads. It reads those before as well.
func newest(kind string) uint32 {
	if kind == stateKind {
		return StateVersion
	}
	return FormatVersion
}

// Every file starts with 16 bytes that keep their meaning in all versions: what it is, the version, and a checksum of
// both, so that "newer" and "damaged" are never mixed up.
const (
	prefixSize  = 16
	segmentKind = "SLUICEJS"
	stateKind   = "SLUICEJP"
	headKind    = "SLUICEJH"
)

const (
	segmentHeaderSize = 64
	stateHeaderSize   = 104
	chunkHeaderSize   = 20
	frameHeaderSize   = 56
	// maxPayload bounds what a frame may claim to hold: the largest batch, with a length of up to 5 bytes per record.
	// The number of records has no bound of its own, so batches of very small records may reach it first.
	maxPayload = journal.MaxBatch + journal.MaxBatch/8
)

var (
	errShort = errors.New("cut short")
	errSum   = errors.New("its checksum does not match")
)

// versionError is a file of a version this build does not know.
type versionError struct{ has, reads uint32 }

func (v versionError) Error() string {
	return fmt.Sprintf("it has format %d, and this build reads %d", v.has, v.reads)
}

// crcTable returns the CRC-32C table; the package hash/crc32 keeps it.
func crcTable() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func crcOf(b []byte) uint32 { return crc32.Checksum(b, crcTable()) }

func appendPrefix(b []byte, kind string) []byte {
	start := len(b)
	b = append(b, kind...)
	b = binary.LittleEndian.AppendUint32(b, newest(kind))
	return binary.LittleEndian.AppendUint32(b, crcOf(b[start:]))
}

func checkPrefix(b []byte, kind string) error {
	if len(b) < prefixSize {
		return errShort
	}
	if crcOf(b[:12]) != binary.LittleEndian.Uint32(b[12:]) {
		return errSum
	}
	if string(b[:8]) != kind {
		return fmt.Errorf("it starts with %q, want %q", b[:8], kind)
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v == 0 || v > newest(kind) {
		return versionError{v, newest(kind)}
	}
	return nil
}

// appendSum ends a header with the checksum of it.
func appendSum(b []byte, start int) []byte {
	return binary.LittleEndian.AppendUint32(b, crcOf(b[start:]))
}

// checkSum checks a header that appendSum ended.
func checkSum(b []byte) error {
	if n := len(b) - 4; crcOf(b[:n]) != binary.LittleEndian.Uint32(b[n:]) {
		return errSum
	}
	return nil
}

// segmentHeader starts a segment: the position before its first record. [prefix 16][seq 8][digest 32][zero 4][crc 4].
func segmentHeader(before journal.Position) []byte {
	b := appendPrefix(make([]byte, 0, segmentHeaderSize), segmentKind)
	b = binary.LittleEndian.AppendUint64(b, before.Seq)
	b = append(b, before.Digest[:]...)
	b = append(b, 0, 0, 0, 0)
	return appendSum(b, 0)
}

func parseSegmentHeader(b []byte) (before journal.Position, err error) {
	if err := checkPrefix(b, segmentKind); err != nil {
		return before, err
	}
	if len(b) < segmentHeaderSize {
		return before, errShort
	}
	if err := checkSum(b[:segmentHeaderSize]); err != nil {
		return before, err
	}
	before.Seq = binary.LittleEndian.Uint64(b[16:])
	copy(before.Digest[:], b[24:])
	return before, nil
}

// stateHeader starts a snapshot: [prefix 16][seq 8][digest 32][length 8][SHA-256 of the state 32][zero 4][crc 4]. The state
// follows, in version 1 as it is, in version 2 in chunks.
type stateHeader struct {
	version uint32
	at      journal.Position
	length  uint64
	sum     [32]byte
}

// bytes is a header of the version that is written now.
func (h *stateHeader) bytes() []byte {
	b := appendPrefix(make([]byte, 0, stateHeaderSize), stateKind)
	b = binary.LittleEndian.AppendUint64(b, h.at.Seq)
	b = append(b, h.at.Digest[:]...)
	b = binary.LittleEndian.AppendUint64(b, h.length)
	b = append(b, h.sum[:]...)
	b = append(b, 0, 0, 0, 0)
	return appendSum(b, 0)
}

func parseStateHeader(b []byte) (h stateHeader, err error) {
	if err = checkPrefix(b, stateKind); err != nil {
		return h, err
	}
	if len(b) < stateHeaderSize {
		return h, errShort
	}
	if err = checkSum(b[:stateHeaderSize]); err != nil {
		return h, err
	}
	h.version, h.length = binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint64(b[56:])
	h.at.Seq = binary.LittleEndian.Uint64(b[16:])
	copy(h.at.Digest[:], b[24:])
	copy(h.sum[:], b[64:])
	return h, nil
}

// chunkHeader starts a chunk of a state: [length 4][where in the state it begins 8][crc of its bytes 4][crc 4].
func chunkHeader(b []byte, off uint64, payload []byte) []byte {
	start := len(b)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint64(b, off)
	b = binary.LittleEndian.AppendUint32(b, crcOf(payload))
	return appendSum(b, start)
}

func parseChunkHeader(b []byte) (length uint32, off uint64, sum uint32, err error) {
	if err := checkSum(b[:chunkHeaderSize]); err != nil {
		return 0, 0, 0, err
	}
	return binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint64(b[4:]), binary.LittleEndian.Uint32(b[12:]), nil
}

// A frame is one batch: [payload length 4][records 4][first seq 8][digest after the last 32][payload crc 4][crc 4], then
// the payload: each record as a varint length and its bytes.
type frame struct {
	length, count uint32
	first         uint64
	digest        [32]byte
	payloadSum    uint32
}

// appendFrame appends the frame of records that follow at, and returns the position of the last.
func appendFrame(b []byte, at journal.Position, records [][]byte) ([]byte, journal.Position) {
	start, first := len(b), at.Seq+1
	b = append(b, make([]byte, frameHeaderSize)...)
	for _, r := range records {
		b = binary.AppendUvarint(b, uint64(len(r)))
		b = append(b, r...)
		at = at.Next(r)
	}
	payload := b[start+frameHeaderSize:]
	h := binary.LittleEndian.AppendUint32(b[:start], uint32(len(payload)))
	h = binary.LittleEndian.AppendUint32(h, uint32(len(records)))
	h = binary.LittleEndian.AppendUint64(h, first)
	h = append(h, at.Digest[:]...)
	h = binary.LittleEndian.AppendUint32(h, crcOf(payload))
	appendSum(h, start)
	return b, at
}

func parseFrameHeader(b []byte) (f frame, err error) {
	if len(b) < frameHeaderSize {
		return f, errShort
	}
	if err := checkSum(b[:frameHeaderSize]); err != nil {
		return f, err
	}
	f.length = binary.LittleEndian.Uint32(b)
	f.count = binary.LittleEndian.Uint32(b[4:])
	f.first = binary.LittleEndian.Uint64(b[8:])
	copy(f.digest[:], b[16:])
	f.payloadSum = binary.LittleEndian.Uint32(b[48:])
	return f, nil
}

// records walks a payload that follows at, and checks it against the frame. The bytes are checked already; what is wrong
// here was written wrong, or belongs to another place.
func (f *frame) records(payload []byte, at journal.Position, into []entry) ([]entry, error) {
	if f.first != at.Seq+1 {
		return into, fmt.Errorf("it starts with record %d, want %d", f.first, at.Seq+1)
	}
	for range f.count {
		n, size := binary.Uvarint(payload)
		if size <= 0 || n > uint64(len(payload)-size) {
			return into, errors.New("its records do not fill it")
		}
		data := payload[size : size+int(n) : size+int(n)]
		at = at.Next(data)
		into = append(into, entry{at, data})
		payload = payload[size+int(n):]
	}
	if len(payload) > 0 || f.count == 0 {
		return into, errors.New("its records do not fill it")
	}
	if at.Digest != f.digest {
		return into, errors.New("its digest does not follow from the records before it")
	}
	return into, nil
}

// entry is one record with its position.
type entry struct {
	at   journal.Position
	data []byte
}

// Names of files. A segment is named after its first record, a snapshot after the last record it covers.
const (
	segmentSuffix = ".seg"
	stateSuffix   = ".snap"
	headName      = "HEAD"
	segmentTemp   = "segment.tmp"
	stateTemp     = "snapshot.tmp"
	headTemp      = "head.tmp"
)

func segmentName(first uint64) string { return fmt.Sprintf("%020d%s", first, segmentSuffix) }
func stateName(seq uint64) string     { return fmt.Sprintf("%020d%s", seq, stateSuffix) }

// parseName returns the number in the name of a segment or snapshot.
func parseName(name, suffix string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil
}
