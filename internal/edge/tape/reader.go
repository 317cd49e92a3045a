package tape

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/wire"
)

// segments lists a folder's segment files, oldest boot first, each boot's in order. No folder is no segments.
func segments(dir string) ([]string, error) {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range list {
		if _, _, ok := parseName(e.Name()); ok && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		ab, as, _ := parseName(a)
		bb, bs, _ := parseName(b)
		return cmp.Or(cmp.Compare(ab, bb), cmp.Compare(as, bs))
	})
	return names, nil
}

// Boots lists the boots that have a tape in dir, oldest first.
func Boots(dir string) ([]string, error) {
	names, err := segments(dir)
	if err != nil {
		return nil, fmt.Errorf("list tapes in %s: %w", dir, err)
	}
	var boots []string
	for _, n := range names {
		if b, _, _ := parseName(n); len(boots) == 0 || boots[len(boots)-1] != b {
			boots = append(boots, b)
		}
	}
	return boots, nil
}

// Reader plays back the tape of one boot.
type Reader struct {
	paths  []string
	header Header
	file   *os.File
	in     *bufio.Reader
	offset int64
	number uint64 // of the next record expected
	held   *Entry // read before it was asked for
}

// Open opens the tape of one boot in dir. An error of kind NotFound lists the boots there are. A tape whose beginning
// was dropped by the cap starts with a Lost entry: it can be read, not played.
func Open(dir, boot string) (*Reader, error) {
	names, err := segments(dir)
	if err != nil {
		return nil, fmt.Errorf("open tape %s in %s: %w", boot, dir, err)
	}
	r := &Reader{}
	for _, n := range names {
		if b, _, _ := parseName(n); b == boot {
			r.paths = append(r.paths, filepath.Join(dir, n))
		}
	}
	if len(r.paths) == 0 {
		boots, _ := Boots(dir)
		return nil, errkind.Errorf(errkind.NotFound, "no tape of boot %q in %s; there are %q", boot, dir, boots)
	}
	if err := r.open(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Header is the header of the segment being read.
func (r *Reader) Header() Header { return r.header }

// Close ends reading.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}

// open starts on the next segment; it holds back a Lost entry where records are missing before it.
func (r *Reader) open() error {
	if err := r.Close(); err != nil {
		return err
	}
	path := r.paths[0]
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	r.paths, r.file, r.in, r.offset = r.paths[1:], f, bufio.NewReader(f), 0
	head := make([]byte, len(magic))
	if _, err = io.ReadFull(r.in, head); err != nil || string(head) != magic {
		return errkind.Errorf(errkind.Unsupported, "%s does not begin with %q: not a tape of this format; one of another is played with "+
			"the Sluice that made it", path, magic)
	}
	r.offset += int64(len(magic))
	b, err := r.record()
	if err != nil || len(b) == 0 || EntryKind(b[0]) != headerKind {
		return errkind.Errorf(errkind.Corrupt, "%s: no header: %w", path, cmp.Or(err, errors.New("another record stands first")))
	}
	var h Header
	if err := json.Unmarshal(b[1:], &h); err != nil {
		return errkind.Errorf(errkind.Corrupt, "%s: header: %w", path, err)
	}
	if h.First < r.number {
		return errkind.Errorf(errkind.Corrupt, "%s begins with record %d, but %d were read before it", path, h.First, r.number)
	}
	if missing := h.First - r.number; missing > 0 {
		r.held = &Entry{Kind: Lost, Missing: missing}
		r.number = h.First
	}
	r.header = h
	return nil
}

// errTorn is the end of a segment within a record: the daemon died or the disk was full.
var errTorn = errors.New("the record is cut short")

// record reads one frame. io.EOF at a clean end, errTorn at a cut one.
func (r *Reader) record() ([]byte, error) {
	var f [frame]byte
	switch _, err := io.ReadFull(r.in, f[:]); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errTorn
	case err != nil:
		return nil, err
	}
	n := binary.BigEndian.Uint32(f[:4])
	if n == 0 || n > maxRecord {
		return nil, errkind.Errorf(errkind.Corrupt, "%s, offset %d: a record of %d bytes", r.file.Name(), r.offset, n)
	}
	// Grown as it is read, so that a false length can't ask for memory that the file can't fill.
	b, err := io.ReadAll(io.LimitReader(r.in, int64(n)))
	if err != nil {
		return nil, err
	}
	if uint32(len(b)) < n {
		return nil, errTorn
	}
	if checksum(b) != binary.BigEndian.Uint32(f[4:]) {
		return nil, errkind.Errorf(errkind.Corrupt, "%s, offset %d: the record's checksum does not match", r.file.Name(), r.offset)
	}
	r.offset += int64(frame) + int64(n)
	return b, nil
}

// Next returns the next entry, io.EOF after the last. A tail cut short ends its segment; damage before the tail is an
// error of kind Corrupt naming file and offset.
func (r *Reader) Next() (Entry, error) {
	for {
		if r.held != nil {
			e := *r.held
			r.held = nil
			return e, nil
		}
		b, err := r.record()
		if errors.Is(err, io.EOF) || errors.Is(err, errTorn) {
			if len(r.paths) == 0 {
				return Entry{}, io.EOF
			}
			if err = r.open(); err != nil {
				return Entry{}, err
			}
			continue
		}
		if err != nil {
			return Entry{}, err
		}
		e, err := decode(b)
		if err != nil {
			return Entry{}, errkind.Errorf(errkind.Corrupt, "%s, record %d: %w", r.file.Name(), r.number, err)
		}
		r.number++
		return e, nil
	}
}

func decode(b []byte) (Entry, error) {
	e, b := Entry{Kind: EntryKind(b[0])}, b[1:]
	var err error
	switch e.Kind {
	case Recovered:
		e.Fact, err = wire.DecodeFact(b)
	case RecoverCall, StepCall:
		if b, err = e.call(b); err == nil && e.Kind == StepCall {
			e.Message, err = wire.DecodeMessage(b)
		}
	case Digest:
		if len(b) != 8 {
			return e, fmt.Errorf("a digest of %d bytes", len(b))
		}
		e.Digest = binary.BigEndian.Uint64(b)
	default:
		return e, fmt.Errorf("unknown kind %q", byte(e.Kind))
	}
	return e, err
}

func (e *Entry) call(b []byte) (rest []byte, err error) {
	if len(b) < 2 {
		return nil, errTorn
	}
	e.Actor.Role = protocol.Role(b[0])
	n, k := binary.Uvarint(b[1:])
	b = b[1:]
	if k <= 0 || n > uint64(len(b)-k) || uint64(len(b)-k)-n < 8 {
		return nil, errTorn
	}
	e.Actor.ID = string(b[k : k+int(n)])
	b = b[k+int(n):]
	e.Now = quantity.Instant(binary.BigEndian.Uint64(b))
	return b[8:], nil
}
