package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"sluice.dev/sluice/bench/sample"
)

// line is one line of the table: a figure at several sizes, and what it has to reach.
type line struct {
	// Row that it belongs to (-only), and Name: what is measured. Together with the case of a cell they name a figure for good.
	Row  string `json:"row"`
	Name string `json:"name"`
	// Unit of the values. More: a larger value is better.
	Unit string `json:"unit"`
	More bool   `json:"more,omitempty"`
	// Target for people. A value is to be at most Value (at least, where More is set) in the last cell; no cell may be more
	// than Ratio times worse than the first, and where AtLast is set the last may not. 0: nothing is asked for.
	Target string  `json:"target"`
	Value  float64 `json:"value,omitempty"`
	Ratio  float64 `json:"ratio,omitempty"`
	AtLast bool    `json:"atLast,omitempty"`
	Cells  []cell  `json:"cells"`
	// Note is what else a reader has to know.
	Note string `json:"note,omitempty"`
}

// cell is a figure in one case: the median of several rounds with its range.
type cell struct {
	// Case such as "1k" or "1M + 1M over".
	Case   string  `json:"case"`
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Rounds int     `json:"rounds"`
	// GaveUp says why there is no value.
	GaveUp string `json:"gaveUp,omitempty"`
}

// measured makes a cell of what several rounds have shown, in any order.
func measured(of string, rounds ...float64) cell {
	if len(rounds) == 0 {
		return gaveUp(of, "nothing was measured")
	}
	v := sample.Ordered(rounds)
	return cell{Case: of, Median: sample.Median(v), Low: v[0], High: v[len(v)-1], Rounds: len(v)}
}

// gaveUp is a cell without a value.
func gaveUp(of, format string, args ...any) cell {
	return cell{Case: of, GaveUp: fmt.Sprintf(format, args...)}
}

// worse is how many times worse a cell is than the first one; false where one of them has no value.
func (l *line) worse(c *cell) (float64, bool) {
	first := &l.Cells[0]
	if first.GaveUp != "" || c.GaveUp != "" || first.Median <= 0 || c.Median <= 0 {
		return 0, false
	}
	if l.More {
		return first.Median / c.Median, true
	}
	return c.Median / first.Median, true
}

// verdict says whether the line reaches its target.
func (l *line) verdict() string {
	if len(l.Cells) == 0 {
		return unmeasured
	}
	last := &l.Cells[len(l.Cells)-1]
	if l.Value == 0 && l.Ratio == 0 {
		return ""
	}
	for i := range l.Cells {
		c := &l.Cells[i]
		if c.GaveUp != "" {
			return missed
		}
		if w, ok := l.worse(c); l.Ratio > 0 && (!ok || w > l.Ratio) && (!l.AtLast || c == last) {
			return missed
		}
	}
	if l.Value > 0 && (l.More && last.Median < l.Value || !l.More && last.Median > l.Value) {
		return missed
	}
	return met
}

// What a line can come to.
const (
	met        = "met"
	missed     = "NOT MET"
	unmeasured = "not measured"
)

// number is a value with as many digits as a reader wants.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a >= 10_000:
		return fmt.Sprintf("%.0fk", v/1000)
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

// text of a cell.
func (c *cell) text() string {
	if c.GaveUp != "" {
		return c.Case + ": " + c.GaveUp
	}
	s := c.Case + ": " + number(c.Median)
	if c.Rounds > 1 {
		s += " (" + number(c.Low) + " to " + number(c.High) + ")"
	}
	return s
}

// results of one run.
type results struct {
	Machine string `json:"machine"`
	Commit  string `json:"commit"`
	Date    string `json:"date"`
	// Quick: ten times smaller, so that it says nothing about the targets.
	Quick bool   `json:"quick,omitempty"`
	Took  string `json:"took"`
	Lines []line `json:"lines"`
}

// columns of the table: what, target, the cases in order, how much worse the last is than the first, and the verdict.
func (l *line) columns() []string {
	out := []string{l.Name + ", " + l.Unit, l.Target}
	var cases []string
	for i := range l.Cells {
		cases = append(cases, l.Cells[i].text())
	}
	ratio := ""
	if n := len(l.Cells); n > 1 {
		if w, ok := l.worse(&l.Cells[n-1]); ok {
			ratio = number(w)
		}
	}
	return append(out, strings.Join(cases, "; "), ratio, l.verdict())
}

//nolint:gochecknoglobals // read-only by use; Go has no constant slices
var header = []string{"what", "to reach", "measured", "times worse than the first",
	"verdict"}

// markdown writes the table as a page has it.
func (r *results) markdown(w io.Writer) error {
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(header, " | "), strings.Repeat("---|", len(header)))
	for i := range r.Lines {
		fmt.Fprintf(w, "| %s |\n", strings.Join(r.Lines[i].columns(), " | "))
	}
	for i := range r.Lines {
		if l := &r.Lines[i]; l.Note != "" {
			fmt.Fprintf(w, "\n- *%s*: %s", l.Name, l.Note)
		}
	}
	_, err := fmt.Fprintf(w, "\n\n%s, commit %s, %s, in %s. %s\n", r.Machine, r.Commit, r.Date, r.Took, r.summary())
	return err
}

// text writes the table for a terminal: a line's cases below each other.
func (r *results) text(w io.Writer) error {
	for i := range r.Lines {
		l := &r.Lines[i]
		c := l.columns()
		fmt.Fprintf(w, "%-13s %s (%s)\n", c[4], c[0], l.Row)
		if l.Target != "" {
			fmt.Fprintf(w, "    to reach    %s\n", l.Target)
		}
		for k := range l.Cells {
			fmt.Fprintf(w, "    %s", l.Cells[k].text())
			if ratio, ok := l.worse(&l.Cells[k]); ok && k > 0 {
				fmt.Fprintf(w, "    %s times worse", number(ratio))
			}
			fmt.Fprintln(w)
		}
		if l.Note != "" {
			fmt.Fprintf(w, "    note: %s\n", l.Note)
		}
	}
	_, err := fmt.Fprintf(w, "%s, commit %s, %s, in %s\n%s\n", r.Machine, r.Commit, r.Date, r.Took, r.summary())
	return err
}

// summary says in one line what was reached.
func (r *results) summary() string {
	count := map[string]int{}
	var not []string
	for i := range r.Lines {
		v := r.Lines[i].verdict()
		count[v]++
		if v == missed {
			not = append(not, r.Lines[i].Name)
		}
	}
	s := fmt.Sprintf("%d targets met, %d not met", count[met], count[missed])
	if len(not) > 0 {
		s += ": " + strings.Join(not, "; ")
	}
	if r.Quick {
		s += ". This was a quick run, ten times smaller: it says nothing about the targets"
	}
	return s + "."
}

func (r *results) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// size is a number of jobs as the table says it.
func size(n int) string {
	switch {
	case n >= 1_000_000 && n%1_000_000 == 0:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n >= 1000 && n%1000 == 0:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}

// round cuts a length of time to what a reader wants.
func round(d time.Duration) time.Duration {
	if d > 10*time.Second {
		return d.Round(time.Second)
	}
	return d.Round(10 * time.Millisecond)
}
