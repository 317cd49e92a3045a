package observe

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// everyMetric are the families that an observer shows, with those whose series come with the first event.
func everyMetric(t *testing.T) []*dto.MetricFamily {
	t.Helper()
	o := New(Options{})
	o.Inbox("peers", func() (int, uint64) { return 0, 0 })
	o.Message(0, &protocol.Message{Kind: protocol.Checkup,
		Body: &protocol.Vitals{Slices: []job.SliceID{slice.ID}, Errors: []protocol.Xid{{Code: 79}}}})
	all, err := withOlderNames(o.metrics.registry).Gather()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(f *dto.MetricFamily) bool { return !strings.HasPrefix(f.GetName(), "sluice_") })
}

// TestNamesSayWhatTheyCount: a metric's name ends in a base unit or says what it counts, and Prometheus' own linter finds nothing.
func TestNamesSayWhatTheyCount(t *testing.T) {
	unit := regexp.MustCompile(`_(seconds|bytes|ratio)$|_bytes_per_second$`)
	things := regexp.MustCompile(`_(jobs|subjobs|slices|windows|units|claims|records|steps|messages|errors|faults|rounds|calls|answers|` +
		`misses|variants|awards|picks|parts|decisions|weight)(_[a-z]+)?$`)
	states := regexp.MustCompile(`_(state|trouble)$`) // 1 for what holds
	var today []*dto.MetricFamily
	for _, f := range everyMetric(t) {
		if strings.HasPrefix(f.GetHelp(), "deprecated: ") {
			continue
		}
		today = append(today, f)
		name, total := strings.CutSuffix(f.GetName(), "_total")
		counter := f.GetType() == dto.MetricType_COUNTER
		if total != counter {
			t.Errorf("%s: only counters end in _total, and all of them do", f.GetName())
		}
		if !unit.MatchString(name) && !things.MatchString(name) && (counter || !states.MatchString(name)) {
			t.Errorf("%s ends in no unit and says not what it counts", f.GetName())
		}
	}
	problems, err := promlint.NewWithMetricFamilies(today).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestOlderNamesOfMetrics: a dashboard of the version before finds each metric that was renamed, is told its new name, and docs have
// both.
func TestOlderNamesOfMetrics(t *testing.T) {
	by := map[string]*dto.MetricFamily{}
	for _, f := range everyMetric(t) {
		if by[f.GetName()] != nil {
			t.Errorf("%s is shown twice", f.GetName())
		}
		by[f.GetName()] = f
	}
	docs, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, older := range olderNames {
		switch now, was := by[name], by[older]; {
		case now == nil || was == nil:
			t.Errorf("%s, before %s: not both are shown", name, older)
		case was.GetHelp() != "deprecated: use "+name:
			t.Errorf("%s: %q", older, was.GetHelp())
		case len(was.Metric) != len(now.Metric):
			t.Errorf("%s has %d series, %s has %d", older, len(was.Metric), name, len(now.Metric))
		}
		row := "| `" + strings.TrimPrefix(older, "sluice_") + "` | `" + strings.TrimPrefix(name, "sluice_") + "` |"
		if !bytes.Contains(docs, []byte(row)) {
			t.Errorf("docs/operations.md has no row %s", row)
		}
	}
}
