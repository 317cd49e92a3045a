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
	dir    string
	beside along
	tar    *tar.Writer
	packed *bytes.Buffer
	limit  int
	read   int64
	// entries are files and directories.
	entries, files int
	largest        []entry
	warnings       []string
}

type entry struct {
	name string
	size int64
}

// along is what goes along with a job beside its directory, and what of that does not.
type along struct {
	// extra files are in the place of the directory's own of their names.
	extra []extraFile
	// without are absolute paths that stay behind, with all below them.
	without []string
}

// extraFile is a file that a command makes for its job.
type extraFile struct {
	name string
	data []byte
}

// parcel is a packed work directory.
type parcel struct {
	data []byte
	// files are how many it holds, and size what they have in bytes.
	files int
	size  int64
	// warnings name what was left out.
	warnings []string
}

// errTooLarge ends packing; the message is made where all is known.
var errTooLarge = errors.New("too large")

// pack reads dir, which may be empty for none. git says whether .git goes along; limit is the largest result in bytes.
func pack(dir string, beside along, git bool, limit int) (parcel, error) {
	info, err := os.Stat(dir)
	switch {
	case dir == "":
	case err != nil:
		return parcel{}, fmt.Errorf("workdir: %w", err)
	case !info.IsDir():
		return parcel{}, fmt.Errorf("workdir: %s is no directory", dir)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	p := &packer{dir: dir, beside: beside, tar: tar.NewWriter(z), packed: &b, limit: limit}
	if err = p.put(); err == nil && dir != "" {
		err = p.walk(git)
	}
	if err == nil {
		err = errors.Join(p.tar.Close(), z.Close())
	}
	switch {
	case errors.Is(err, errTooLarge) || err == nil && b.Len() > limit:
		return parcel{}, p.tooLarge()
	case err != nil:
		return parcel{}, fmt.Errorf("packing the work directory %s: %w", dir, err)
	}
	return parcel{data: b.Bytes(), files: p.files, size: p.read, warnings: p.warnings}, nil
}

// put writes extra files, and the directories that they lie in.
func (p *packer) put() error {
	made := map[string]bool{}
	for _, e := range p.beside.extra {
		for at := strings.IndexByte(e.name, '/'); at >= 0; {
			dir := e.name[:at+1]
			if !made[dir] {
				made[dir] = true
				p.entries++
				if err := p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, Format: tar.FormatPAX}); err != nil {
					return err
				}
			}
			next := strings.IndexByte(e.name[at+1:], '/')
			if next < 0 {
				break
			}
			at += 1 + next
		}
		head := tar.Header{Typeflag: tar.TypeReg, Name: e.name, Size: int64(len(e.data)), Mode: 0o644, Format: tar.FormatPAX}
		p.entries++
		p.note(entry{head.Name, head.Size})
		if err := p.tar.WriteHeader(&head); err != nil {
			return err
		}
		if _, err := p.tar.Write(e.data); err != nil {
			return err
		}
	}
	return nil
}

// walk writes what is in the directory, but for what stays behind and what is in the place of an extra file.
func (p *packer) walk(git bool) error {
	whole, err := filepath.Abs(p.dir)
	if err != nil {
		return err
	}
	return filepath.WalkDir(p.dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(p.dir, file)
		if err != nil || name == "." {
			return err
		}
		if slices.Contains(p.beside.without, filepath.Join(whole, name)) || d.Name() == ".git" && !git {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		for _, e := range p.beside.extra {
			slashed := filepath.ToSlash(name)
			if slashed == e.name && d.IsDir() {
				return fs.SkipDir
			}
			if slashed == e.name || strings.HasPrefix(e.name, slashed+"/") { // that one, or the directory that it lies in, is there already
				return nil
			}
		}
		return p.add(file, filepath.ToSlash(name), d)
	})
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
	if p.read > maxUnpacked {
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

// note counts a file, and remembers the largest for a message.
func (p *packer) note(e entry) {
	p.files++
	p.read += e.size
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
