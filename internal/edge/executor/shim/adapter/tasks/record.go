package tasks

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"regexp"
	"syscall"

	"sluice.dev/sluice/internal/core/job"
)

// RecordFile is the file of a subjob's output that has a Record of each of its tasks, a line each.
const RecordFile = "tasks.jsonl"

// Record is how one task has ended. A subjob that was killed may have left one for a task that does not count: the next subjob has run that
// again, and has its record too.
type Record struct {
	Unit int64 `json:"unit"`
	// Task is the index of an array's task.
	Task   *int64  `json:"task,omitempty"`
	Params []Param `json:"params,omitempty"`
	// Exit is its exit status; -1 where a signal ended it. Timeout: it ran for longer than it may.
	Exit    int  `json:"exit"`
	Signal  int  `json:"signal,omitempty"`
	Timeout bool `json:"timeout,omitempty"`
	// Hopeless is the step at which the trial was stopped for what its metric was; nil: it was not.
	Hopeless *int64  `json:"hopeless,omitempty"`
	Seconds  float64 `json:"seconds"`
	// Output is the file with what it said, below the folder of the record.
	Output  string   `json:"output"`
	Metrics *Metrics `json:"metrics,omitempty"`
}

// Failed says whether the task did.
func (r *Record) Failed() bool { return r.Hopeless == nil && (r.Exit != 0 || r.Timeout) }

// killed says that a SIGKILL ended the task which did not come from Sluice.
func (r *Record) killed() bool {
	return r.Signal == int(syscall.SIGKILL) && !r.Timeout && r.Hopeless == nil
}

// Said is how the task ended, for people.
func (r *Record) Said() string {
	switch {
	case r.Hopeless != nil:
		return fmt.Sprintf("stopped at step %d, hopeless", *r.Hopeless)
	case r.Timeout:
		return "it ran for longer than it may"
	case r.killed():
		return fmt.Sprintf("signal %d (%v), most likely for want of memory", r.Signal, syscall.SIGKILL)
	case r.Signal != 0:
		return fmt.Sprintf("signal %d (%v)", r.Signal, syscall.Signal(r.Signal))
	}
	return fmt.Sprintf("exit %d", r.Exit)
}

// Metrics sum up what a trial has said of itself.
type Metrics struct {
	// Lines that said something, and Wrong ones, which are not of the form.
	Lines int64 `json:"lines"`
	Wrong int64 `json:"wrong,omitempty"`
	// Last is the metric of the last line, Step its step; Least and Most are over all. None: it was never a number.
	Last  *float64 `json:"last,omitempty"`
	Step  *int64   `json:"step,omitempty"`
	Least *float64 `json:"least,omitempty"`
	Most  *float64 `json:"most,omitempty"`
}

// unnumbers are what Python writes for numbers that JSON does not have.
var unnumbers = regexp.MustCompile(`\bNaN\b|-?\bInfinity\b`)

// Sum reads lines such as {"metric": 0.3, "step": 10}. What is not of the form is counted, and a metric that is no number (NaN) is none.
func Sum(r io.Reader) (m Metrics, err error) {
	s := bufio.NewReaderSize(r, maxRow)
	for {
		line, err := s.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = s.ReadSlice('\n')
		}
		if long {
			m.Wrong++
		} else if line = bytes.TrimSpace(line); len(line) > 0 {
			m.add(line)
		}
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return m, err
		}
	}
}

func (m *Metrics) add(line []byte) {
	said, ok := parseLine(line)
	if !ok {
		m.Wrong++
		return
	}
	value := said.value
	m.Lines++
	m.Last, m.Step = value, said.step
	if value == nil {
		return
	}
	if m.Least == nil || *value < *m.Least {
		m.Least = value
	}
	if m.Most == nil || *value > *m.Most {
		m.Most = value
	}
}

// line is one line of metrics: value is nil where it was no number.
type line struct {
	value *float64
	step  *int64
}

// parseLine reads a line such as {"metric": 0.3, "step": 10}; false: it is not of the form.
func parseLine(text []byte) (l line, ok bool) {
	var said struct {
		Metric json.RawMessage
		Step   *float64
	}
	if json.Unmarshal(unnumbers.ReplaceAll(text, []byte("null")), &said) != nil || said.Metric == nil ||
		json.Unmarshal(said.Metric, &l.value) != nil {
		return line{}, false
	}
	if said.Step != nil {
		step := int64(*said.Step)
		l.step = &step
	}
	return l, true
}

// worth orders what metrics say, the better the more: it is the order of the numbers themselves, or of their negatives. None is worth
// least.
func worth(s *job.Stop, metric *float64) int64 {
	if metric == nil || math.IsNaN(*metric) {
		return math.MinInt64
	}
	v := *metric
	if !s.Maximize {
		v = -v
	}
	if v == 0 {
		return 0 // of either sign
	}
	bits := int64(math.Float64bits(v))
	if bits < 0 {
		bits ^= math.MaxInt64
	}
	return max(bits, math.MinInt64+1)
}

// sumFile is Sum of a file, nil if it said nothing.
func sumFile(path string) (*Metrics, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := Sum(f)
	if err != nil || m == (Metrics{}) {
		return nil, err
	}
	return &m, nil
}

// ReadRecords reads what subjobs have written into their RecordFile: the records of units [from, to). A last line that was cut off is none.
func ReadRecords(r io.Reader, from, to int64) (list []Record, err error) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 4*maxRow)
	for s.Scan() {
		var one Record
		if json.Unmarshal(s.Bytes(), &one) == nil && one.Unit >= from && one.Unit < to {
			list = append(list, one)
		}
	}
	return list, s.Err()
}
