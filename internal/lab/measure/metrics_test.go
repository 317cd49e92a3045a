package measure_test

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/lab/measure"
)

func TestEveryMetricIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| `") && len(cells) >= 3 {
			rows = append(rows, cells[0])
		}
	}
	documented := strings.Join(rows, "\n")
	all := slices.Concat(measure.Table(), measure.NegotiationTable(), measure.LeftoverTable(), measure.FlowTable(), measure.SurvivalTable(),
		measure.VisitsTable(), measure.LentTable(), measure.StartsTable(),
		[]measure.Info{measure.About(measure.MissedDeadlines)})
	for _, i := range all {
		if !strings.Contains(documented, "`"+i.Name+"`") {
			t.Errorf("docs/metrics.md has no row for %s", i.Name)
		}
		if i.Title == "" || measure.About(i.Name) != i {
			t.Errorf("%s is known as %+v", i.Name, measure.About(i.Name))
		}
	}
	if n := strings.Count(documented, "`") / 2; n != len(all) {
		t.Errorf("docs/metrics.md has %d keys, want %d", n, len(all))
	}
}

func TestSetAndGet(t *testing.T) {
	var m measure.Metrics
	m.Set("a", 1)
	m.Set(measure.BoundShare, .5)
	m.Set("a", 2)
	if len(m) != 2 || m.Get("a") != 2 || m.Get(measure.BoundShare) != .5 || !math.IsNaN(m.Get("b")) {
		t.Errorf("metrics are %v", m)
	}
	if i := measure.About("mine"); i.Title != "mine" || i.Unit != measure.Plain || i.Better != measure.Neither {
		t.Errorf("an unknown metric is %+v", i)
	}
}
