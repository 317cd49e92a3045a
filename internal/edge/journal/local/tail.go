package local

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"

	"sluice.dev/sluice/internal/edge/journal"
)

// An unreadable end of the last segment is either a write that never completed, whose records nobody was promised, or
// damage. It is damage if a later batch stands behind it, since a batch is only written after the sync of the one
// before; or if one flipped bit explains it, since then all of it had been written. (That the head says it was
// acknowledged is checked by the caller.) Otherwise it is taken for unfinished. damagedTail says why it is damage,
// or nothing.
func damagedTail(b []byte, s *stop, at journal.Position) string {
	rest := b[s.off:]
	if fixed := oneBit(rest, at); fixed {
		return "a single flipped bit explains it"
	}
	for i := 1; i+frameHeaderSize <= len(rest); i++ {
		// A batch never has more than 2^32 records; the cheap comparison spares most of the checksums.
		first := binary.LittleEndian.Uint64(rest[i+8:])
		if first <= at.Seq || first-at.Seq > 1<<32 {
			continue
		}
		if f, err := parseFrameHeader(rest[i:]); err == nil {
			return fmt.Sprintf("the batch that starts with record %d stands behind it at byte %d", f.first, s.off+int64(i))
		}
	}
	return ""
}

// oneBit says whether b starts with a frame that follows at, but for one flipped bit in its header or its payload. It never takes anything
// else for one: the repaired frame must have the right chained digest.
func oneBit(b []byte, at journal.Position) bool {
	if len(b) < frameHeaderSize {
		return false
	}
	header := bytes.Clone(b[:frameHeaderSize])
	if checkSum(header) != nil {
		n := frameHeaderSize - 4
		byteAt, mask, ok := locate(header[:n], binary.LittleEndian.Uint32(header[n:]))
		if !ok {
			return false
		}
		if byteAt < n { // otherwise the checksum itself is hit
			header[byteAt] ^= mask
		}
		binary.LittleEndian.PutUint32(header[n:], crcOf(header[:n]))
	}
	f, err := parseFrameHeader(header)
	if err != nil || int64(f.length) > int64(len(b)-frameHeaderSize) {
		return false
	}
	payload := bytes.Clone(b[frameHeaderSize : frameHeaderSize+int(f.length)])
	if crcOf(payload) != f.payloadSum {
		byteAt, mask, ok := locate(payload, f.payloadSum)
		if !ok || byteAt == len(payload) {
			return false
		}
		payload[byteAt] ^= mask
	}
	_, err = f.records(payload, at, nil)
	return err == nil
}

// locate finds the one bit whose flip in b makes its CRC-32C sum, or says that the flip is in sum itself (byteAt is
// len(b) then). A checksum is linear: a flipped bit changes it by a value that depends only on how many bytes follow,
// and that value is carried from the last byte to the first. ok is false if no single bit explains it.
func locate(b []byte, sum uint32) (byteAt int, mask byte, ok bool) {
	syndrome := crcOf(b) ^ sum
	if bits.OnesCount32(syndrome) == 1 {
		return len(b), 0, true
	}
	table := crcTable()
	var change [8]uint32
	for bit := range change {
		change[bit] = table[1<<bit]
	}
	for i := len(b) - 1; i >= 0; i-- {
		for bit := range change {
			if change[bit] == syndrome {
				return i, 1 << bit, true
			}
			change[bit] = table[change[bit]&0xff] ^ change[bit]>>8
		}
	}
	return 0, 0, false
}
