package local

import (
	"errors"
	"fmt"
	"io"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/disk"
)

// Report is what Verify found.
type Report struct {
	// Holder is the process that has the journal open, 0 if none. While one writes, an unfinished batch at the end is
	// usual.
	Holder int
	// Last is the last record that stands, and Snapshot what the snapshot covers (zero if there is none).
	Last, Snapshot journal.Position
	// Records after the snapshot, in Segments files; Bytes of all files.
	Records  uint64
	Segments int
	Bytes    int64
	// Notes are oddities without a loss, which the next start mends: an unfinished write, left-over files, a head that is
	// behind or has one bad copy.
	Notes []string
	// Problems are damage to what was synced; with any of them the journal does not open.
	Problems []Problem
}

// Verify reads the whole journal in dir and changes nothing, not even when it is damaged or open in another process. The
// error is of the file system, or of kind Unsupported; damage is in the report.
func Verify(dir string) (Report, error) { return verify(disk.OS(dir)) }

// AcceptEnd writes the head anew for a journal whose head is missing or can't be read, after a person has seen that record
// last is where it ended. Errors: Invalid (the head is there, or last is not the last record there is), Conflict (a process
// has the journal open), Corrupt (there is other damage; nothing was changed), or of the file system.
func AcceptEnd(dir string, last uint64) error { return acceptEndOf(disk.OS(dir), last) }

func acceptEndOf(d disk.FS, last uint64) (err error) {
	lock, err := d.Lock()
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	report, err := verify(d)
	if err != nil {
		return err
	}
	var others []Problem
	lost := false
	for _, p := range report.Problems {
		if p.Do == acceptEnd {
			lost = true
		} else {
			others = append(others, p)
		}
	}
	switch {
	case len(others) > 0:
		return corrupt(d, others)
	case !lost:
		return errkind.Errorf(errkind.Invalid, "journal %s: its head is there and says where it ended: there is nothing to accept", d)
	case report.Last.Seq != last:
		return errkind.Errorf(errkind.Invalid, "journal %s ends with record %d, not with %d: look again with `sluice journal verify`; "+
			"nothing was changed", d, report.Last.Seq, last)
	}
	return disk.Put(d, headName, headTemp, headContent(report.Last))
}

func verify(d disk.FS) (Report, error) {
	return dump(d, nil, func(journal.Position, []byte) error { return nil })
}

func dump(d disk.FS, snapshot func(io.Reader) error, record func(journal.Position, []byte) error) (Report, error) {
	l, err := survey(d)
	if err != nil {
		return Report{}, err
	}
	if l.state != "" {
		if len(l.problems) > 0 {
			snapshot = nil
		}
		bad, e := l.readState(d, snapshot)
		if e != nil {
			return Report{}, e
		}
		l.problems = append(l.problems, bad...)
	}
	r, err := l.read(d, func(_ segment, _ int64, records []entry) error {
		for _, e := range records {
			if e := record(e.at, e.data); e != nil {
				return e
			}
		}
		return nil
	})
	if err != nil {
		return Report{}, err
	}
	out := Report{
		Holder: d.Holder(), Last: r.at, Snapshot: l.stateAt, Records: r.at.Seq - l.stateAt.Seq,
		Segments: len(l.segments), Bytes: l.bytes, Problems: r.problems,
	}
	for _, name := range l.leftovers {
		out.note("%s is left over and will be removed", name)
	}
	if r.dropped != nil && len(r.problems) == 0 {
		out.note("%s, byte %d, record %d: an unfinished write of %d bytes that nobody was promised will be dropped (%s)",
			l.lastName(), r.dropped.off, r.at.Seq+1, r.droppedBytes, r.dropped.why)
	}
	switch {
	case l.fresh():
		out.note("there is no journal yet")
	case len(l.headBad) == 1:
		out.note("one copy in %s is damaged (%v) and will be written again", headName, l.headBad[0])
	case len(r.problems) == 0 && l.headAt.Seq < r.at.Seq:
		out.note("%s is behind by %d records, as after a power cut", headName, r.at.Seq-l.headAt.Seq)
	}
	return out, nil
}

func (r *Report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}
