// Package tasks runs a command once for each unit of a subjob: an index of a job array, or a trial of a sweep. It stands between the
// contract of subjobs, which it keeps, and a command that knows only its own task.
package tasks

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/indices"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/array"
)

// Settings say which tasks there are. One of Array and Trials is given.
type Settings struct {
	Array  *Array  `json:"array,omitempty"`
	Trials *Trials `json:"trials,omitempty"`
	// Keep: a task that fails is written down, and the next begins. Else its failure is that of the subjob.
	Keep bool `json:"keep,omitempty"`
	// Grace is the time between SIGTERM and SIGKILL.
	Grace time.Duration `json:"grace,omitempty"`
}

// Array are the tasks of a job array: unit k is the k-th of its indices.
type Array struct {
	Indices string `json:"indices"`
	// Name is what its owner calls the job; empty: as it is called here.
	Name string `json:"name,omitempty"`
	// Output and Error are patterns of the files that take what a task says (package array); empty: DefaultOutput, and where Output goes.
	Output string `json:"output,omitempty"`
	Error  string `json:"error,omitempty"`
	// Limit is how long a task may run; 0: as long as it likes.
	Limit time.Duration `json:"limit,omitempty"`
}

// Trials are the rows of a table: unit k is its k-th.
type Trials struct {
	// Table is its file (WriteTable).
	Table string `json:"table"`
	// Stop is when one is hopeless, by Bars and by those of the same subjob.
	Stop job.Stop  `json:"stop,omitzero"`
	Bars []job.Bar `json:"bars,omitempty"`
}

// DefaultOutput is Slurm's.
const DefaultOutput = "slurm-%A_%a.out"

// task is one run of the command.
type task struct {
	unit int64
	// label is what people call it, folder where what it leaves in its own output directory goes.
	label, folder string
	argv, env     []string
	// out and err are the files that take what it says; err may be empty. metrics takes its metrics; empty: it has none.
	out, err, metrics string
	// index of an array; params of a trial.
	index  *int64
	params []Param
}

// Param is one parameter of a trial.
type Param struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// plan makes the tasks of [from, to).
func (s *Settings) plan(name string, from, to int64, command []string) ([]task, error) {
	switch {
	case len(command) == 0:
		return nil, errors.New("no command is given")
	case s.Array != nil:
		return s.Array.plan(name, from, to, command)
	case s.Trials != nil:
		return s.Trials.plan(from, to, command)
	}
	return nil, errors.New("neither an array nor trials are given")
}

func (a *Array) plan(job string, from, to int64, command []string) (list []task, err error) {
	all, err := indices.Parse(a.Indices)
	if err != nil {
		return nil, fmt.Errorf("the index list %.60q: %w", a.Indices, err)
	}
	if to > int64(len(all.IDs)) {
		return nil, fmt.Errorf("units %d to %d of an array of %d", from, to, len(all.IDs))
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	count := len(all.IDs)
	for unit := from; unit < to; unit++ {
		id := all.IDs[unit]
		pattern := a.Output
		if pattern == "" {
			pattern = DefaultOutput
		}
		what := array.Task{Job: job, Name: a.Name, ID: id}
		out, err := array.File(pattern, what)
		if err != nil {
			return nil, fmt.Errorf("the pattern of the output %w", err)
		}
		t := task{unit: unit, label: "task " + number(id), folder: "task-" + number(id), argv: command, out: out, index: &id}
		if a.Error != "" {
			if t.err, err = array.File(a.Error, what); err != nil {
				return nil, fmt.Errorf("the pattern of the errors %w", err)
			}
		}
		name := a.Name
		if name == "" {
			name = job
		}
		t.env = []string{"SLURM_ARRAY_JOB_ID=" + job, "SLURM_ARRAY_TASK_ID=" + number(id), "SLURM_ARRAY_TASK_MIN=" + number(all.IDs[0]),
			"SLURM_ARRAY_TASK_MAX=" + number(all.IDs[count-1]), "SLURM_ARRAY_TASK_COUNT=" + strconv.Itoa(count),
			"SLURM_ARRAY_TASK_STEP=" + number(all.Step()), "SLURM_JOB_ID=" + job + "_" + number(id), "SLURM_JOBID=" + job + "_" +
				number(id),
			"SLURM_JOB_NAME=" + name, "SLURM_SUBMIT_DIR=" + dir}
		list = append(list, t)
	}
	return list, nil
}

func (t *Trials) plan(from, to int64, command []string) ([]task, error) {
	f, err := os.Open(t.Table)
	if err != nil {
		return nil, fmt.Errorf("the table of trials: %w", err)
	}
	defer f.Close()
	names, rows, err := ReadTable(f, from, to)
	if err != nil {
		return nil, fmt.Errorf("the table of trials, %s: %w", t.Table, err)
	}
	list := make([]task, len(rows))
	for i, row := range rows {
		unit := from + int64(i)
		name := "trial-" + strconv.FormatInt(unit, 10)
		list[i] = task{unit: unit, label: "trial " + strconv.FormatInt(unit, 10), folder: name, out: name + ".out", metrics: name +
			".metrics.jsonl",
			env: []string{"SLUICE_TRIAL=" + strconv.FormatInt(unit, 10)}}
		for k, n := range names {
			list[i].params = append(list[i].params, Param{n, row[k]})
		}
		for _, arg := range command {
			list[i].argv = append(list[i].argv, Fill(arg, list[i].params))
		}
	}
	return list, nil
}

// Fill puts parameters into an argument: {name} of a declared name is its value, {{ is a brace, and all else stays as it is.
func Fill(arg string, params []Param) string {
	out, _ := fill(arg, params)
	return out
}

// Uses are the names of params that stand in an argument.
func Uses(arg string, params []Param) map[string]bool {
	_, used := fill(arg, params)
	return used
}

func fill(arg string, params []Param) (string, map[string]bool) {
	var b strings.Builder
	used := map[string]bool{}
next:
	for i := 0; i < len(arg); {
		if strings.HasPrefix(arg[i:], "{{") {
			b.WriteByte('{')
			i += 2
			continue
		}
		if arg[i] == '{' {
			for _, p := range params {
				if strings.HasPrefix(arg[i+1:], p.Name+"}") {
					b.WriteString(p.Value)
					used[p.Name] = true
					i += len(p.Name) + 2
					continue next
				}
			}
		}
		b.WriteByte(arg[i])
		i++
	}
	return b.String(), used
}

// maxRow bounds a row of a table, in bytes.
const maxRow = 1 << 20

// WriteTable writes trials: a line with the names, then one with the values of each, JSON lists.
func WriteTable(w io.Writer, names []string, rows [][]string) error {
	b := bufio.NewWriter(w)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(names)
	for _, r := range rows {
		err = errors.Join(err, enc.Encode(r))
	}
	return errors.Join(err, b.Flush())
}

// ReadTable reads the rows [from, to).
func ReadTable(r io.Reader, from, to int64) (names []string, rows [][]string, err error) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxRow)
	for n := int64(-1); n < to && s.Scan(); n++ {
		if n >= 0 && n < from {
			continue
		}
		var row []string
		if err := json.Unmarshal(s.Bytes(), &row); err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", n+2, err)
		}
		if n < 0 {
			names = row
			continue
		}
		if len(row) != len(names) {
			return nil, nil, fmt.Errorf("line %d has %d values for %d names", n+2, len(row), len(names))
		}
		rows = append(rows, row)
	}
	if err := s.Err(); err != nil {
		return nil, nil, err
	}
	if int64(len(rows)) < to-from {
		return nil, nil, fmt.Errorf("it ends before row %d", to-1)
	}
	return names, rows, nil
}
