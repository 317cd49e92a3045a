package tape

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/wire"
)

// Limits bound what tapes take of a disk. Zero fields mean the defaults.
type Limits struct {
	// Segment is the size at which a new file is begun, in bytes. Default 16 MiB.
	Segment int64
	// Cap is the size of all tapes in the folder together, in bytes; the oldest segments go first. Default 256 MiB.
	Cap int64
}

// retry is how long a tape that could not be written rests before it is tried again.
const retry = 10 * time.Second

// Writer appends to the tape of one boot. Its methods never fail: what can't be written is counted, reported once
// through the Trouble function, and shows as a Lost entry to a reader. It is not safe for concurrent use.
type Writer struct {
	dir     string
	header  Header
	limits  Limits
	trouble func(error)

	file   *os.File
	buf    *bufio.Writer
	size   int64
	number uint64 // of the next record
	// recovered is how much of the facts at boot was written, in bytes.
	recovered int64
	scratch   []byte
	now       quantity.Instant
	resume    quantity.Instant // no attempt before
}

// NewWriter makes the writer of one boot. dir is created when needed; boot, version, configuration and the like come in
// h, whose Boot must be unused and without path separators. trouble may be nil.
func NewWriter(dir string, h Header, l Limits, trouble func(error)) *Writer {
	if l.Segment <= 0 {
		l.Segment = 16 << 20
	}
	if l.Cap <= 0 {
		l.Cap = 256 << 20
	}
	if trouble == nil {
		trouble = func(error) {}
	}
	h.Segment, h.First = 0, 0
	return &Writer{dir: dir, header: h, limits: l, trouble: trouble, now: h.Started}
}

// Recovered records a fact that was applied at boot, as package wire encodes it. Those of a large state leave the inputs behind them no
// room under the cap, and a tape without its beginning can't be played: beyond half of the cap they are only counted as missing.
func (w *Writer) Recovered(fact []byte) {
	if w.recovered > w.limits.Cap/2 {
		if w.file != nil {
			if err := w.Close(); err != nil {
				w.give(err)
			}
		}
		w.number++
		return
	}
	b := append(w.begin(Recovered), fact...)
	w.recovered += int64(frame + len(b))
	w.put(b)
}

// RecoverCall records a call of Recover, before it is made.
func (w *Writer) RecoverCall(actor protocol.Address, now quantity.Instant) {
	w.now = now
	w.put(appendCall(w.begin(RecoverCall), actor, now))
}

// StepCall records a call of Step, before it is made: should it never return, its cause is on the tape.
func (w *Writer) StepCall(actor protocol.Address, now quantity.Instant, m *protocol.Message) {
	w.now = now
	w.put(wire.AppendMessage(appendCall(w.begin(StepCall), actor, now), m))
}

// Digest records the digest of the actor that was called last.
func (w *Writer) Digest(d uint64) {
	w.put(binary.BigEndian.AppendUint64(w.begin(Digest), d))
}

// Flush hands everything to the operating system; nothing is synced.
func (w *Writer) Flush() {
	if w.buf != nil {
		if err := w.buf.Flush(); err != nil {
			w.give(err)
		}
	}
}

// Close flushes and ends the tape.
func (w *Writer) Close() error {
	w.Flush()
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file, w.buf = nil, nil
	return err
}

func (w *Writer) begin(k EntryKind) []byte { return append(w.scratch[:0], byte(k)) }

func appendCall(b []byte, actor protocol.Address, now quantity.Instant) []byte {
	b = append(b, byte(actor.Role))
	b = binary.AppendUvarint(b, uint64(len(actor.ID)))
	b = append(b, actor.ID...)
	return binary.BigEndian.AppendUint64(b, uint64(now))
}

// put writes one record, beginning a segment where one is due. Every record has a number, written or not.
func (w *Writer) put(b []byte) {
	n := w.number
	w.number++
	w.scratch = b[:0]
	if w.file == nil || w.size >= w.limits.Segment {
		if w.now < w.resume {
			return
		}
		if err := w.rotate(n); err != nil {
			w.give(err)
			return
		}
	}
	if err := w.write(b); err != nil {
		w.give(err)
	}
}

func (w *Writer) write(b []byte) error {
	var f [frame]byte
	binary.BigEndian.PutUint32(f[:4], uint32(len(b)))
	binary.BigEndian.PutUint32(f[4:], checksum(b))
	w.size += int64(frame + len(b))
	_, err1 := w.buf.Write(f[:])
	_, err2 := w.buf.Write(b)
	return errors.Join(err1, err2)
}

// give up on the segment: its tail is torn, and the next one says what is missing.
func (w *Writer) give(err error) {
	if w.file != nil {
		err = errors.Join(err, w.file.Close())
		w.file, w.buf = nil, nil
	}
	w.resume = w.now.Add(retry)
	w.trouble(fmt.Errorf("the tape in %s has a gap (nothing else is affected; it goes on when it can be written): %w", w.dir, err))
}

func (w *Writer) rotate(first uint64) error {
	if err := w.Close(); err != nil {
		return err
	}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return err
	}
	if err := w.prune(); err != nil {
		return err
	}
	f, err := os.OpenFile(segmentPath(w.dir, w.header.Boot, w.header.Segment), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	w.file, w.buf, w.size = f, bufio.NewWriterSize(f, 64<<10), 0
	h := w.header
	h.First = first
	w.header.Segment++
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if _, err := w.buf.WriteString(magic); err != nil {
		return err
	}
	return w.write(append([]byte{byte(headerKind)}, data...))
}

// prune makes room for one more segment, oldest first.
func (w *Writer) prune() error {
	names, err := segments(w.dir)
	if err != nil {
		return err
	}
	var total int64
	sizes := make([]int64, len(names))
	for i, n := range names {
		info, err := os.Stat(filepath.Join(w.dir, n))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		sizes[i] = info.Size()
		total += info.Size()
	}
	for i, n := range names {
		if total+w.limits.Segment <= w.limits.Cap {
			break
		}
		if err := os.Remove(filepath.Join(w.dir, n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		total -= sizes[i]
	}
	return nil
}
