// Package trace is the contract of the readers of published traces: jobs, machines, requests, states over time and
// measurements, as a stream of records. One folder per format; package all is the table.
package trace

import (
	"io"
	"time"
)

// Kind says what a record is.
type Kind uint8

// The kinds of records.
const (
	// Job is one job or pod of a cluster's log.
	Job Kind = iota + 1
	// Node is one machine of a cluster.
	Node
	// Request is one request to a served model.
	Request
	// Sample is one value of a series: memory, duty cycle, queue lengths.
	Sample
	// Measurement is how fast a program ran on a kind of slice.
	Measurement
)

// Unknown stands for a number that the trace does not give.
const Unknown = -1

// Record is one line of a trace. Kind says which part is set. A reader overwrites the whole record on every call of Next and
// may reuse its memory: copy what is to be kept. Strings stay valid.
type Record struct {
	Kind Kind
	// Line in the file, counted from 1.
	Line int
	// At is the record's instant since the zero of its trace (for Philly and openb the first timestamp's epoch is kept as it
	// is published); Unknown where the trace has none.
	At          time.Duration
	Job         JobRecord
	Node        NodeRecord
	Request     RequestRecord
	Sample      SampleRecord
	Measurement MeasurementRecord
}

// JobRecord is a job; unknown numbers are Unknown.
type JobRecord struct {
	ID string
	// Queue is the virtual cluster, queue or user group.
	Queue string
	// Duration it ran; Requested is what its owner asked for; Start when it began (since the trace's zero).
	Duration, Requested, Start time.Duration
	// GPUs (or processors) it holds at once; Milli is the share of each in thousandths, 1000 for whole ones.
	GPUs, Milli int64
	// CPU in thousandths of a core and Memory in MiB, on the host.
	CPU, Memory int64
	// Models it may run on ("A10", ...); empty for any.
	Models []string
	// Status as published: an SWF status, a pod's phase.
	Status string
}

// NodeRecord is a machine.
type NodeRecord struct {
	ID    string
	Model string
	GPUs  int64
	// CPU in thousandths of a core, Memory in MiB.
	CPU, Memory int64
}

// RequestRecord is a request to a language model.
type RequestRecord struct {
	// Input and Output in tokens.
	Input, Output int64
}

// SampleRecord is one value of a named series.
type SampleRecord struct {
	// Series names what was sampled, Subject whose it is (a pod, a virtual cluster).
	Series, Subject string
	// Value in the unit that the format states.
	Value float64
}

// MeasurementRecord is how fast a program ran on a slice.
type MeasurementRecord struct {
	// Program and its batch size; Profile of the slice ("1g.5gb").
	Program string
	Batch   int64
	Profile string
	// Iteration is the median time of one iteration; Speed its ratio to the whole GPU in thousandths, Unknown if not given.
	Iteration time.Duration
	Speed     int64
	// Memory in MiB on a whole GPU, Unknown if not given.
	Memory int64
}

// Reader streams the records of one file.
type Reader interface {
	// Next fills r. It returns io.EOF after the last record. Any other error is final, has kind Invalid and names the file,
	// the line and the column of every problem found up to there (at most 20).
	Next(r *Record) error
}

// Format is one kind of trace.
type Format struct {
	Name string
	// Doc is one line for people: what the trace is and where it comes from.
	Doc string
	// Open starts reading; file is the name used in errors. Compressed input (gzip) is recognized by its first bytes.
	Open func(r io.Reader, file string) Reader
}
