package submit

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/api"
)

const (
	// maxPacked is the largest packed work directory, in bytes.
	maxPacked = api.MaxWorkdir
	// maxUnpacked bounds what is read for it: eight times as much, since data that packs better is no source code.
	maxUnpacked = 8 * maxPacked
	// maxPackedFiles is how many entries a work directory may have.
	maxPackedFiles = 100_000
)

// packer writes a work directory as a tar.gz of names, contents, rights and the files' times of change in whole seconds: ssh
// refuses a key that others may read, zip a file of 1970, and make goes by what is newer. A directory in which no file was
// touched always has the same digest.
type packer struct {
	dir      string
	tar      *tar.Writer
	packed   *bytes.Buffer
	limit    int
	read     int64
	entries  int
	largest  []entry
	warnings []string
}

type entry struct {
	name string
	size int64
}

// errTooLarge ends packing; the message is made where all is known.
var errTooLarge = errors.New("too large")

// pack reads dir. git says whether .git goes along; limit is the largest result in bytes. Warnings name what was left
// out.
func pack(dir string, git bool, limit int) (data []byte, warnings []string, err error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("workdir: %w", err)
	}
	if !info.IsDir() {
		return nil, nil, fmt.Errorf("workdir: %s is no directory", dir)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	p := &packer{dir: dir, tar: tar.NewWriter(z), packed: &b, limit: limit}
	err = filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil || name == "." {
			return err
		}
		if d.Name() == ".git" && !git {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return p.add(file, filepath.ToSlash(name), d)
	})
	if err == nil {
		err = errors.Join(p.tar.Close(), z.Close())
	}
	switch {
	case errors.Is(err, errTooLarge) || err == nil && b.Len() > limit:
		return nil, nil, p.tooLarge()
	case err != nil:
		return nil, nil, fmt.Errorf("packing the work directory %s: %w", dir, err)
	}
	return b.Bytes(), p.warnings, nil
}

func (p *packer) tooLarge() error {
	names := make([]string, 0, len(p.largest))
	for _, e := range p.largest {
		names = append(names, fmt.Sprintf("%s (%s)", e.name, command.Size(e.size)))
	}
	if p.entries > maxPackedFiles {
		return fmt.Errorf("the work directory %s has more than %d files: name a smaller directory as workdir, and let the command read "+
			"the rest from where it is", p.dir, maxPackedFiles)
	}
	return fmt.Errorf("the work directory %s is larger than %s packed: name a smaller directory as workdir, and let the command read "+
		"large data from where it is; the largest files seen: %s",
		p.dir, quantity.FormatBytes(quantity.Amount(p.limit)), strings.Join(names, ", "))
}

// add writes one entry.
func (p *packer) add(file, name string, d fs.DirEntry) error {
	if p.entries++; p.entries > maxPackedFiles || p.packed.Len() > p.limit {
		return errTooLarge
	}
	head := &tar.Header{Name: name, Format: tar.FormatPAX}
	switch t := d.Type(); {
	case t.IsDir():
		info, err := d.Info()
		if err != nil {
			return err
		}
		head.Typeflag, head.Name, head.Mode = tar.TypeDir, name+"/", int64(info.Mode().Perm())
		return p.tar.WriteHeader(head)
	case t.IsRegular():
		return p.file(file, head)
	case t&fs.ModeSymlink != 0:
		to, err := os.Readlink(file)
		if err != nil {
			return err
		}
		if !staysInside(name, to) {
			p.warnings = append(p.warnings, fmt.Sprintf("%s is left out: it links to %s, outside the work directory", name, to))
			return nil
		}
		head.Typeflag, head.Linkname, head.Mode = tar.TypeSymlink, filepath.ToSlash(to), 0o777
		return p.tar.WriteHeader(head)
	default:
		p.warnings = append(p.warnings, fmt.Sprintf("%s is left out: it is no file, directory or link", name))
		return nil
	}
}

// file writes a regular file.
func (p *packer) file(file string, head *tar.Header) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	// Fractions of a second would cost a header of 1 KiB for each file.
	head.Typeflag, head.Size, head.Mode, head.ModTime = tar.TypeReg, info.Size(), int64(info.Mode().Perm()),
		info.ModTime().Truncate(time.Second)
	p.note(entry{head.Name, head.Size})
	if p.read += head.Size; p.read > maxUnpacked {
		return errTooLarge
	}
	if err := p.tar.WriteHeader(head); err != nil {
		return err
	}
	if n, err := io.Copy(p.tar, io.LimitReader(f, head.Size)); err != nil || n < head.Size {
		return cmp.Or(err, fmt.Errorf("%s became shorter while it was read; submit again when nothing writes to it", head.Name))
	}
	return nil
}

// note remembers the largest files, for a message.
func (p *packer) note(e entry) {
	p.largest = append(p.largest, e)
	slices.SortStableFunc(p.largest, func(a, b entry) int { return cmp.Compare(b.size, a.size) })
	p.largest = p.largest[:min(len(p.largest), 3)]
}

// staysInside reports whether a link at name to target ends below the directory that name is relative to.
func staysInside(name, target string) bool {
	target = filepath.ToSlash(target)
	if path.IsAbs(target) {
		return false
	}
	end := path.Join(path.Dir(name), target)
	return end != ".." && !strings.HasPrefix(end, "../")
}
