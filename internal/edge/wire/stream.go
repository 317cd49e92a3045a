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
	for in, i := NewFactReader(r), 1; ; i++ {
		encoded, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var fact protocol.Fact
		if err := d.Fact(encoded, &fact); err != nil {
			return errkind.Errorf(errkind.Of(err), "fact %d of the list: %w", i, err)
		}
		if err := f(fact); err != nil {
			return err
		}
	}
}

// Next is the encoding of the next fact, good until the one after it is asked for. The error is io.EOF behind the last one, one of
// the reader as it is, or of kind Corrupt.
func (r *FactReader) Next() ([]byte, error) {
	if cap(r.room) > keepRoom {
		r.room = nil
	}
	if _, err := r.r.Peek(1); err != nil {
		return nil, err
	}
	r.n++
	size, err := binary.ReadUvarint(r.r)
	if err == nil && size > maxFact {
		err = errkind.Errorf(errkind.Corrupt, "fact %d of the list: its length, %d bytes, is damaged", r.n, size)
	}
	if err != nil {
		return nil, cut(r.n, err)
	}
	r.room = slices.Grow(r.room[:0], int(size))[:size]
	if _, err := io.ReadFull(r.r, r.room); err != nil {
		return nil, cut(r.n, err)
	}
	return r.room, nil
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
