package tree

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
)

// A file with holes is archived without them, in GNU's sparse format 1.0, which tar programs and package tar read: its content is a map of
// the parts that were written, and then these. So a hundred gigabytes that nobody wrote are neither read nor stored.

// written are the parts of a file between its holes; nil: it has none that counts.
func written(f *os.File, size int64) (parts []part) {
	for at, least := int64(0), int64(leastHole); at < size; {
		from, err := f.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // a hole up to the end
			from, err = size, nil
		}
		if err != nil {
			return nil // its file system does not say
		}
		to := size
		if from < size {
			if to, err = f.Seek(from, unix.SEEK_HOLE); err != nil || to <= from {
				return nil
			}
		}
		from, to, at = min(from, size), min(to, size), to
		if n := len(parts); n > 0 && from < size && from-parts[n-1].at-parts[n-1].size < least {
			parts[n-1].size = to - parts[n-1].at
			continue
		}
		if parts = append(parts, part{from, to - from}); len(parts) > mostParts {
			for len(parts) > mostParts/2 {
				least *= 4
				parts = merged(parts, least)
			}
		}
	}
	if n := sum(parts); size-n < leastHole {
		return nil
	}
	if last := parts[len(parts)-1]; last.at+last.size < size || last.size > 0 {
		parts = append(parts, part{at: size}) // as GNU's tar ends a map
	}
	return parts
}

// merged joins parts that lie closer together than least.
func merged(parts []part, least int64) (out []part) {
	for _, p := range parts {
		if n := len(out); n > 0 && p.at-out[n-1].at-out[n-1].size < least {
			out[n-1].size = p.at + p.size - out[n-1].at
			continue
		}
		out = append(out, p)
	}
	return out
}

func sum(parts []part) (n int64) {
	for _, p := range parts {
		n += p.size
	}
	return n
}

// within is where in the file a byte of its parts lies, and how many follow it there.
func within(parts []part, at int64) (off, rest int64) {
	for _, p := range parts {
		if at < p.size {
			return p.at + at, p.size - at
		}
		at -= p.size
	}
	return 0, 0
}

// sparseHeader is what an archive says of a file with holes before its parts.
func sparseHeader(e *entry) ([]byte, error) {
	var list bytes.Buffer
	fmt.Fprintln(&list, len(e.parts))
	for _, p := range e.parts {
		fmt.Fprintf(&list, "%d\n%d\n", p.at, p.size)
	}
	pad(&list)
	var records bytes.Buffer
	for _, r := range [][2]string{
		{"GNU.sparse.major", "1"}, {"GNU.sparse.minor", "0"}, {"GNU.sparse.name", e.name},
		{"GNU.sparse.realsize", strconv.FormatInt(e.size, 10)},
		{"size", strconv.FormatInt(int64(list.Len())+e.stored, 10)},
	} {
		records.WriteString(record(r[0], r[1]))
	}
	var out bytes.Buffer
	first, err := block(&tar.Header{Name: "PaxHeaders.0/sparse", Mode: 0o644, Size: int64(records.Len())}, 'x')
	if err == nil {
		pad(&records)
		out.Write(first)
		out.Write(records.Bytes())
		var second []byte
		second, err = block(&tar.Header{Name: "GNUSparseFile.0/sparse", Mode: int64(e.mode.Perm()), ModTime: e.changed},
			tar.TypeReg) // the records have its name and size
		out.Write(second)
		out.Write(list.Bytes())
	}
	return out.Bytes(), err
}

// block is one header of type kind, which package tar does not write itself.
func block(h *tar.Header, kind byte) ([]byte, error) {
	h.Typeflag, h.Format = tar.TypeReg, tar.FormatUSTAR
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(h); err != nil {
		return nil, errkind.Errorf(errkind.Invalid, "a header of a file with holes: %w", err)
	}
	raw := b.Bytes()
	raw[156] = kind
	copy(raw[148:156], "        ")
	total := 0
	for _, c := range raw {
		total += int(c)
	}
	copy(raw[148:156], fmt.Sprintf("%06o\x00 ", total))
	return raw, nil
}

// record is one of an extended header: its length counts itself.
func record(key, value string) string {
	rest := fmt.Sprintf(" %s=%s\n", key, value)
	n := len(rest)
	for n != len(strconv.Itoa(n))+len(rest) {
		n = len(strconv.Itoa(n)) + len(rest)
	}
	return strconv.Itoa(n) + rest
}

func pad(b *bytes.Buffer) { b.Write(make([]byte, padded(int64(b.Len()))-int64(b.Len()))) }

// holes writes a file with what is zero left out, in pieces as long as zeros.
type holes struct {
	f     *os.File
	at    int64
	zeros []byte
}

func (h *holes) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		piece := p[n:min(len(p), n+len(h.zeros))]
		if !bytes.Equal(piece, h.zeros[:len(piece)]) {
			_, err = h.f.WriteAt(piece, h.at)
		}
		n, h.at = n+len(piece), h.at+int64(len(piece))
	}
	return n, err
}

// copyHoles copies a file that had holes.
func copyHoles(f *os.File, in io.Reader) error {
	h := &holes{f: f, zeros: make([]byte, 32<<10)}
	if _, err := io.Copy(h, in); err != nil {
		return err
	}
	return f.Truncate(h.at)
}
