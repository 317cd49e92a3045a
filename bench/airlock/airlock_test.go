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

// TestThePageIsWritten plays every study with few storms and looks at what was written: every section, everybody who acts, and the figure.
func TestThePageIsWritten(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a while")
	}
	s := play.Settings{Out: t.TempDir(), Seeds: []uint64{1}, Sets: []strict.Set{
		{Path: "window", Value: "{until: 25m, limit: 1d}"},
		{Path: "workload.jobs", Value: "[{at: 0s, name: work, count: 20, every: 1m, items: {total: 60, perItem: 10s, grid: 1, " +
			"parallelism: 2}, memory: 9Gi, true: {memory: 8Gi}}]"},
	}}
	if err := write(t.Context(), &s, io.Discard); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(s.Out, "airlock.md"))
	if err != nil {
		t.Fatal(err)
	}
	if svg, err := os.ReadFile(filepath.Join(s.Out, "airlock", "lost.svg")); err != nil || !strings.Contains(string(svg), "earlyoom") {
		t.Errorf("the figure: %v", err)
	}
	for _, part := range []string{"## Storms that can be absorbed", "## Without swap", "## With more swap", "## Storms that can't",
		"## Orders of survival", "## Each shape", "## Where we lose", "| oomd |", "| kubelet |", "| ray |", "one giant"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the page has no %q", part)
		}
	}
}
