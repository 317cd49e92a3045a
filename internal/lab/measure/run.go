package measure

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"sluice.dev/sluice/internal/core/errkind"
)

// Run is the outcome of one simulation.
type Run struct {
	Scenario  string
	Mechanism string
	Seed      uint64
	Metrics   Metrics
}

// MarshalJSON gives an object in the order of the metrics, every value with all its digits; one that could not be
// measured is null.
func (m Metrics) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, v := range m {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := json.Marshal(v.Name)
		if err != nil {
			return nil, fmt.Errorf("metric %q: %w", v.Name, err)
		}
		out = append(append(out, name...), ':')
		if text := number(v.Value); text == "" {
			out = append(out, "null"...)
		} else {
			out = append(out, text...)
		}
	}
	return append(out, '}'), nil
}

// UnmarshalJSON keeps the order of the object. A name that comes twice, or a value that is no number, is an error.
func (m *Metrics) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	t, err := d.Token()
	if err != nil || t != json.Delim('{') {
		return errkind.Errorf(errkind.Invalid, "metrics: want an object of names and numbers")
	}
	list, seen := Metrics{}, map[string]bool{}
	var problems []error
	for d.More() {
		var key json.Token
		if key, err = d.Token(); err != nil {
			return errkind.Errorf(errkind.Invalid, "metrics: %w", err)
		}
		name, _ := key.(string) // a key is always text
		var value any
		if err = d.Decode(&value); err != nil {
			return errkind.Errorf(errkind.Invalid, "metric %q: %w", name, err)
		}
		v := math.NaN()
		if value != nil {
			text, ok := value.(json.Number)
			if v, err = strconv.ParseFloat(string(text), 64); !ok || err != nil {
				problems = append(problems, fmt.Errorf("metric %q: %v; want a number or null", name, value))
			}
		}
		if seen[name] {
			problems = append(problems, fmt.Errorf("metric %q: given twice", name))
		}
		seen[name] = true
		list = append(list, Metric{name, v})
	}
	if len(problems) > 0 {
		return errkind.Errorf(errkind.Invalid, "%w", errors.Join(problems...))
	}
	*m = list
	return nil
}

// number is the shortest text that reads back as v; empty for what JSON has no number for.
func number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// runJSON is a run on the wire; its fields are pointers to tell what is missing.
type runJSON struct {
	Scenario  *string  `json:"scenario"`
	Mechanism *string  `json:"mechanism"`
	Seed      *uint64  `json:"seed"`
	Metrics   *Metrics `json:"metrics"`
}

// WriteJSON writes [{"scenario", "mechanism", "seed", "metrics"}], a run on each line. The same runs give the same bytes.
func WriteJSON(w io.Writer, runs []Run) error {
	out := bufio.NewWriter(w)
	for i := range runs {
		r := &runs[i]
		line, err := json.Marshal(runJSON{&r.Scenario, &r.Mechanism, &r.Seed, &r.Metrics})
		if err != nil {
			return fmt.Errorf("write run %d: %w", i, err)
		}
		open := ",\n "
		if i == 0 {
			open = "[\n "
		}
		_, _ = out.WriteString(open) // a buffered writer keeps its first error for Flush
		_, _ = out.Write(line)
	}
	if len(runs) == 0 {
		_, _ = out.WriteString("[")
	}
	_, _ = out.WriteString("\n]\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write runs: %w", err)
	}
	return nil
}

// ReadJSON reads what WriteJSON wrote. An error is of kind Invalid: a field that is missing or unknown, text after the
// end. Every incomplete run is listed.
func ReadJSON(r io.Reader) ([]Run, error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	var list []runJSON
	if err := d.Decode(&list); err != nil {
		return nil, errkind.Errorf(errkind.Invalid, "runs: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errkind.Errorf(errkind.Invalid, "runs: there is more after the list; want one list of runs and nothing else")
	}
	runs := make([]Run, 0, len(list))
	var problems []error
	for i, j := range list {
		if j.Scenario == nil || j.Mechanism == nil || j.Seed == nil || j.Metrics == nil {
			problems = append(problems, fmt.Errorf("run %d: want scenario, mechanism, seed and metrics", i))
			continue
		}
		runs = append(runs, Run{Scenario: *j.Scenario, Mechanism: *j.Mechanism, Seed: *j.Seed, Metrics: *j.Metrics})
	}
	if len(problems) > 0 {
		return nil, errkind.Errorf(errkind.Invalid, "%w", errors.Join(problems...))
	}
	return runs, nil
}

// WriteCSV writes a row for each run under a heading: scenario, mechanism, seed, then every metric that occurs, in the
// order in which they first do. A value that could not be measured is empty.
func WriteCSV(w io.Writer, runs []Run) error {
	heading := []string{"scenario", "mechanism", "seed"}
	column := map[string]int{}
	for _, r := range runs {
		for _, v := range r.Metrics {
			if _, ok := column[v.Name]; !ok {
				column[v.Name] = len(heading)
				heading = append(heading, v.Name)
			}
		}
	}
	out := csv.NewWriter(w)
	_ = out.Write(heading) // a csv.Writer keeps its first error for Error
	for _, r := range runs {
		row := make([]string, len(heading))
		copy(row, []string{r.Scenario, r.Mechanism, strconv.FormatUint(r.Seed, 10)})
		for _, v := range r.Metrics {
			row[column[v.Name]] = number(v.Value)
		}
		_ = out.Write(row)
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write runs: %w", err)
	}
	return nil
}
