package local

import (
	"errors"
	"fmt"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/disk"
)

// layout is what a directory holds, as far as names and headers tell. Making one changes nothing.
type layout struct {
	// segments that count, in order; leftovers are files that a crash kept from being removed.
	segments  []segment
	leftovers []string
	// state is the name of the latest snapshot, empty if there is none; stateHead its header, stateAt what it covers.
	state     string
	stateHead stateHeader
	stateAt   journal.Position
	// headAt is the head's position. headKnown: the file is there and one copy can be read. headBad are the copies that
	// cannot.
	headAt     journal.Position
	headThere  bool
	headKnown  bool
	headNewest int
	headBad    []error
	// sizes of all files that were looked at, and their sum.
	sizes    map[string]int64
	bytes    int64
	problems []Problem
}

// segment is one segment file: the position before its first record.
type segment struct {
	name   string
	before journal.Position
	// damaged: the header could not be read, and before is only known by name.
	damaged bool
}

// survey reads names, headers and the head. Damage is collected; an error is one of the file system, or Unsupported if a
// file has a version this build does not know.
func survey(d disk.FS) (*layout, error) {
	names, err := d.List()
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", d, err)
	}
	l := &layout{sizes: map[string]int64{}}
	var newer []error
	note := func(name string, err error, do string) {
		if _, ok := errors.AsType[versionError](err); ok {
			newer = append(newer, fmt.Errorf("%s: %w", name, err))
			return
		}
		l.problems = append(l.problems, Problem{File: name, What: "its header is damaged: " + err.Error(), Do: do})
	}
	for _, name := range names {
		number, isState := parseName(name, stateSuffix)
		first, isSegment := parseName(name, segmentSuffix)
		switch {
		case isState:
			b, err := l.header(d, name, stateHeaderSize)
			if err != nil {
				return nil, err
			}
			h, err := parseStateHeader(b)
			if err == nil && h.at.Seq != number {
				err = fmt.Errorf("it covers record %d, which is not its name", h.at.Seq)
			}
			if err != nil {
				note(name, err, restore)
				h.at.Seq = number
			}
			if l.state != "" {
				l.leftovers = append(l.leftovers, l.state)
			}
			l.state, l.stateHead, l.stateAt = name, h, h.at // names sort by number: the last counts
		case isSegment:
			b, err := l.header(d, name, segmentHeaderSize)
			if err != nil {
				return nil, err
			}
			before, err := parseSegmentHeader(b)
			if err == nil && before.Seq+1 != first {
				err = fmt.Errorf("it starts with record %d, which is not its name", before.Seq+1)
			}
			if err != nil {
				note(name, err, restore)
				before = journal.Position{Seq: first - 1}
			}
			l.segments = append(l.segments, segment{name, before, err != nil})
		case name == headName:
			l.headThere = true
			b, err := l.header(d, name, headSize)
			if err != nil {
				return nil, err
			}
			l.headAt, l.headNewest, l.headBad = parseHead(b)
			l.headKnown = len(l.headBad) < 2
			for _, err := range l.headBad {
				if _, ok := errors.AsType[versionError](err); ok {
					newer = append(newer, fmt.Errorf("%s: %w", name, err))
				}
			}
		case name == segmentTemp, name == stateTemp, name == headTemp:
			l.leftovers = append(l.leftovers, name)
		}
	}
	if len(newer) > 0 {
		return nil, errkind.Errorf(errkind.Unsupported,
			"journal %s: %w: nothing was changed; use the Sluice version that wrote it, or a newer one", d, errors.Join(newer...))
	}
	l.arrange()
	return l, nil
}

// header reads the first bytes of a file and counts its size.
func (l *layout) header(d disk.FS, name string, size int) ([]byte, error) {
	f, err := d.View(name)
	if err != nil {
		return nil, fmt.Errorf("journal %s: cannot open %s: %w", d, name, err)
	}
	defer f.Close()
	whole, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("journal %s: %s: %w", d, name, err)
	}
	l.sizes[name] = whole
	l.bytes += whole
	b := make([]byte, min(int64(size), whole))
	if n, err := f.ReadAt(b, 0); n < len(b) {
		return nil, fmt.Errorf("journal %s: cannot read %s: %w", d, name, err)
	}
	return b, nil
}

// arrange separates segments that count from those that a snapshot covers, and finds missing ones as far as names show.
func (l *layout) arrange() {
	from := l.stateAt.Seq + 1
	for len(l.segments) > 0 && l.segments[0].before.Seq+1 < from {
		// A snapshot starts a new segment first, so one that starts below it ends there too.
		l.leftovers = append(l.leftovers, l.segments[0].name)
		l.segments = l.segments[1:]
	}
	if l.fresh() {
		return
	}
	switch {
	case len(l.segments) == 0 || l.segments[0].before.Seq+1 != from:
		to := "the end"
		if len(l.segments) > 0 {
			to = fmt.Sprintf("%d", l.segments[0].before.Seq)
		}
		l.problems = append(l.problems, Problem{File: segmentName(from), Seq: from, What: "the segment is missing, and with it the " +
			"records up to " + to, Do: restore})
	case l.segments[0].before.Digest != l.stateAt.Digest && len(l.problems) == 0:
		l.problems = append(l.problems, Problem{File: l.segments[0].name, Seq: from,
			What: "the segment does not follow from the snapshot " + l.state, Do: restore})
	}
	// The head is made before the first segment, and one copy is always whole. Without it records cut off behind a batch
	// would not be missed by anybody.
	switch {
	case !l.headThere:
		l.problems = append(l.problems, Problem{File: headName, What: "it is missing, and only it says where the journal ended",
			Do: acceptEnd})
	case !l.headKnown:
		l.problems = append(l.problems, Problem{File: headName, What: "neither copy in it can be read, and only it says where the " +
			"journal ended: " + l.headBad[0].Error(), Do: acceptEnd})
	}
}

// fresh says that the directory holds no journal yet, or one whose making was cut short.
func (l *layout) fresh() bool {
	return len(l.segments) == 0 && l.state == "" && l.headAt.Seq == 0 && len(l.problems) == 0
}
