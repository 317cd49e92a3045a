package lines

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
)

const (
	// indexFormat is what an index begins with.
	indexFormat = "sluice lines 1"
	// stride is how many lines lie between two offsets of an index: ten million lines are 40,000 offsets, and 255 lines at most are read
	// before the one that is looked for.
	stride = 256
)

// Index is where the lines of a file begin: its first line as JSON, then the offsets as 64-bit numbers, little endian. Where records of CSV
// are several lines long, or empty lines lie between them, how many line ends lie before it stands behind each offset.
type Index struct {
	// Kind is indexFormat.
	Kind string
	// Lines of the file, without a header.
	Lines int64
	// Size of the file in bytes, Modified its time of change in whole seconds, and Digest the SHA-256 of its bytes.
	Size     int64
	Modified time.Time
	Digest   string
	// Every so many lines there is an offset, from line 0.
	Every int64
	// Header is the header's length in bytes; 0: there is none.
	Header int64
	// Numbered: there are line ends behind offsets, since what counts as a line here is not always one of the file's.
	Numbered bool `json:",omitempty"`

	places []place
}

// place is where a line begins: behind so many bytes, and so many line ends.
type place struct{ offset, ends int64 }

// Build reads a file once. It holds a line at a time, and an offset for every 256.
func Build(path string, format job.LineFormat, header bool) (*Index, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errkind.Errorf(errkind.Invalid, "%s is no plain file", path)
	}
	x, err := Of(f, format, header)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if x.Size != info.Size() {
		return nil, errkind.Errorf(errkind.Invalid, "%s has changed while it was read; try again when nothing writes to it", path)
	}
	x.Modified = info.ModTime().Truncate(time.Second).UTC()
	return x, nil
}

// Of is the index of what r reads, which has no time of change.
func Of(r io.Reader, format job.LineFormat, header bool) (*Index, error) {
	x := &Index{Kind: indexFormat, Every: stride}
	sum := sha256.New()
	s := NewScanner(io.TeeReader(r, sum), format, 0)
	var buf []byte
	records := int64(0)
	for head := header; ; records++ {
		line, at, err := s.Next(buf[:0])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		buf = line
		x.Numbered = x.Numbered || s.at != records
		switch {
		case head:
			x.Header, head = s.offset, false
			continue
		case x.Lines%stride == 0:
			x.places = append(x.places, place{at, s.at})
		}
		x.Lines++
	}
	x.Numbered = x.Numbered || s.ends > records
	x.Size, x.Digest = s.offset, hex.EncodeToString(sum.Sum(nil))
	return x, nil
}

// Numbers says which lines of the file units are, as an editor counts them from 1. units are in order.
func Numbers(path string, format job.LineFormat, header bool, units []int64) ([]int64, error) {
	first := int64(1)
	if header {
		first++
	}
	if format == job.Text || len(units) == 0 {
		all := make([]int64, len(units))
		for i, u := range units {
			all[i] = u + first
		}
		return all, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := NewScanner(f, format, 0)
	var all []int64
	var buf []byte
	for u := 1 - first; len(all) < len(units); u++ {
		if buf, _, err = s.Next(buf[:0]); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if u == units[len(all)] {
			all = append(all, s.at+1)
		}
	}
	return all, nil
}

// Bytes are the index as a file.
func (x *Index) Bytes() ([]byte, error) {
	head, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	b := append(head, '\n')
	for _, p := range x.places {
		b = binary.LittleEndian.AppendUint64(b, uint64(p.offset))
		if x.Numbered {
			b = binary.LittleEndian.AppendUint64(b, uint64(p.ends))
		}
	}
	return b, nil
}

// width is how many bytes a place takes in the file of an index.
func (x *Index) width() int64 {
	if x.Numbered {
		return 16
	}
	return 8
}

// maxHead is the longest first line of an index, in bytes.
const maxHead = 4 << 10

// File is a file of lines, to be read from any of them.
type File struct {
	file, index *os.File
	format      job.LineFormat
	// header: the first line is one.
	header bool
	// known is what the index says, and first where its offsets begin; nil: there is none.
	known *Index
	first int64
}

// Open opens a file of lines with its index, if that has a path. Errors say what does not fit: the index is of the file as it was.
func Open(path, index string, format job.LineFormat, header bool) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f := &File{file: file, format: format, header: header}
	if index != "" {
		if err := f.look(index); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// look reads the beginning of an index, and holds the file to it.
func (f *File) look(index string) (err error) {
	if f.index, err = os.Open(index); err != nil {
		return fmt.Errorf("the index of the input's lines: %w", err)
	}
	head := make([]byte, maxHead)
	n, err := f.index.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("the index of the input's lines: %w", err)
	}
	text, _, found := bytes.Cut(head[:n], []byte{'\n'})
	f.known = &Index{}
	if !found || json.Unmarshal(text, f.known) != nil || f.known.Kind != indexFormat || f.known.Every < 1 {
		return errkind.Errorf(errkind.Invalid, "%s is no index of lines that this build reads", index)
	}
	f.first = int64(len(text)) + 1
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() != f.known.Size {
		return errkind.Errorf(errkind.Invalid, "%s has changed since its lines were counted: it had %d bytes, and has %d", f.file.Name(),
			f.known.Size, info.Size())
	}
	return nil
}

// Unchanged is an error if the file was written since its index was made, by its time of change.
func (f *File) Unchanged() error {
	info, err := f.file.Stat()
	if err == nil && f.known != nil && !info.ModTime().Truncate(time.Second).Equal(f.known.Modified) {
		err = errkind.Errorf(errkind.Invalid, "%s was written at %s, after its lines were counted", f.file.Name(),
			info.ModTime().UTC().Format(time.RFC3339))
	}
	return err
}

// Header is the file's header with its line end; nil: it has none.
func (f *File) Header() ([]byte, error) {
	if !f.header {
		return nil, nil
	}
	line, _, err := NewScanner(io.NewSectionReader(f.file, 0, 1<<62), f.format, 0).Next(nil)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	return line, err
}

// From is a scanner of the lines from the nth on, counted from 0 without a header.
func (f *File) From(nth int64) (*Scanner, error) {
	at, skip := place{}, nth
	if f.header {
		skip++
	}
	if f.known != nil && nth < f.known.Lines {
		b := make([]byte, f.known.width())
		if _, err := f.index.ReadAt(b, f.first+f.known.width()*(nth/f.known.Every)); err != nil {
			return nil, fmt.Errorf("the index of the input's lines: %w", err)
		}
		skip = nth % f.known.Every
		if at.offset, at.ends = int64(binary.LittleEndian.Uint64(b)), nth-skip; f.known.Numbered {
			at.ends = int64(binary.LittleEndian.Uint64(b[8:]))
		} else if f.header {
			at.ends++
		}
	}
	s := NewScanner(io.NewSectionReader(f.file, at.offset, 1<<62), f.format, at.offset)
	s.ends = at.ends
	for buf := []byte(nil); skip > 0; skip-- {
		var err error
		if buf, _, err = s.Next(buf[:0]); err != nil {
			return nil, fmt.Errorf("%s: looking for line %d without a header: %w", f.file.Name(), nth+1, err)
		}
	}
	return s, nil
}

// Number says at which line of the file its nth begins, counted from 0 without a header, as an editor counts: from 1, with it.
func (f *File) Number(nth int64) (int64, error) {
	s, err := f.From(nth)
	if err != nil {
		return 0, err
	}
	if _, _, err = s.Next(nil); err != nil {
		return 0, fmt.Errorf("%s: %w", f.file.Name(), err)
	}
	return s.at + 1, nil
}

// Close closes the files.
func (f *File) Close() error {
	err := f.file.Close()
	if f.index != nil {
		err = errors.Join(err, f.index.Close())
	}
	return err
}
