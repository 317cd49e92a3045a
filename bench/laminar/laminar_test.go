package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/bench/sweep"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/report"
	"sluice.dev/sluice/internal/lab/swarm/fluid"
)

// TestEveryPointIsAScenario: each setting of each study is one that the language takes, and each metric there is.
func TestEveryPointIsAScenario(t *testing.T) {
	for _, s := range studies() {
		for i := range s.Points {
			o, err := s.options(&settings{Settings: sweep.Settings{Seeds: []uint64{1, 2}}}, &s.Points[i])
			if err != nil || o.Scenario.Swarm == nil || len(o.Mechanisms) == 0 || o.Mechanisms[0].Name != ours {
				t.Errorf("study %s, %s: %v", s.Name, s.Points[i].Label, err)
			}
		}
		for _, metric := range s.Charts {
			if measure.About(metric).Title == metric {
				t.Errorf("study %s: there is no metric %s", s.Name, metric)
			}
		}
		if s.Theory.Vary != "" {
			if m := s.model(s.Points[0].X); m.Zones < 1 {
				t.Errorf("study %s: the theory is of %+v", s.Name, m)
			}
		}
	}
}

// TestWhoWins: as good in all three, and better in one by more than what is taken for equal.
func TestWhoWins(t *testing.T) {
	own := measured{.999, 6, .003}
	for _, c := range []struct {
		other measured
		want  string
	}{
		{measured{.999, 4, .003}, "messages"},
		{measured{1, 4, .001}, "placed messages landing"},
		{measured{.9985, 4, .003}, "messages"}, // within what is taken for equal
		{measured{.99, 4, .001}, ""},           // places fewer
		{measured{.999, 4, .005}, ""},          // lands later
		{measured{.999, 5.9, .0029}, ""},       // equal
	} {
		if got := strings.Join(c.other.wins(own), " "); got != c.want {
			t.Errorf("%+v beats %+v in %q, want %q", c.other, own, got, c.want)
		}
	}
}

// TestThePageOfKeptResults: what was stored is what is recalled, the page has a section for each study and every figure that it shows, and
// lists a peer that wins and one study that was skipped.
func TestThePageOfKeptResults(t *testing.T) {
	dir := t.TempDir()
	s := &settings{Settings: sweep.Settings{Keep: filepath.Join(dir, "kept"), Out: filepath.Join(dir, "docs"), Seeds: []uint64{1, 2},
		Again: true},
		model: func(*fluid.Model) fluid.Figures { return fluid.Figures{Placed: 1, Hops: 2, Use: .9} }}
	if err := os.MkdirAll(s.Keep, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, x := range studies() {
		if x.Traced {
			continue
		}
		r := result{study: x}
		for _, p := range x.Points {
			for i, m := range []string{ours, "central", "omniscient"} {
				for _, seed := range s.Seeds {
					row := report.Row{Scenario: x.Name, Mechanism: m, Seed: seed, Params: []report.Param{{Name: x.Axis.Label, Value: p.X}}}
					for _, metric := range append(usual(), measure.CPUNanosPerTask) {
						v := .99
						if metric != measure.PlacedShare {
							v /= float64(1 + i)
						}
						row.Metrics.Set(metric, v)
					}
					r.Rows = append(r.Rows, row)
				}
			}
		}
		if err := r.store(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := evaluate(t.Context(), s, io.Discard); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(s.Out, "laminar.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"## Load\n", "No published traces were given", "| load | 0.9 | central |", "fluid model",
		"## Where a peer wins"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, part := range strings.Split(string(page), "](laminar/")[1:] {
		name, _, _ := strings.Cut(part, ")")
		if _, err := os.Stat(filepath.Join(s.Out, "laminar", name)); err != nil {
			t.Error(err)
		}
	}
}
