package local

import (
	"fmt"

	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/disk"
)

// reading is what came of reading all segments.
type reading struct {
	// at is the last record that stands, off the end of its batch in the last segment.
	at  journal.Position
	off int64
	// dropped is an unfinished write at the end of the last segment, of droppedBytes bytes; nil if there is none.
	dropped      *stop
	droppedBytes int64
	problems     []Problem
}

// read reads all segments. emit gets every proven batch up to the first problem, and may not keep it; reading goes on behind it
// to find the others. An error is emit's or the file system's. Nothing is changed.
func (l *layout) read(d disk.FS, emit func(s segment, off int64, records []entry) error) (reading, error) {
	r := reading{at: l.stateAt, off: segmentHeaderSize, problems: l.problems}
	var room []byte
	headDigest, headSeen := l.stateAt.Digest, l.headAt.Seq == l.stateAt.Seq
	for i, s := range l.segments {
		last := i == len(l.segments)-1
		if i > 0 && !s.damaged && s.before != r.at {
			r.problems = append(r.problems, gap(l.segments[i-1].name, r.off, r.at, s))
		}
		if !s.damaged {
			r.at = s.before
		}
		b, err := disk.ReadAll(d, s.name, room)
		if err != nil {
			return r, fmt.Errorf("journal %s: cannot read %s: %w", d, s.name, err)
		}
		room = b
		var end *stop
		r.off, r.at, end, err = scan(b, segmentHeaderSize, r.at, func(off int64, records []entry) error {
			for _, e := range records {
				if e.at.Seq == l.headAt.Seq {
					headDigest, headSeen = e.at.Digest, true
				}
			}
			if len(r.problems) > 0 {
				return nil
			}
			return emit(s, off, records)
		})
		if err != nil {
			return r, err
		}
		if end == nil {
			continue
		}
		why := ""
		switch {
		case !end.unfinished || !last:
			why = end.why
		default:
			if why = damagedTail(b, end, r.at); why != "" {
				why = end.why + "; " + why
			}
		}
		if why == "" {
			r.dropped, r.droppedBytes = end, int64(len(b))-end.off
			continue
		}
		r.problems = append(r.problems, Problem{File: s.name, Offset: end.off, Seq: r.at.Seq + 1, What: why, Do: restore})
	}
	if len(r.problems) == 0 && l.headKnown {
		switch {
		case l.headAt.Seq > r.at.Seq:
			how := "the journal ends"
			if r.dropped != nil {
				how = r.dropped.why
			}
			r.problems = append(r.problems, Problem{File: l.lastName(), Offset: r.off, Seq: r.at.Seq + 1,
				What: fmt.Sprintf("%s, and the head says that record %d was acknowledged: %d records are missing", how, l.headAt.Seq,
					l.headAt.Seq-r.at.Seq), Do: restore})
		case headSeen && headDigest != l.headAt.Digest:
			r.problems = append(r.problems, Problem{File: headName, Seq: l.headAt.Seq,
				What: "the head has another digest than the journal there: they are of two journals", Do: restore})
		}
	}
	return r, nil
}

func (l *layout) lastName() string {
	if len(l.segments) == 0 {
		return segmentName(l.stateAt.Seq + 1)
	}
	return l.segments[len(l.segments)-1].name
}

// gap is the problem of a segment next that does not start where the one before it ends.
func gap(name string, off int64, at journal.Position, next segment) Problem {
	p := Problem{File: name, Offset: off, Seq: at.Seq + 1, Do: restore}
	switch {
	case next.before.Seq > at.Seq:
		p.What = fmt.Sprintf("it ends here, and %s starts with record %d: %d records are missing", next.name, next.before.Seq+1,
			next.before.Seq-at.Seq)
	case next.before.Seq < at.Seq:
		p.What = fmt.Sprintf("%s starts with record %d, which stands in here already", next.name, next.before.Seq+1)
	default:
		p.What = next.name + " does not follow from it: they are of two journals"
	}
	return p
}
