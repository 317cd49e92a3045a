package local

import (
	"fmt"

	"sluice.dev/sluice/internal/edge/journal"
)

// stop is where and why the reading of a segment ended before its last byte.
type stop struct {
	off int64
	why string
	// unfinished: it may be a write that never completed. Otherwise it cannot be anything but damage.
	unfinished bool
}

// scan reads the frames of one segment from offset off, where the journal stands at position at. It calls emit for every
// frame that is whole and proven, and returns how far it came. b is the whole content of the file. An error is emit's.
func scan(b []byte, off int64, at journal.Position, emit func(off int64, records []entry) error) (int64, journal.Position, *stop, error) {
	var records []entry
	for off < int64(len(b)) {
		rest := b[off:]
		f, err := parseFrameHeader(rest)
		if err != nil {
			return off, at, &stop{off, fmt.Sprintf("the header of a batch is damaged: %v", err), true}, nil
		}
		if f.first != at.Seq+1 {
			return off, at, &stop{off, fmt.Sprintf("a batch that starts with record %d stands here", f.first), false}, nil
		}
		if f.length > maxPayload {
			return off, at, &stop{off, fmt.Sprintf("a batch of %d bytes cannot be", f.length), false}, nil
		}
		if int64(f.length) > int64(len(rest)-frameHeaderSize) {
			return off, at, &stop{off, fmt.Sprintf("a batch of %d bytes ends after %d", f.length, len(rest)-frameHeaderSize), true}, nil
		}
		payload := rest[frameHeaderSize : frameHeaderSize+int(f.length)]
		if crcOf(payload) != f.payloadSum {
			return off, at, &stop{off, "the checksum of a batch does not match", true}, nil
		}
		if records, err = f.records(payload, at, records[:0]); err != nil {
			return off, at, &stop{off, fmt.Sprintf("a batch with the right checksum is wrong: %v", err), false}, nil
		}
		if err := emit(off, records); err != nil {
			return off, at, nil, err
		}
		at = records[len(records)-1].at
		off += frameHeaderSize + int64(f.length)
	}
	return off, at, nil, nil
}
