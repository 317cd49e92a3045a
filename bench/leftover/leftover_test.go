package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/bench/play"
	"sluice.dev/sluice/internal/edge/strict"
)

// TestThePageIsWritten runs every study for an hour and looks at what was written: every section that needs no traces, and each figure.
func TestThePageIsWritten(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a while")
	}
	s := play.Settings{Out: t.TempDir(), Seeds: []uint64{4}, Sets: []strict.Set{
		{Path: "window", Value: "{until: 1h, limit: 80m}"}, {Path: "workload.synthetic.jobs", Value: "40"},
	}}
	if err := write(t.Context(), &s, io.Discard); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(s.Out, "leftover.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"leftover.svg", "unannounced.svg"} {
		if svg, err := os.ReadFile(filepath.Join(s.Out, "leftover", name)); err != nil ||
			!strings.Contains(string(text), "leftover/"+name) || !strings.Contains(string(svg), "jasda") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, part := range []string{"## Ends that are known", "## Without notice", "## How ends are known", "## Training alone",
		"## What each part", "| requeue |", "exclusive"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the page has no %q", part)
		}
	}
}
