// Package swf reads the Standard Workload Format of the Parallel Workloads Archive, version 2: header comments
// ("; Key: Value"), then one job a line with eighteen numbers, of which -1 means unknown.
// https://www.cs.huji.ac.il/labs/parallel/workload/swf.html
package swf

import (
	"bytes"
	"io"
	"time"

	"sluice.dev/sluice/internal/edge/trace"
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

// Format of the file. Records are headers, and jobs: GPUs are the processors allocated, or else requested; memory is the
// job's, requested or else used, over all its processors. Average CPU time, executable, partition, preceding job and think
// time are checked and left out. Comments that are no "Key: Value", and blank lines, say nothing
// to a program and give no record.
func Format() trace.Format {
	return trace.Format{Name: "swf", Doc: "jobs in the Standard Workload Format of the Parallel Workloads Archive", Open: open}
}

func open(r io.Reader, file string) trace.Reader {
	columns := []string{
		"job number", "submit time", "wait time", "run time", "allocated processors", "average CPU time", "used memory",
		"requested processors", "requested time", "requested memory", "status", "user", "group", "executable", "queue", "partition",
		"preceding job", "think time",
	}
	return trace.OpenLines(r, file, func(l *trace.Line, r *trace.Record) bool {
		if bytes.HasPrefix(l.Text, []byte{';'}) {
			return header(l, r)
		}
		if len(bytes.Trim(l.Text, " \t")) == 0 { // published logs have some
			return false
		}
		if l.Blanks(columns) {
			job(l, r)
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
	r.Header.Key = key.ID()
	if !value.Empty() {
		r.Header.Value = value.ID()
	}
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

func job(l *trace.Line, r *trace.Record) {
	r.Kind = trace.Job
	r.At = seconds(l.Column(submitted))
	r.Job = trace.UnknownJob()
	j := &r.Job
	j.ID = l.Column(number).ID()
	l.Column(number).Count()
	j.Duration, j.Requested = seconds(l.Column(run)), seconds(l.Column(requestedTime))
	if delay := seconds(l.Column(wait)); delay != trace.Unknown && r.At != trace.Unknown {
		j.Start = r.At + delay
	}
	j.GPUs, j.Milli = either(l.Column(allocated), l.Column(requestedProcessors)), 1000
	memory := either(l.Column(requestedMemory), l.Column(usedMemory))
	if j.GPUs != trace.Unknown && memory != trace.Unknown {
		const most = 1 << 31 // processors and KiB of each: their product fits
		if j.GPUs > most || memory > most {
			l.Column(requestedMemory).Fail("memory and processors that a machine can have")
			return
		}
		j.Memory = (memory*j.GPUs + 1023) / 1024
	}
	for _, i := range [...]int{status, executable, partition, preceding} {
		count(l.Column(i))
	}
	seconds(l.Column(cpuTime))
	seconds(l.Column(think))
	j.Status, j.Queue, j.User = name(l.Column(status)), name(l.Column(queue)), name(l.Column(user))
	if j.Queue == "" {
		j.Queue = name(l.Column(group))
	}
	count(l.Column(group))
}

func unknown(f trace.Field) bool { return string(f.Bytes()) == "-1" }

func seconds(f trace.Field) time.Duration {
	if unknown(f) {
		return trace.Unknown
	}
	return f.Seconds()
}

func count(f trace.Field) int64 {
	if unknown(f) {
		return trace.Unknown
	}
	return f.Count()
}

// either is the first of two counts that is known. Both must be well formed.
func either(first, second trace.Field) int64 {
	a, b := count(first), count(second)
	if a != trace.Unknown {
		return a
	}
	return b
}

// name is a number that only names.
func name(f trace.Field) string {
	if count(f) == trace.Unknown {
		return ""
	}
	return f.Name()
}
