package live

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/history/record"
)

// Dir is a directory with a record: a file a day, in UTC, which only grow. One process at a time writes there.
type Dir struct {
	path string
	lock *os.File
	file *os.File
	day  string
	// size of the file of the day in whole looks. torn: behind it may stand a part of one.
	size int64
	torn bool
	// source is what was watched, by its name; empty if nothing was.
	source string
	// first and last are when somebody looked first and last; zero if nobody has.
	first, last time.Time
	// running are the jobs that the last file has as they run.
	running map[string]record.Job
	// rows of accounting that the last two files have, by rowKey, with when they were written.
	rows map[string]time.Time
}

const layout = "2006-01-02"

// Open makes the directory if it is not there, and takes it for this process. The error of one that another process has is of kind
// Conflict.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("--record: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--record: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = lock.Close() // nothing was written
		return nil, errkind.Errorf(errkind.Conflict, "%s is recorded by another process: give --record another directory, or --once "+
			"for an answer from what is there", path)
	}
	d := &Dir{path: path, lock: lock, running: map[string]record.Job{}, rows: map[string]time.Time{}}
	if err := d.recover(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return d, nil
}

// Close gives the directory back.
func (d *Dir) Close() error {
	var err error
	if d.file != nil {
		err = d.file.Close()
	}
	return errors.Join(err, d.lock.Close())
}

// names of the files, by day.
func names(path string) (list []string, err error) {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, errkind.Errorf(errkind.Unavailable, "read the record: %w", err)
	}
	for _, e := range entries {
		if is, err := filepath.Match("????-??-??.jsonl", e.Name()); err == nil && is {
			list = append(list, filepath.Join(path, e.Name()))
		}
	}
	return list, nil // in order: ReadDir sorts
}

// File of a record.
type File struct {
	Path string
	// size of the whole looks in it; negative: all of it.
	size int64
}

// Open begins to read it. What is written meanwhile is not read. Errors have kind Unavailable.
func (f File) Open() (io.ReadCloser, error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, errkind.Errorf(errkind.Unavailable, "read the record: %w", err)
	}
	if f.size < 0 {
		return file, nil
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(file, f.size), file}, nil
}

// Files are those of a record.
func Files(path string) (out []File, err error) {
	list, err := names(path)
	if err == nil && len(list) == 0 {
		return nil, errkind.Errorf(errkind.NotFound, "%s holds no record: sluice forecast --live makes one (%w)", path, fs.ErrNotExist)
	}
	for _, name := range list {
		if info, wrong := os.Stat(name); wrong != nil || info.Size() > 0 { // a crash may have left one without a line
			out = append(out, File{name, -1})
		}
	}
	return out, err
}

// Files are those of whole looks.
func (d *Dir) Files() ([]File, error) {
	out, err := Files(d.path)
	if n := len(out) - 1; err == nil && d.file != nil {
		out[n].size = d.size
	}
	return out, err
}

// Days of the record that are whole.
func (d *Dir) Days() int { return int(d.Length() / (24 * time.Hour)) }

// Length is from the first look to the last.
func (d *Dir) Length() time.Duration { return d.last.Sub(d.first) }

// Belongs says whether a source's record may go on here. The error of one that has another's is of kind Conflict.
func (d *Dir) Belongs(source string) error {
	if d.source != "" && d.source != source {
		return errkind.Errorf(errkind.Conflict, "%s has a record of %s, and this would be one of %s: give --record another directory",
			d.path, d.source, source)
	}
	return nil
}

// Path of the directory.
func (d *Dir) Path() string { return d.path }

// recover finds when the record began and what was so at its end.
func (d *Dir) recover() error {
	list, err := names(d.path)
	if err != nil || len(list) == 0 {
		return err
	}
	for i, name := range list {
		seen := false
		err := each(name, func(l *record.Line) bool {
			if l.Seen && d.first.IsZero() {
				d.first = time.Unix(l.At, 0)
			}
			seen = seen || l.Seen
			return i == len(list)-1 || !seen
		})
		if err != nil {
			return err
		}
		if seen {
			break
		}
	}
	for _, name := range list[max(0, len(list)-2):] {
		if err := each(name, func(l *record.Line) bool {
			for i := 1; i < len(l.Jobs); i++ {
				if key, ok := rowKey(strings.Split(l.Jobs[0], record.Delimiter), l.Jobs[i]); ok {
					d.rows[key] = time.Unix(l.At, 0)
				}
			}
			return true
		}); err != nil {
			return err
		}
	}
	for _, name := range slices.Backward(list) {
		clear(d.running)
		seen := false
		if err := each(name, func(l *record.Line) bool {
			if l.Begin != "" {
				d.source = l.Begin
				clear(d.running)
			}
			for _, j := range l.Running {
				d.running[j.ID] = j
			}
			for _, j := range l.Ended {
				delete(d.running, j.ID)
			}
			if l.Seen {
				seen, d.last = true, time.Unix(l.At, 0)
			}
			return true
		}); err != nil {
			return err
		}
		if seen {
			break
		}
	}
	return nil
}

// each visits the lines of a file that are whole, until visit returns false.
func each(name string, visit func(*record.Line) bool) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("read the record: %w", err)
	}
	defer f.Close()
	r := bufio.NewReader(f)
	for {
		text, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the record: %s: %w", name, err)
		}
		var l record.Line
		if json.Unmarshal(text, &l) == nil && !visit(&l) {
			return nil
		}
	}
}

// Turns says whether a look at that time begins a file or is the first of this process: then all there is must be written.
func (d *Dir) Turns(now time.Time) bool { return d.file == nil || now.UTC().Format(layout) != d.day }

// most of a line's text in bytes, roughly: readers keep 256 KiB of one.
const most = 64 << 10

// Append writes what a look found.
func (d *Dir) Append(now time.Time, lines []record.Line) error {
	if d.Turns(now) {
		if err := d.next(now.UTC().Format(layout)); err != nil {
			return fmt.Errorf("write the record: %w", err)
		}
		defer func() {
			if d.torn { // the next look begins the file in its place
				_, d.file = d.file.Close(), nil
			}
		}()
	}
	var text bytes.Buffer
	if d.torn {
		text.WriteByte('\n') // what stands before is no line
	}
	for _, l := range lines {
		for _, piece := range split(&l) {
			piece.At = now.Unix()
			b, err := json.Marshal(piece)
			if err != nil {
				return err
			}
			text.Write(append(b, '\n'))
		}
	}
	d.torn = true
	if _, err := d.file.Write(text.Bytes()); err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	if err := d.file.Sync(); err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	info, err := d.file.Stat()
	if err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	d.size, d.torn, d.last = info.Size(), false, now
	if d.first.IsZero() {
		d.first = now
	}
	return nil
}

// next opens the file of a day.
func (d *Dir) next(day string) error {
	f, err := os.OpenFile(filepath.Join(d.path, day+".jsonl"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	last := []byte{'\n'}
	if info.Size() > 0 {
		if _, err := f.ReadAt(last, info.Size()-1); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if d.file != nil {
		_ = d.file.Close() // each look was synced
	}
	d.file, d.day, d.size, d.torn = f, day, info.Size(), last[0] != '\n'
	return nil
}

// split makes lines that are not too long. Rows of jobs have a header, which each line needs.
func split(l *record.Line) (out []record.Line) {
	rest := *l
	for len(rest.Jobs) > 1 {
		n, size := 1, len(rest.Jobs[0])
		for n < len(rest.Jobs) && (n == 1 || size < most) {
			size += 2 * len(rest.Jobs[n])
			n++
		}
		out = append(out, record.Line{Jobs: rest.Jobs[:n:n]})
		rest.Jobs = append([]string{rest.Jobs[0]}, rest.Jobs[n:]...)
	}
	rest.Jobs = nil
	for len(rest.Nodes) > 0 {
		n, size := 0, 0
		for n < len(rest.Nodes) && size < most {
			size += 2 * len(rest.Nodes[n])
			n++
		}
		out = append(out, record.Line{Nodes: rest.Nodes[:n]})
		rest.Nodes = rest.Nodes[n:]
	}
	for piece := range slices.Chunk(rest.Running, 1000) {
		out = append(out, record.Line{Running: piece})
	}
	for piece := range slices.Chunk(rest.Ended, 1000) {
		out = append(out, record.Line{Ended: piece})
	}
	for piece := range slices.Chunk(rest.Pods, 60) { // whose names may have a thousand bytes in all
		out = append(out, record.Line{Pods: piece})
	}
	for piece := range slices.Chunk(rest.Hosts, 60) {
		out = append(out, record.Line{Hosts: piece})
	}
	for piece := range slices.Chunk(rest.Left, 1000) {
		out = append(out, record.Line{Left: piece})
	}
	rest.Running, rest.Ended, rest.Pods, rest.Hosts, rest.Left = nil, nil, nil, nil, nil
	if rest.Begin != "" || rest.Seen || rest.Gone != nil || rest.Reservations != nil {
		out = append(out, rest)
	}
	return out
}
