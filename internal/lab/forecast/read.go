package forecast

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/trace"
)

// Record is the work that files of any format of jobs hold, in whatever order they were added.
type Record struct {
	// Formats that are known.
	Formats []trace.Format
	work    []Work
	said    []string
	// processors is what a file says of its machine; 0 if none does.
	processors int
	hasStarts  bool
	lacks      int
}

// heads are what the first line of a format looks like that has a head.
var heads = map[string]*regexp.Regexp{ //nolint:gochecknoglobals // only read
	"swf":    regexp.MustCompile(`^\s*(;|(-?[\d.]+\s+){17}-?[\d.]+)`),
	"philly": regexp.MustCompile(`^timestamp,duration,num_gpus`),
	"openb":  regexp.MustCompile(`^name,cpu_milli,memory_mib,num_gpu`),
}

// Add reads a file of jobs; name is what it is called in messages. The error says what the file is not.
func (r *Record) Add(name string, in io.Reader) error {
	var first [1 << 12]byte
	n, err := io.ReadFull(in, first[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return errkind.Errorf(errkind.Unavailable, "%s: read: %w", name, err)
	}
	format := r.detect(first[:n])
	if format == nil {
		return errkind.Errorf(errkind.Invalid, "%s: it is no log of jobs that is known here: want the Standard Workload Format (18 "+
			"numbers a line), or a table of jobs as Philly's (timestamp,duration,num_gpus,...) or openb's "+
			"(name,cpu_milli,memory_mib,num_gpu,...)", name)
	}
	reader := format.Open(io.MultiReader(bytes.NewReader(first[:n]), in), name)
	var x trace.Record
	for {
		switch err := reader.Next(&x); {
		case errors.Is(err, io.EOF):
			for _, t := range reader.Treated() {
				r.said = append(r.said, fmt.Sprintf("%s: %s (%d times)", name, t.Name, t.Count))
			}
			return nil
		case err != nil:
			return err
		case x.Kind == trace.Header && x.Header.Key == "MaxProcs":
			if n, err := strconv.Atoi(x.Header.Value); err == nil && n > 0 {
				r.processors = max(r.processors, n)
			}
		case x.Kind == trace.Job:
			r.job(&x)
		}
	}
}

func (r *Record) job(x *trace.Record) {
	j := &x.Job
	if j.GPUs <= 0 || j.Duration <= 0 || x.At == trace.Unknown {
		r.lacks++
		return
	}
	w := Work{Submit: quantity.Instant(x.At), Start: quantity.Never, Runs: j.Duration, GPUs: int(j.GPUs)}
	if j.Start != trace.Unknown {
		w.Start, r.hasStarts = quantity.Instant(j.Start), true
	}
	r.work = append(r.work, w)
}

// detect finds the format of a file by its first bytes.
func (r *Record) detect(first []byte) *trace.Format {
	if bytes.HasPrefix(first, []byte{0x1f, 0x8b}) {
		if z, err := gzip.NewReader(bytes.NewReader(first)); err == nil {
			plain := make([]byte, 1<<12)
			n, _ := io.ReadFull(z, plain) // it is cut
			first = plain[:n]
		}
	}
	for i := range r.Formats {
		if head := heads[r.Formats[i].Name]; head != nil && head.Match(first) {
			return &r.Formats[i]
		}
	}
	return nil
}

// Log puts the work on devices: gpus of them, or where that is 0 as many as the files say or as are held at once.
func (r *Record) Log(gpus int) (*Log, error) {
	if len(r.work) == 0 {
		return nil, errkind.Errorf(errkind.Invalid, "the files hold no job with GPUs and a run time: nothing can be forecast from them")
	}
	most := 0
	for i := range r.work {
		most = max(most, r.work[i].GPUs)
	}
	said := "as its log says they were held"
	switch {
	case gpus > 0:
		said = "as --gpus says"
	case r.processors > 0:
		gpus, said = r.processors, "as the log's head says"
	case !r.hasStarts:
		return nil, errkind.Errorf(errkind.Invalid, "the log does not say when jobs began, nor how many GPUs there are: say how many "+
			"with --gpus N; the jobs are then played on them, first come, first served")
	}
	if most > gpus && gpus > 0 {
		return nil, errkind.Errorf(errkind.Invalid, "a job of the log holds %d GPUs, and there are %d, %s: give --gpus N with all "+
			"there are", most, gpus, said)
	}
	l, left := Place(r.work, gpus)
	l.Said = append(l.Said, fmt.Sprintf("The record: %d jobs on %d GPUs, %s, over %d whole days.", len(r.work)-left, len(l.Devices), said,
		l.Days()))
	if !r.hasStarts {
		l.Said = append(l.Said, "The log does not say when jobs began: they were played first come, first served.")
	}
	l.Said = append(l.Said, "The log names no devices: each job is taken to hold the lowest numbered ones that are free.")
	if r.lacks > 0 {
		l.Said = append(l.Said, fmt.Sprintf("%d rows without GPUs, a run time or a time of submission were left out.", r.lacks))
	}
	l.Said = append(l.Said, r.said...)
	return l, nil
}
