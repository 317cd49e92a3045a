// Package swf reads the Standard Workload Format of the Parallel Workloads Archive, version 2: header comments
// ("; Key: Value"), then one job a line with eighteen numbers, of which -1 means unknown.
// https://www.cs.huji.ac.il/labs/parallel/workload/swf.html
package swf

import (
	"bytes"
	"io"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/trace"
)

const (
	number = iota
	submitted
	wait
	run
	allocated
	cpuTime
	usedMemory
	requestedProcessors
	requestedTime
	requestedMemory
	status
	user
	group
	executable
	queue
	partition
	preceding
	think
)

// Treatments of what archives and exports have that version 2 has not. A negative value other than -1 gets one that names
// its column. Who takes the memory of a file in which MemoryInBytes was met should read it with InBytes.
const (
	latin           = "comment that is not UTF-8: taken as Latin-1"
	surplusFields   = "more than 18 fields: the rest left out"
	negativeZero    = "negative zero: taken as 0"
	writtenFraction = "whole number written with a fraction of zeros: taken as whole"
	writtenUnknown  = "-1 written with a fraction: taken as unknown"
	MemoryInBytes   = "memory over 2 TiB a processor: taken as bytes instead of KiB"
)

// columns names the fields, for problems and treatments.
func columns() []string {
	return []string{
		"job number", "submit time", "wait time", "run time", "allocated processors", "average CPU time", "used memory",
		"requested processors", "requested time", "requested memory", "status", "user", "group", "executable", "queue", "partition",
		"preceding job", "think time",
	}
}

// Format of the file. Records are headers, and jobs: GPUs are the processors allocated, or else requested; memory is the
// job's, requested or else used, in KiB a processor, over all its processors. Average CPU time, executable, partition,
// preceding job and think time are checked and left out. Comments that are no "Key: Value", and blank lines, say nothing
// to a program and give no record.
//
// These departures are treated and counted: comments that are not UTF-8, more than 18 fields, negative zeros, negative values other than -1
// but for number and submission, whole numbers with a fraction of zeros, and memory in bytes where it can not be KiB.
func Format() trace.Format {
	return trace.Format{
		Name: "swf", Doc: "jobs in the Standard Workload Format of the Parallel Workloads Archive",
		Kinds: []trace.Kind{trace.Header, trace.Job},
		Open:  func(r io.Reader, file string) trace.Reader { return open(r, file, 1024) },
	}
}

// InBytes is the format with all memory in bytes a processor instead of KiB.
func InBytes() trace.Format {
	f := Format()
	f.Name, f.Doc = "swf-bytes", "the same with memory in bytes instead of KiB"
	f.Open = func(r io.Reader, file string) trace.Reader { return open(r, file, 1) }
	return f
}

// open reads memory in units of this many bytes.
func open(r io.Reader, file string, unit int64) trace.Reader {
	columns := columns()
	negative := make([]string, len(columns))
	for i, c := range columns {
		negative[i] = "negative " + c + ": taken as unknown"
	}
	return trace.OpenLines(r, file, func(l *trace.Line, r *trace.Record) bool {
		if bytes.HasPrefix(l.Text, []byte{';'}) {
			return header(l, r)
		}
		if len(bytes.Trim(l.Text, " \t")) == 0 { // published logs have some
			return false
		}
		surplus, ok := l.Leading(columns)
		if surplus > 0 {
			l.Treat(surplusFields)
		}
		if ok {
			job(line{l, negative}, r, unit)
		}
		return true
	})
}

func header(l *trace.Line, r *trace.Record) bool {
	colon := bytes.IndexByte(l.Text, ':')
	if colon < 0 {
		return false
	}
	key, value := trimmed(l, "header", 1, colon), trimmed(l, "header", colon+1, len(l.Text))
	if key.Empty() || bytes.ContainsAny(key.Bytes(), " \t") { // a sentence with a colon
		return false
	}
	r.Kind = trace.Header
	r.Header.Key, r.Header.Value = key.Prose(latin), value.Prose(latin)
	return true
}

func trimmed(l *trace.Line, name string, from, to int) trace.Field {
	for from < to && blank(l.Text[from]) {
		from++
	}
	for to > from && blank(l.Text[to-1]) {
		to--
	}
	return l.Field(name, from, to)
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

// line is a line of a job. negative has the treatment of a negative value of each column.
type line struct {
	*trace.Line
	negative []string
}

func job(l line, r *trace.Record, unit int64) {
	r.Kind = trace.Job
	r.At = l.seconds(submitted)
	r.Job = trace.UnknownJob()
	j := &r.Job
	j.ID = l.Column(number).ID()
	l.Column(number).Count()
	j.Duration, j.Requested = l.seconds(run), l.seconds(requestedTime)
	if delay := l.seconds(wait); delay != trace.Unknown && r.At != trace.Unknown {
		j.Start = r.At + delay
	}
	j.GPUs, j.Milli = l.either(allocated, requestedProcessors), 1000
	if memory := l.either(requestedMemory, usedMemory); j.GPUs != trace.Unknown && memory != trace.Unknown {
		const most = 1 << 31 // processors, and KiB of each: 2 TiB
		if memory > most && unit > 1 {
			l.Treat(MemoryInBytes)
			unit = 1
		}
		if j.GPUs > most || memory*unit > most<<10 {
			l.Column(requestedMemory).Fail("memory and processors that a machine can have")
			return
		}
		const mib = 1 << 20
		j.Memory = quantity.MulDiv(memory*unit, j.GPUs, mib)
	}
	for _, i := range [...]int{executable, partition, preceding} {
		l.count(i)
	}
	l.seconds(cpuTime)
	l.seconds(think)
	j.Status, j.Queue, j.User = l.name(status), l.name(queue), l.name(user)
	if name := l.name(group); j.Queue == "" {
		j.Queue = name
	}
}

// plain is the field of a number that is known and not negative; another number is treated by name and not known.
func (l line) plain(column int) (f trace.Field, known bool) {
	f = l.Column(column)
	if minusOne(f) {
		return f, false
	}
	rest, minus := f.Minus()
	whole, fraction := rest.NoFraction()
	switch {
	case !minus:
		return f, true
	case len(bytes.Trim(whole.Bytes(), "0")) == 0 && !whole.Empty():
		l.Treat(negativeZero)
		return whole, true
	case fraction && string(whole.Bytes()) == "1":
		l.Treat(writtenUnknown)
		return f, false
	}
	if column == submitted { // nothing is left of a job whose place in the log is not known
		f.Fail("seconds, 0 or more, or -1")
		return f, false
	}
	rest.Seconds() // it is a number at least
	l.Treat(l.negative[column])
	return f, false
}

func minusOne(f trace.Field) bool { return string(f.Bytes()) == "-1" }

func (l line) seconds(column int) time.Duration {
	if f, known := l.plain(column); known {
		return f.Seconds()
	}
	return trace.Unknown
}

func (l line) count(column int) int64 {
	if whole, known := l.whole(column); known {
		return whole.Count()
	}
	return trace.Unknown
}

// whole is the field of a count that is known, without a fraction of zeros.
func (l line) whole(column int) (trace.Field, bool) {
	f, known := l.plain(column)
	whole, fraction := f.NoFraction()
	if known && fraction {
		l.Treat(writtenFraction)
	}
	return whole, known
}

// either is the first of two counts that is known. Both must be well formed.
func (l line) either(first, second int) int64 {
	a, b := l.count(first), l.count(second)
	if a != trace.Unknown {
		return a
	}
	return b
}

// name is a number that only names.
func (l line) name(column int) string {
	whole, known := l.whole(column)
	if !known {
		return ""
	}
	whole.Count()
	return whole.Name()
}
