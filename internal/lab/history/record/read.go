package record

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
	"sluice.dev/sluice/internal/lab/history/slurm"
)

const (
	badLine     = "a line of a record that is none"
	badLineDone = "left out: a crash cuts off the last line that is written"
	badJob      = "a job of a queue that can't be read"
)

// Format of a record's files.
func Format() history.Format {
	return history.Format{
		Name: "record",
		Doc:  "what sluice forecast --live keeps of a cluster, a file a day",
		Is: func(head []byte, _ string) bool { // the first line may be cut off
			return bytes.HasPrefix(head, []byte(`{"at":`)) || bytes.Contains(head, []byte("\n{\"at\":"))
		},
		Read: Read,
	}
}

// Read puts a file of a record into the book.
func Read(b *history.Book, r io.Reader, name string) error {
	x := &reader{book: b, nodes: map[string]state{}, reserved: map[string]state{}, open: map[string]row{}, over: map[string]bool{},
		kube: present{book: b, pods: map[string]bool{}, hosts: map[string]since{}}}
	for _, part := range []**slurm.Reader{&x.rows, &x.states} {
		*part = slurm.NewReader(b)
		(*part).UTC()
	}
	err := history.EachLine(b, r, name, x.line)
	x.forget(x.lasts())
	x.kube.done(x.lasts())
	for _, key := range slices.Sorted(maps.Keys(x.open)) {
		x.rows.Line([]byte(x.open[key].text), x.open[key].at)
	}
	x.rows.Close()
	b.Single("") // every run is in the record, also of requeued jobs
	return err
}

// state is what a line says of a node or a reservation, since when, and where the line stands.
type state struct {
	text  string
	since quantity.Instant
	at    history.At
}

type row struct {
	text string
	at   history.At
}

// reader is one file while it is read.
type reader struct {
	book *history.Book
	// rows reads jobs, states nodes and reservations.
	rows, states *slurm.Reader
	every        time.Duration
	// seen is the last look, 0 before the first.
	seen quantity.Instant
	// nodes by name and reservations by their text are what is so now.
	nodes, reserved map[string]state
	// header of the rows, with its columns. open are the last rows of runs without an end, over the runs that have one, by what tells runs
	// apart.
	header string
	column map[string]int
	open   map[string]row
	over   map[string]bool
	// kube is what the file says of Kubernetes.
	kube present
}

func (x *reader) line(text []byte, at history.At) {
	if len(bytes.TrimSpace(text)) == 0 {
		return
	}
	var l Line
	if err := json.Unmarshal(text, &l); err != nil || l.At <= 0 || l.At > latest {
		x.book.Odd(badLine, badLineDone, at)
		return
	}
	now := instant(l.At)
	if l.Begin != "" {
		x.forget(min(now, x.lasts()))
		x.kube.forget(min(now, x.lasts()))
		if x.seen == 0 && l.After > 0 && l.After < l.At {
			x.seen = instant(l.After)
			x.kube.seen = x.seen
		}
		x.every = time.Duration(min(max(l.Every, 1), 86400)) * time.Second
	}
	x.kube.take(&l, now, at)
	x.jobs(l.Jobs, at)
	for _, j := range l.Ended {
		if j.Start <= 0 || j.Start > l.At || !x.rows.Ended(j.ID, instant(j.Start), now) {
			x.book.Odd(badJob, leftOut, at)
		}
	}
	for _, name := range l.Gone {
		x.ends(x.nodes, name, now)
	}
	for _, text := range l.Nodes {
		x.begins(x.nodes, nodeName(text), state{text, now, at})
	}
	if l.Reservations != nil {
		for text := range x.reserved { //sluice:sorted a book does not keep the order
			if !slices.Contains(*l.Reservations, text) {
				x.ends(x.reserved, text, now)
			}
		}
		for _, text := range *l.Reservations {
			if _, is := x.reserved[text]; !is {
				x.reserved[text] = state{text, now, at}
			}
		}
	}
	if l.Seen {
		if x.seen != 0 && now >= x.seen && now.Sub(x.seen) <= Missed*x.every {
			x.book.Watch(x.seen, now)
		} else {
			x.book.Watch(now, now)
		}
		x.seen = now
		x.kube.looked(now, x.every)
	}
}

// nodeName is the name of a node of which a line of scontrol tells.
func nodeName(line string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(line, "NodeName="), " ")
	return name
}

// lasts is until when counts what was seen last: the next file begins with the next look.
func (x *reader) lasts() quantity.Instant { return x.seen.Add(Missed * x.every) }

// begins ends what was so of a name until now, and begins something else.
func (x *reader) begins(of map[string]state, name string, s state) {
	x.ends(of, name, s.since)
	of[name] = s
}

func (x *reader) ends(of map[string]state, name string, until quantity.Instant) {
	if s, is := of[name]; is {
		x.states.During([]byte(s.text), s.since, max(until, s.since), s.at)
		delete(of, name)
	}
}

// forget ends all that is so now.
func (x *reader) forget(until quantity.Instant) {
	for _, of := range []map[string]state{x.nodes, x.reserved} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			x.ends(of, name, until)
		}
	}
}

// jobs takes rows of sacct. Of a run that goes on each dump has a row; the last one counts, if none has an end.
func (x *reader) jobs(rows []string, at history.At) {
	if len(rows) == 0 {
		return
	}
	if rows[0] != x.header {
		x.header, x.column = rows[0], map[string]int{}
		for i, name := range strings.Split(rows[0], Delimiter) {
			x.column[name] = i
		}
		for _, key := range slices.Sorted(maps.Keys(x.open)) { // they are rows below the header before
			x.rows.Line([]byte(x.open[key].text), x.open[key].at)
		}
		clear(x.open)
		x.rows.Line([]byte(rows[0]), at)
	}
	for _, text := range rows[1:] {
		fields := strings.Split(text, Delimiter)
		key := x.field(fields, "JobIDRaw") + " " + x.field(fields, "Submit") + " " + x.field(fields, "DBIndex")
		switch end := x.field(fields, "End"); {
		case end != "Unknown" && end != "":
			x.rows.Line([]byte(text), at)
			x.over[key] = true
			delete(x.open, key)
		case !x.over[key]:
			x.open[key] = row{text, at}
		}
	}
}

// Delimiter stands between the fields of a row.
const Delimiter = "\x1f"

func (x *reader) field(fields []string, name string) string {
	if i, ok := x.column[name]; ok && i < len(fields) {
		return fields[i]
	}
	return ""
}
