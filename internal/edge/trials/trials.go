// Package trials makes the trials of a sweep: all combinations of what parameters may be, some of them drawn, or the rows of a CSV.
package trials

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// Most is how many trials a sweep may have.
	Most = 100_000
	// mostNames and mostValue bound a trial.
	mostNames = 64
	mostValue = 4096
	// mostBytes bounds all values of a table.
	mostBytes = 32 << 20
)

// Axis is one parameter with what it may be.
type Axis struct {
	Name   string
	Values []string
}

// Table is the parameters of trials, a row each.
type Table struct {
	Names []string
	Rows  [][]string
}

// ParseAxis reads NAME=VALUE,VALUE... of which FROM..TO and FROM..TO..STEP are whole numbers.
func ParseAxis(text string) (a Axis, err error) {
	name, list, ok := strings.Cut(text, "=")
	if !ok {
		return a, fmt.Errorf("%q: want NAME=VALUE,VALUE such as lr=1e-3,3e-4 or seed=0..49", text)
	}
	if err := checkName(name); err != nil {
		return a, err
	}
	a.Name = name
	seen := map[string]bool{}
	for part := range strings.SplitSeq(list, ",") {
		values, err := spread(part)
		if err != nil {
			return a, fmt.Errorf("%s: %w", name, err)
		}
		for _, v := range values {
			if err := checkValue(v); err != nil {
				return a, fmt.Errorf("%s: %w", name, err)
			}
			if seen[v] {
				return a, fmt.Errorf("%s: the value %q is given twice", name, v)
			}
			seen[v] = true
		}
		if a.Values = append(a.Values, values...); len(a.Values) > Most {
			return a, fmt.Errorf("%s: has more than %d values", name, Most)
		}
	}
	return a, nil
}

// spread is a value, or the numbers of a range.
func spread(part string) ([]string, error) {
	if part == "" {
		return nil, errors.New("a value is empty; want values between commas")
	}
	fields := strings.Split(part, "..")
	var n [3]int64
	n[2] = 1
	for i, f := range fields {
		v, err := strconv.ParseInt(f, 10, 64)
		if len(fields) < 2 || len(fields) > 3 || err != nil {
			return []string{part}, nil // dots may stand in any value
		}
		n[i] = v
	}
	from, to, step := n[0], n[1], n[2]
	if step < 1 || to < from {
		return nil, fmt.Errorf("%q is no range; want FROM..TO or FROM..TO..STEP that goes up", part)
	}
	if uint64(to)-uint64(from) >= uint64(Most)*uint64(step) {
		return nil, fmt.Errorf("%q has more than %d values", part, Most)
	}
	var out []string
	for v := from; ; v += step {
		out = append(out, strconv.FormatInt(v, 10))
		if to-v < step {
			return out, nil
		}
	}
}

// checkName looks at the name of a parameter: it stands between braces.
func checkName(name string) error {
	valid := name != "" && len(name) <= 64
	for _, r := range name {
		valid = valid && (r == '_' || r == '-' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}
	if !valid {
		return fmt.Errorf("%q is no name of a parameter; want at most 64 letters, digits, dots, _ and -", name)
	}
	return nil
}

func checkValue(v string) error {
	switch {
	case !utf8.ValidString(v) || strings.ContainsRune(v, 0):
		return fmt.Errorf("the value %.40q is no text; want UTF-8 without zero bytes", v)
	case len(v) > mostValue:
		return fmt.Errorf("the value %.40q... has %d bytes; want at most %d", v, len(v), mostValue)
	}
	return nil
}

// checkNames looks at all names of a table.
func checkNames(names []string) error {
	seen := map[string]bool{}
	for _, n := range names {
		if err := checkName(n); err != nil {
			return err
		}
		if seen[n] {
			return fmt.Errorf("%q names two parameters", n)
		}
		seen[n] = true
	}
	if len(names) > mostNames {
		return fmt.Errorf("there are %d parameters; want at most %d", len(names), mostNames)
	}
	return nil
}

// Shuffle puts the trials into another order, the same for the same seed.
func (t *Table) Shuffle(seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // the same order for the same seed is what is wanted
	random.Shuffle(len(t.Rows), func(i, k int) { t.Rows[i], t.Rows[k] = t.Rows[k], t.Rows[i] })
}

// Grid is every combination, the last axis moving first. Where draw is above 0 so many are drawn, each once: the same for the same seed.
func Grid(axes []Axis, draw int, seed uint64) (t Table, err error) {
	n := int64(1)
	for _, a := range axes {
		t.Names = append(t.Names, a.Name)
		if n *= int64(len(a.Values)); n > 1<<40 {
			return Table{}, fmt.Errorf("the grid has more than %d combinations", int64(1)<<40)
		}
	}
	if err := checkNames(t.Names); err != nil {
		return Table{}, err
	}
	if draw > 0 && int64(draw) > n {
		return Table{}, fmt.Errorf("%d are to be drawn of %d combinations; want at most as many", draw, n)
	}
	if draw == 0 && n > Most || draw > Most {
		return Table{}, fmt.Errorf("the grid has %d trials; want at most %d, or so many of it drawn", max(n, int64(draw)), Most)
	}
	bytes := 0
	add := func(at int64) error {
		row := make([]string, len(axes))
		for i := len(axes) - 1; i >= 0; i-- {
			k := int64(len(axes[i].Values))
			row[i], at = axes[i].Values[at%k], at/k
			bytes += len(row[i]) + 4
		}
		t.Rows = append(t.Rows, row)
		if bytes > mostBytes {
			return fmt.Errorf("the values of all trials have more than %d bytes", mostBytes)
		}
		return nil
	}
	if draw == 0 {
		for at := range n {
			if err := add(at); err != nil {
				return Table{}, err
			}
		}
		return t, nil
	}
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // the same trials for the same seed are what is wanted
	taken := map[int64]bool{}
	for i := n - int64(draw); i < n; i++ { // Floyd's sample: each set is as likely
		at := random.Int64N(i + 1)
		if taken[at] {
			at = i
		}
		taken[at] = true
		if err := add(at); err != nil {
			return Table{}, err
		}
	}
	return t, nil
}

// ReadCSV reads a table whose first row has the names.
func ReadCSV(r io.Reader) (t Table, err error) {
	in := csv.NewReader(r)
	in.FieldsPerRecord = -1
	bytes := 0
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Table{}, err
		}
		line, _ := in.FieldPos(0)
		if t.Names == nil {
			row[0] = strings.TrimPrefix(row[0], "\ufeff")
			for i := range row {
				row[i] = strings.TrimSpace(row[i])
			}
			if err := checkNames(row); err != nil {
				return Table{}, fmt.Errorf("line %d: %w", line, err)
			}
			t.Names = row
			continue
		}
		if len(row) != len(t.Names) {
			return Table{}, fmt.Errorf("line %d has %d values for %d names", line, len(row), len(t.Names))
		}
		for _, v := range row {
			if err := checkValue(v); err != nil {
				return Table{}, fmt.Errorf("line %d: %w", line, err)
			}
			bytes += len(v) + 4
		}
		if t.Rows = append(t.Rows, row); len(t.Rows) > Most || bytes > mostBytes {
			return Table{}, fmt.Errorf("it has more than %d rows, or %d bytes", Most, mostBytes)
		}
	}
	if len(t.Rows) == 0 {
		return Table{}, errors.New("it has no row below its names")
	}
	return t, nil
}
