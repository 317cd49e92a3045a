// Package trace is the contract of the readers of published traces: jobs, machines, requests, states over time,
// measurements and result tables, as a stream of records; and what their formats share: lines, columns, fields and places
// of problems. One folder per format; package all is the table. It knows nothing of schedulers. A file is refused
// whole or read whole; where a reader takes a known departure from its format it counts it by name (Treatment).
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
	// State is what runs, waits and idles in a cluster at one instant.
	State
	// Curve is one row of a published table of results.
	Curve
	// Rank is one entry of a published order.
	Rank
	// Header is one thing that a file says about itself before its records.
	Header
	// Footprint is what one whole run of a program used.
	Footprint
)

// Unknown stands for a number that the trace does not give.
const Unknown = -1

// Record is one line of a trace. Kind says which part is set; the others are zero. A reader overwrites the whole record on
// every call of Next and may reuse the memory of its slices: copy what is to be kept. Strings stay valid.
type Record struct {
	Kind Kind
	// Line in the file, counted from 1.
	Line int
	// At is the record's instant as published: since the start of the trace where it gives such times (openb, swf, batsim,
	// mooncake), since 1970 (UTC assumed) where it gives dates or Unix times (philly, azure, helios, genai). Unknown where it
	// gives none.
	At          time.Duration
	Job         JobRecord
	Node        NodeRecord
	Request     RequestRecord
	Sample      SampleRecord
	Measurement MeasurementRecord
	State       StateRecord
	Curve       CurveRecord
	Rank        RankRecord
	Header      HeaderRecord
	Footprint   FootprintRecord
}

// JobRecord is a job; unknown numbers are Unknown, unknown texts empty.
type JobRecord struct {
	ID string
	// Queue is the virtual cluster, queue or group; User who sent it.
	Queue, User string
	// Duration it ran; Requested is what its owner asked for; Start when it began (on the clock of Record.At).
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

// UnknownJob is a job without any known field, for readers to fill.
func UnknownJob() JobRecord {
	return JobRecord{Duration: Unknown, Requested: Unknown, Start: Unknown, GPUs: Unknown, Milli: Unknown, CPU: Unknown, Memory: Unknown}
}

// NodeRecord is a machine.
type NodeRecord struct {
	ID string
	// Model of its GPUs, empty if it has none.
	Model string
	GPUs  int64
	// CPU in thousandths of a core, Memory in MiB.
	CPU, Memory int64
}

// RequestRecord is a request to a language model.
type RequestRecord struct {
	// Input and Output in tokens.
	Input, Output int64
	// Blocks are the ids of the blocks of the input, equal where a prefix is equal; empty where the trace has none.
	Blocks []int64
}

// SampleRecord is one value of a named series.
type SampleRecord struct {
	// Series names what was sampled, Subject whose it is (a pod); empty where it is of the whole.
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
	// Iterations is how many were measured; Iteration their median time, Low and High the 5th and 95th percentile, First the
	// time of the first one, which warms up. Variation is standard deviation over mean.
	Iterations                  int64
	First, Low, Iteration, High time.Duration
	Variation                   float64
	// Speed is the whole GPU's median iteration over this one's, in thousandths; Unknown if the whole GPU was not measured.
	Speed int64
	// Memory in MiB on a whole GPU, Unknown if not given.
	Memory int64
}

// StateRecord is what runs, waits and idles in a cluster at one instant.
type StateRecord struct {
	// Cluster, or the virtual cluster.
	Cluster string
	// GPUs there are, and those that nobody holds.
	GPUs, Idle int64
	// RunningJobs and PendingJobs count all jobs, those without GPUs included.
	RunningJobs, PendingJobs int64
	// GPU are the jobs with GPUs; Large those of them with eight or more, Small those with fewer.
	GPU, Large, Small Load
}

// Load counts jobs and the GPUs they hold or wait for.
type Load struct{ RunningJobs, PendingJobs, RunningGPUs, PendingGPUs int64 }

// CurveRecord is one row of a table of results over the arrived share of a cluster's capacity.
type CurveRecord struct {
	// Table, Workload and Policy as published; Table from the file's name.
	Table, Workload, Policy string
	Seed                    int64
	// Inflation of the workload in thousandths of the cluster's capacity.
	Inflation int64
	// GPUs of the cluster, Unknown if not given.
	GPUs int64
	// Values in percent; the i-th is the mean while the arrived share rounds to i percent.
	Values []float64
}

// RankRecord is one entry of an order.
type RankRecord struct {
	// ID of a pod or a node.
	ID string
	// Rank from 0; the lowest goes first.
	Rank int64
}

// HeaderRecord is one thing that a file says about itself.
type HeaderRecord struct{ Key, Value string }

// FootprintRecord is what one whole run of a program used.
type FootprintRecord struct {
	// Program and its batch size, Unknown where the program has none.
	Program string
	Batch   int64
	// Peak of GPU memory, and what was estimated without running it, both in MiB; the estimate rounded up, Unknown where
	// there is none.
	Peak, Estimate int64
	// Ran is how long it took.
	Ran time.Duration
}

// Reader streams the records of one file.
type Reader interface {
	// Next fills r. It returns io.EOF after the last record. Any other error is final and says file, line and column. It has
	// kind Invalid if the content is bad: then the rest of the file was looked through, and every problem is named (up to 20);
	// columns count bytes from 1.
	// It has kind Unavailable if the file could not be read.
	Next(r *Record) error
	// Treated is what was not as the format has it and was not refused, so far.
	Treated() []Treatment
}

// Format is one kind of trace.
type Format struct {
	Name string
	// Doc is one line for people: what the trace is and where it comes from.
	Doc string
	// Kinds of its records.
	Kinds []Kind
	// Open starts reading. file is the name used in errors; series without a name inside are named after it. Compressed
	// input (gzip) is recognized by its first bytes.
	Open func(r io.Reader, file string) Reader
}
