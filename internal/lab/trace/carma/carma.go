// Package carma reads the summary of CARMA's training runs: for each its peak of GPU memory, what a run on fake tensors
// foretold, and how long it took.
package carma

import (
	"io"

	"sluice.dev/sluice/internal/lab/trace"
)

const (
	model = iota
	peak
	estimate
	seconds
	folder
	batch
	rest // further columns, which say the same in other units or nothing
)

// Format of ehsan-summary.csv. Records are footprints; the program is the model, the batch size the column's where it is
// given, else the one in the name of the run's folder. At is unknown: the file says when runs began by the second of a local
// clock, and they are in that order.
func Format() trace.Format {
	return trace.Format{Name: "carma", Doc: "peak memory of training runs beside FakeTensor's estimates, CARMA (CSV)",
		Kinds: []trace.Kind{trace.Footprint}, Open: open}
}

func open(r io.Reader, file string) trace.Reader {
	return trace.OpenCSV(r, file, trace.Sheet{
		Columns: []string{
			model: "Model", peak: "Max memory.used [MB]", estimate: "Faketensor Estimate [MB]", seconds: "Execution time(s)",
			folder: "Run folder", batch: "batch_size",
			rest: "Max memory.used [GB]", rest + 1: "FakeTensor Estimation(GB)", rest + 2: "FakeTensor overhead",
			rest + 3: "Execution time(m)",
			rest + 4: "Time", rest + 5: "Script", rest + 6: "epochs", rest + 7: "GB after forward", rest + 8: "GB after backward",
			rest + 9: "Execution time(h)",
		},
		Parse: parse,
	})
}

func parse(l *trace.Line, r *trace.Record) {
	r.Kind = trace.Footprint
	r.At = trace.Unknown
	r.Footprint = trace.FootprintRecord{
		Program: l.Column(model).Name(), Batch: trace.Unknown, Peak: up(l.Column(peak)), Estimate: trace.Unknown,
		Ran: l.Column(seconds).Seconds(),
	}
	if f := l.Column(estimate); !f.Empty() {
		r.Footprint.Estimate = up(f)
	}
	if f := l.Column(batch); !f.Empty() {
		r.Footprint.Batch = f.Milli() / 1000
	} else if n, ok := batchOf(l.Column(folder).Bytes()); ok {
		r.Footprint.Batch = n
	}
}

// up is a number of MiB (the file says MB, and divides by 1024) rounded up.
func up(f trace.Field) int64 { return (f.Milli() + 999) / 1000 }

// batchOf finds "--batch_size_32" in the name of a folder.
func batchOf(name []byte) (n int64, ok bool) {
	const before = "--batch_size_"
	for i := range name {
		if len(name)-i < len(before) || string(name[i:i+len(before)]) != before {
			continue
		}
		for _, c := range name[i+len(before):] {
			if c < '0' || c > '9' || n > 1<<40 {
				break
			}
			n, ok = n*10+int64(c-'0'), true
		}
		return n, ok
	}
	return 0, false
}
