package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
)

// FactReader reads what AppendFacts wrote, as a stream: it holds one fact at a time.
type FactReader struct {
	r    *bufio.Reader
	n    int // facts begun
	room []byte
}

// NewFactReader reads facts from r.
func NewFactReader(r io.Reader) *FactReader {
	return &FactReader{r: bufio.NewReaderSize(r, 64<<10)}
}

// ReadFacts is DecodeFacts of a stream.
func ReadFacts(r io.Reader, f func(protocol.Fact) error) error {
	var d Decoder
	for in := NewFactReader(r); ; {
		var fact protocol.Fact
		if err := in.Next(&d, &fact); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := f(fact); err != nil {
			return err
		}
	}
}

// Next reads one fact, with what d shares, into f, which must be zero. The error is io.EOF behind the last one, one of r as it
// is, or one of the bytes as DecodeFacts has it.
func (r *FactReader) Next(d *Decoder, f *protocol.Fact) error {
	if _, err := r.r.Peek(1); err != nil {
		return err
	}
	r.n++
	size, err := binary.ReadUvarint(r.r)
	if err == nil && size > maxFact {
		err = errkind.Errorf(errkind.Corrupt, "fact %d of the list: its length, %d bytes, is damaged", r.n, size)
	}
	if err != nil {
		return cut(r.n, err)
	}
	r.room = slices.Grow(r.room[:0], int(size))[:size]
	if _, err := io.ReadFull(r.r, r.room); err != nil {
		return cut(r.n, err)
	}
	if err := d.Fact(r.room, f); err != nil {
		return errkind.Errorf(errkind.Of(err), "fact %d of the list: %w", r.n, err)
	}
	if cap(r.room) > keepRoom {
		r.room = nil
	}
	return nil
}

const (
	// maxFact bounds what a length is believed, in bytes.
	maxFact = 1 << 30
	// keepRoom is how much room is kept from one fact to the next, in bytes.
	keepRoom = 1 << 20
)

// cut says that the list ends within a fact.
func cut(n int, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errkind.Errorf(errkind.Corrupt, "fact %d of the list is cut short", n)
	}
	return err
}
