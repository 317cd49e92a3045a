// Package local is the journal kind of one machine: a directory of append-only segments, each batch of records one
// frame with its own checksums and the digest chained over all records so far, and the latest snapshot in a file of its
// own (docs/adr/0003-journal.md has the format and why). It must not know what records and states mean, and it never
// repairs anything but what nobody was promised: an unfinished write at the very end is dropped and reported; all other
// damage is named and refused.
//
// Files: 00000000000000000001.seg (named after the first record in it), 00000000000000000041.snap (named after the last
// record it covers), HEAD (the last acknowledged position), LOCK (the process that has it open), *.tmp (being made).
//
// One goroutine at a time may use a Journal, and another the snapshot that is being written. Two processes never do: the
// lock goes with the process.
package local

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/disk"
)

// Options of a journal. The zero value is the default of all.
type Options struct {
	// SegmentBytes is the size, in bytes, from which on a segment is closed and a new one begun; 0 is 16 MiB.
	SegmentBytes int64
	// Notice gets what was mended without a loss: an unfinished write that was dropped, a head that was missing. The text is one line for
	// people. nil: no notices.
	Notice func(text string)
}

const defaultSegmentBytes = 16 << 20

// opened is one open journal. It implements journal.Journal.
type opened struct {
	d    disk.FS
	o    Options
	lock io.Closer

	layout   *layout
	replayed bool

	// mu guards what follows from when it is replayed: a snapshot takes its place in it from its own goroutine.
	mu sync.Mutex
	// broken is why the journal can't be used any more.
	broken error
	last   journal.Position
	// stateName is the snapshot that counts, empty if there is none, of stateSize bytes.
	stateName string
	stateAt   journal.Position
	stateSize int64
	// snapshotting: another one is being written.
	snapshotting bool
	// tail is the segment that is written, and off how many of its bytes count; closed are those before it.
	tail     disk.File
	tailName string
	off      int64
	closed   []closed
	head     head
	headSize int64
	marks    []mark
	buf      []byte
}

// closed is a segment that is not written any more.
type closed struct {
	first uint64
	size  int64
}

// Open opens the journal in the directory dir and makes it if there is none. Errors are of kind Conflict (another process
// has it), Unsupported (written by a newer Sluice), Corrupt (damaged; all that can be seen without reading the records
// is named) or unclassified ones of the file system. In all of them nothing was changed.
func Open(dir string, o Options) (journal.Journal, error) { return OpenOn(disk.OS(dir), o) }

// OpenOn is Open on a given file system.
func OpenOn(d disk.FS, o Options) (journal.Journal, error) {
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = defaultSegmentBytes
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	lock, err := d.Lock()
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	l, err := survey(d)
	if err == nil && len(l.problems) > 0 {
		err = problems(d)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &opened{d: d, o: o, lock: lock, layout: l}, nil
}

// problems reads everything and makes one error of all that is wrong.
func problems(d disk.FS) error {
	report, err := verify(d)
	if err != nil {
		return err
	}
	return corrupt(d, report.Problems)
}

// Replay implements journal.Journal. Only when all of the journal is proven is anything changed: files that a crash left
// over are removed, and an unfinished write is cut off.
func (j *opened) Replay(snapshot func(io.Reader) error, record func(journal.Position, []byte) error) (journal.Position, error) {
	if j.replayed || j.broken != nil {
		return journal.Position{}, errkind.Errorf(errkind.Invalid, "journal %s: replayed already", j.d)
	}
	j.broken = errkind.Errorf(errkind.Invalid, "journal %s: its replay did not come to its end", j.d)
	l := j.layout
	if l.state != "" {
		bad, err := l.readState(j.d, snapshot)
		if err != nil {
			return journal.Position{}, err
		}
		if len(bad) > 0 {
			return journal.Position{}, problems(j.d)
		}
	}
	r, err := l.read(j.d, func(s segment, off int64, records []entry) error {
		j.mark(s.name, off, records)
		for _, e := range records {
			if err := record(e.at, e.data); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return journal.Position{}, err
	}
	if len(r.problems) > 0 {
		return journal.Position{}, problems(j.d)
	}
	if err := j.settle(r); err != nil {
		return journal.Position{}, fmt.Errorf("journal %s: cannot make it ready for writing: %w", j.d, kindOf(err))
	}
	j.replayed, j.broken = true, nil
	return j.last, nil
}

// settle makes a proven journal ready for appending.
func (j *opened) settle(r reading) error {
	l := j.layout
	j.last, j.off = r.at, r.off
	j.stateName, j.stateAt, j.stateSize = l.state, l.stateAt, l.sizes[l.state]
	j.headSize = l.sizes[headName]
	// What was read may never have been synced by a process that died; what is built on it, or removed because of it, must
	// not stand on sand.
	if err := j.d.Sync(); err != nil {
		return err
	}
	if err := j.drop(l.leftovers); err != nil {
		return err
	}
	if l.fresh() {
		if err := j.openHead(); err != nil {
			return err
		}
		return j.begin()
	}
	j.tailName = l.lastName()
	f, err := j.d.Open(j.tailName)
	if err != nil {
		return err
	}
	j.tail = f
	for _, s := range l.segments[:len(l.segments)-1] {
		j.closed = append(j.closed, closed{s.before.Seq + 1, l.sizes[s.name]})
	}
	if r.dropped != nil {
		if err := f.Truncate(j.off); err != nil {
			return err
		}
		j.o.Notice(fmt.Sprintf("journal %s: %s, byte %d, record %d: dropped an unfinished write of %d bytes that nobody was promised (%s)",
			j.d, j.tailName, r.dropped.off, j.last.Seq+1, r.droppedBytes, r.dropped.why))
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return j.openHead()
}

// openHead opens the head, or makes it, and brings it up to date.
func (j *opened) openHead() error {
	l := j.layout
	if !l.headThere { // the journal is new
		if err := disk.Put(j.d, headName, headTemp, headContent(j.last)); err != nil {
			return err
		}
		j.headSize = headSize
	}
	f, err := j.d.Open(headName)
	if err != nil {
		return err
	}
	j.head = head{f, l.headNewest}
	if len(l.headBad) > 0 {
		j.o.Notice(fmt.Sprintf("journal %s: %s was damaged (%v) and was written again at record %d; the journal itself is whole", j.d,
			headName, errors.Join(l.headBad...), j.last.Seq))
	}
	if !l.headThere || (len(l.headBad) == 0 && l.headAt == j.last) {
		return nil
	}
	for range 2 { // one copy after the other, so that a crash leaves one
		if err := j.head.set(j.last); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// Size implements journal.Journal.
func (j *opened) Size() (bytes int64, records uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	bytes = j.headSize + j.stateSize + j.off
	for _, c := range j.closed {
		bytes += c.size
	}
	return bytes, j.last.Seq - j.stateAt.Seq
}

// Close implements journal.Journal.
func (j *opened) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var errs []error
	if j.head.f != nil {
		if j.broken == nil {
			errs = append(errs, j.head.f.Sync())
		}
		errs = append(errs, j.head.f.Close())
	}
	if j.tail != nil {
		errs = append(errs, j.tail.Close())
	}
	j.head.f, j.tail = nil, nil
	if j.lock != nil {
		errs = append(errs, j.lock.Close())
		j.lock = nil
	}
	j.broken = errkind.Errorf(errkind.Invalid, "journal %s: closed already", j.d)
	return errors.Join(errs...)
}

// passes reports whether an error of the file system is temporary: the journal can go on once there is room, or a file descriptor.
func passes(err error) bool { return disk.Full(err) || disk.Starved(err) }

// kindOf classifies an error of the file system.
func kindOf(err error) error {
	switch {
	case disk.Full(err):
		return errkind.Errorf(errkind.Exhausted, "%w: make room on that disk", err)
	case disk.Starved(err):
		return errkind.Errorf(errkind.Exhausted, "%w: close what holds files open, or raise the limit on open files (ulimit -n, "+
			"LimitNOFILE=)", err)
	}
	return err
}

// mark is a place from which Check can read on: the position before a batch, and where that batch stands. There is one
// for about every markEvery records, so a million records cost some ten kilobytes of memory instead of 32 MB of digests.
type mark struct {
	before journal.Position
	name   string
	off    int64
}
