package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

// Where the table stands, and what is around it there.
const (
	pageFile  = "docs/benchmarks.md"
	pageBegin = "<!-- scale: written by go run ./bench/scale -write -->\n"
	pageEnd   = "<!-- scale: end -->\n"
)

// keep writes the results to the page and to the baseline.
func (r *results) keep(baseline string) error {
	text, err := os.ReadFile(pageFile)
	if err != nil {
		return err
	}
	var table bytes.Buffer
	if err = r.markdown(&table); err != nil {
		return err
	}
	page, err := replaced(string(text), table.String())
	if err != nil {
		return err
	}
	if err = os.WriteFile(pageFile, []byte(page), 0o644); err != nil {
		return err
	}
	if baseline == "" {
		return nil
	}
	var out bytes.Buffer
	if err = r.json(&out); err != nil {
		return err
	}
	return os.WriteFile(baseline, out.Bytes(), 0o644)
}

// replaced is a page with another table between its marks.
func replaced(page, table string) (string, error) {
	before, rest, found := strings.Cut(page, pageBegin)
	_, after, ended := strings.Cut(rest, pageEnd)
	if !found || !ended {
		return "", fmt.Errorf("%s has no place for the table: want the lines %q and %q", pageFile, pageBegin, pageEnd)
	}
	return before + pageBegin + table + pageEnd + after, nil
}

// compare says what has changed by more than a tenth since other results, where there are any.
func (r *results) compare(w io.Writer, base *results) error {
	if len(base.Lines) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\nagainst the baseline (commit %s, %s):\n", base.Commit, base.Date)
	if base.Quick != r.Quick {
		_, err := fmt.Fprintln(w, "  one of them was a quick run: there is nothing to compare")
		return err
	}
	if base.Machine != r.Machine {
		fmt.Fprintf(w, "  it was measured on another machine (%s), and says little about this one\n", base.Machine)
	}
	changes := 0
	for i := range r.Lines {
		l := &r.Lines[i]
		for k := range l.Cells {
			c := &l.Cells[k]
			was := base.cell(l.Row, l.Name, c.Case)
			if was == nil || was.GaveUp != "" && c.GaveUp != "" {
				continue
			}
			pair := line{More: l.More, Cells: []cell{*was, *c}}
			switch worse, ok := pair.worse(c); {
			case c.GaveUp != "" || was.GaveUp != "":
				changes++
				fmt.Fprintf(w, "  %s, %s: was %s, is %s\n", l.Name, l.Unit, was.text(), c.text())
			case ok && (worse > 1.1 || worse < 1/1.1):
				changes++
				fmt.Fprintf(w, "  %s, %s: was %s, is %s: %s\n", l.Name, l.Unit, was.text(), c.text(), change(worse))
			}
		}
	}
	if changes == 0 {
		fmt.Fprintln(w, "  nothing has changed by more than a tenth")
	}
	return nil
}

// change is a factor as people say it.
func change(worse float64) string {
	if worse > 1 {
		return number(worse) + " times worse"
	}
	return number(1/worse) + " times better"
}

// cell finds a figure; nil if it was not measured.
func (r *results) cell(row, name, of string) *cell {
	for i := range r.Lines {
		if l := &r.Lines[i]; l.Row == row && l.Name == name {
			for k := range l.Cells {
				if l.Cells[k].Case == of {
					return &l.Cells[k]
				}
			}
		}
	}
	return nil
}
