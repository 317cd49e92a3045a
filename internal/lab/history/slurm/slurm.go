// Package slurm reads what Slurm has written down: its accounting (sacct) as people dump it, with a delimiter or in columns of a
// fixed width, and what is known of nodes and reservations (sinfo, scontrol, sacctmgr show event). A line that can't be read is counted
// and named, and the rest counts.
package slurm

import (
	"bytes"
	"io"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
)

// Format of the files.
func Format() history.Format {
	return history.Format{
		Name: "slurm",
		Doc: "Slurm's accounting (sacct -a -D -P), with sinfo, scontrol show node, scontrol show reservation, sacctmgr show event if " +
			"there are such",
		Is:   func(head []byte, _ string) bool { return is(head) },
		Read: Read,
	}
}

// is looks for a line of the first few that begins a part that is known.
func is(head []byte) bool {
	n := 0
	for line := range bytes.Lines(head) {
		line = bytes.TrimRight(line, "\r\n")
		if begins(line) != nil {
			return true
		}
		if n++; n > 20 {
			break
		}
	}
	return false
}

// Headless says whether the first line looks like a row of sacct -P: a job's number, and fields behind it.
func Headless(head []byte) bool {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	digits := len(line) - len(bytes.TrimLeft(line, "0123456789"))
	const fields = 5
	for _, delimiter := range []string{"\x1f", "|"} {
		if bytes.Count(line, []byte(delimiter)) >= fields {
			return digits > 0 && bytes.ContainsAny(line[digits:digits+1], delimiter+"._+")
		}
	}
	return false
}

// begins is the reader of what a line begins, nil if it begins nothing that is known.
func begins(line []byte) func(*file) part {
	switch {
	case bytes.HasPrefix(line, []byte("NodeName=")):
		return nodeRecords
	case bytes.HasPrefix(line, []byte("ReservationName=")):
		return reservations
	}
	if h := header(line); h != nil {
		switch {
		case h.has(colJobIDRaw) || h.has(colJobID):
			return func(f *file) part { return newAccounting(f, h) }
		case h.has(colNodeName) && h.has(colTimeStart):
			return func(f *file) part { return &events{file: f, sheet: h} }
		case h.has(colNodes) && (h.has(colGres) || h.has(colNodeState) || h.has(colReason)):
			return func(f *file) part { return &nodeTable{file: f, sheet: h} }
		}
	}
	return nil
}

const (
	notRead     = "a line that is no part of Slurm's output"
	notReadDone = "left out"
)

// Read puts a file into the book.
func Read(b *history.Book, r io.Reader, name string) error {
	lines := NewReader(b)
	err := history.EachLine(b, r, name, lines.Line)
	lines.Close()
	return err
}

// Reader reads what Slurm's commands printed, line by line.
type Reader struct{ file }

// NewReader reads into a book.
func NewReader(b *history.Book) *Reader {
	return &Reader{file{book: b, clock: clock{book: b}, hosts: map[string][]int32{}, loads: map[string]load{}}}
}

// UTC says that clocks without an offset are in UTC, whatever the book's zone is.
func (f *Reader) UTC() { f.clock.zone = time.UTC }

// Line reads the next line, which stands there in a file.
func (f *Reader) Line(line []byte, at history.At) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	if f.mayBegin(line) {
		if make := begins(line); make != nil {
			f.Close()
			f.current = make(&f.file)
			if table, ok := f.current.(interface{ titled() }); ok {
				table.titled()
				return
			}
		}
	}
	if f.current == nil {
		f.book.Odd(notRead, notReadDone, at)
		return
	}
	f.current.line(line, at)
}

// Close is called behind the last line.
func (f *Reader) Close() {
	if f.current != nil {
		f.current.done()
	}
	f.current = nil
}

// During reads what scontrol prints of a node or a reservation and was so from then until then: a state counts for this time alone, and
// of a reservation what lies before its end.
func (f *Reader) During(line []byte, from, until quantity.Instant, at history.At) {
	f.Close()
	f.from, f.until = from, until
	f.Line(line, at)
	f.Close()
	f.until = 0
}

// Ended says that a job (JobIDRaw) which began then was gone from the queue at end, whatever accounting says of it.
func (f *Reader) Ended(job string, start, end quantity.Instant) bool {
	n, ok := jobNumber([]byte(job))
	if ok {
		f.book.Batch(history.BatchRow{Raw: n, Start: start, End: end})
	}
	return ok
}

// mayBegin says cheaply whether a line may begin a part: rows of jobs begin with a number mostly.
func (f *file) mayBegin(line []byte) bool {
	if f.current == nil {
		return true
	}
	c := bytes.TrimLeft(line, " ")[0]
	if _, ok := f.current.(*records); ok {
		return c == 'N' || c == 'R' || c == 'J'
	}
	return c >= 'A' && c <= 'Z'
}
