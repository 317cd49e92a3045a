package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// results are a whole run, as results.json has them.
type results struct {
	// Rehearsal: there was no GPU, and no figure is one.
	Rehearsal bool      `json:"rehearsal"`
	Date      time.Time `json:"date"`
	Machine   *machine  `json:"machine"`
	Trials    []verdict `json:"trials"`
}

// failed are the names of the trials that did not hold.
func (r *results) failed() (all []string) {
	for _, v := range r.Trials {
		if !v.Held {
			all = append(all, v.Trial)
		}
	}
	return all
}

// write writes results.json, and gpu.md, which is what a page shows of it.
func (r *results) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "results.json"), append(text, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, "gpu.md"), []byte(r.page()), 0o644))
}

// page is the results as Markdown.
func (r *results) page() string {
	var b strings.Builder
	if r.Rehearsal {
		b.WriteString("**A rehearsal with a pretended driver. No GPU was tried, and nothing here is a figure of one.**\n\n")
	}
	fmt.Fprintf(&b, "%s, with Sluice %s: %s\n\n", r.Date.Format("2 January 2006"), r.Machine.Version, r.Machine.line())
	b.WriteString("| trial | what was seen |  |\n|---|---|---|\n")
	cell := strings.NewReplacer("|", "\\|", "\n", " ")
	for _, v := range r.Trials {
		word := "held"
		if !v.Held {
			word = "**did not hold**: " + v.Why
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", v.Trial, v.Shows, cell.Replace(word))
		for _, f := range v.Figures {
			fmt.Fprintf(&b, "| | %s | %s |\n", cell.Replace(f.Name), cell.Replace(f.Value))
		}
	}
	return b.String()
}

// The marks between which a page has the results of the last run.
const (
	pageFrom = "<!-- gpu: written by make gpu -->\n"
	pageTo   = "<!-- gpu: end -->\n"
)

// writePage puts the results of a run on a page. It takes none of a rehearsal.
func writePage(path, results string) error {
	r, err := readResults(results)
	if err != nil {
		return err
	}
	if r.Rehearsal {
		return fmt.Errorf("%s: it is of a rehearsal, which had no GPU: run the bundle on a machine with one", results)
	}
	was, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(was), pageFrom)
	_, tail, also := strings.Cut(rest, pageTo)
	if !ok || !also {
		return fmt.Errorf("%s: it has no marks %q and %q", path, pageFrom, pageTo)
	}
	return os.WriteFile(path, []byte(head+pageFrom+"\n"+r.page()+"\n"+pageTo+tail), 0o644)
}

func readResults(path string) (*results, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("-results: %w", err)
	}
	var r results
	if err = json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if r.Machine == nil || len(r.Trials) == 0 {
		return nil, fmt.Errorf("%s: it has no machine or no trials: want a results.json of this program", path)
	}
	return &r, nil
}
