package local

import (
	"encoding/binary"

	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/disk"
)

// The head is a second witness of the end of the journal that lies beside it: the position of the last acknowledged record.
// It is written after every batch and synced only with a new segment, as a snapshot begins one, and Close. So it is exact after any end
// of the process, behind after a power cut, and never ahead of what was promised: a journal that ends before it has lost
// records. It has two copies in two sectors, written in turn, so that a torn write leaves one.
type head struct {
	f disk.File
	// turns counts writes; the newest copy is number turns%2.
	turns int
}

const (
	headStride = 512
	headSize   = 2 * headStride
	copySize   = prefixSize + 8 + 32 + 4 + 4
)

// headCopy is [prefix 16][seq 8][digest 32][zero 4][crc 4].
func headCopy(at journal.Position) []byte {
	b := appendPrefix(make([]byte, 0, copySize), headKind)
	b = binary.LittleEndian.AppendUint64(b, at.Seq)
	b = append(b, at.Digest[:]...)
	b = append(b, 0, 0, 0, 0)
	return appendSum(b, 0)
}

// headContent is a whole new head file.
func headContent(at journal.Position) []byte {
	b := make([]byte, headSize)
	copy(b, headCopy(at))
	copy(b[headStride:], headCopy(at))
	return b
}

// parseHead returns the latest position in a head file and which copy has it. bad are the errors of copies that cannot
// be read; with two of them nothing is known.
func parseHead(b []byte) (at journal.Position, newest int, bad []error) {
	for i := range 2 {
		var one []byte
		if len(b) > i*headStride {
			one = b[i*headStride:]
		}
		err := checkPrefix(one, headKind)
		if err == nil && len(one) < copySize {
			err = errShort
		}
		if err == nil {
			err = checkSum(one[:copySize])
		}
		if err != nil {
			bad = append(bad, err)
			continue
		}
		if seq := binary.LittleEndian.Uint64(one[16:]); seq >= at.Seq {
			at.Seq, newest = seq, i
			copy(at.Digest[:], one[24:])
		}
	}
	return at, newest, bad
}

// set writes at over the older copy.
func (h *head) set(at journal.Position) error {
	h.turns++
	_, err := h.f.WriteAt(headCopy(at), int64(h.turns%2)*headStride)
	return err
}
