package tasks

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

// told is what the progress file says.
func (j *subjob) told() (p shim.Progress) {
	j.t.Helper()
	if err := json.Unmarshal([]byte(j.said("progress")), &p); err != nil {
		j.t.Fatal(err)
	}
	return p
}

// TestHopelessTrials: one that is worse than its own subjob's is stopped, by SIGKILL where it does not heed SIGTERM, is written down with
// what it had said, and the next begins. One that says no steps is never stopped. What they were worth is told.
func TestHopelessTrials(t *testing.T) {
	t.Parallel()
	stop := job.Stop{Reduction: 2, From: 5}
	j := start(t, Settings{Keep: true, Grace: 300 * time.Millisecond, Trials: &Trials{Table: "table", Stop: stop}}, 0, 3, "sh", "-c", `
case $SLUICE_TRIAL in
0) echo '{"metric": 9, "step": 1}
{"metric": 1, "step": 7}
{"metric": 1}' > "$SLUICE_METRICS_FILE"; exit 0;;
1) trap 'exit 3' TERM; printf '{"metric": 2, "step": 5}\n{"metric": 2, "st' > "$SLUICE_METRICS_FILE";;
2) trap '' TERM; echo '{"metric": NaN, "step": 5}' > "$SLUICE_METRICS_FILE";;
esac
while :; do sleep 0.05; done`)
	if status := j.wait(); status != 0 {
		t.Fatalf("exit %d: %s", status, &j.stderr)
	}
	list, err := ReadRecords(strings.NewReader(j.said("out/"+RecordFile)), 0, 3)
	if err != nil || len(list) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	if r := list[0]; r.Hopeless != nil || r.Failed() || r.Said() != "exit 0" {
		t.Errorf("the best: %+v", r)
	}
	for _, r := range list[1:] {
		if r.Hopeless == nil || *r.Hopeless != 5 || r.Failed() || r.Metrics == nil || r.Said() != "stopped at step 5, hopeless" {
			t.Errorf("a hopeless one: %+v", r)
		}
	}
	if list[1].Exit != 3 || list[2].Signal != 9 {
		t.Errorf("%+v, %+v", list[1], list[2])
	}
	one, two := 1.0, 2.0
	want := []job.Score{{Worth: worth(&stop, &one)}, {Worth: worth(&stop, &two)}, {Worth: worth(&stop, nil)}}
	if p := j.told(); p.Progress != 3 || p.Tried == nil || p.Tried.Hopeless != 2 || !slices.Equal(p.Tried.Scores, want) {
		t.Errorf("told %+v %+v, want %v", p, p.Tried, want)
	}
}

// TestHopelessByBars: what other subjobs had counts, at its rung alone; one that was cut is given back, whatever it was worth.
func TestHopelessByBars(t *testing.T) {
	t.Parallel()
	stop := job.Stop{Reduction: 2, From: 1, Maximize: true}
	three := 3.0
	bars := []job.Bar{{Rung: 1, Known: 4, Ahead: 3, Worth: worth(&stop, &three)}}
	const say = `echo '{"metric": 1, "step": 1}' >> "$SLUICE_METRICS_FILE"; [ "$SLUICE_TRIAL" = 2 ] && kill -TERM $PPID
sleep 0.3; echo '{"metric": '$SLUICE_TRIAL'.5, "step": 3}' >> "$SLUICE_METRICS_FILE"; trap 'exit 0' TERM; [ "$SLUICE_TRIAL" = 0 ] || exit 0
while :; do sleep 0.05; done`
	s := Settings{Keep: true, Grace: 5 * time.Second, Trials: &Trials{Table: "table", Stop: stop, Bars: bars}}
	j := start(t, s, 0, 3, "sh", "-c", say)
	if status := j.wait(); status != yielded {
		t.Fatalf("exit %d: %s", status, &j.stderr)
	}
	list, err := ReadRecords(strings.NewReader(j.said("out/"+RecordFile)), 0, 3)
	if err != nil || len(list) != 2 || list[0].Hopeless == nil || *list[0].Hopeless != 3 || list[1].Hopeless != nil {
		t.Fatalf("%+v, %v", list, err)
	}
	if p := j.told(); p.Tried == nil || len(p.Tried.Scores) != 4 || p.Tried.Hopeless != 1 {
		t.Errorf("told %+v", p.Tried)
	}
}

// TestMetricsAsTheyCome: lines in pieces, lines too long, a file that is written anew, steps that go back, rungs that are passed.
func TestMetricsAsTheyCome(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics")
	c := &climb{t: &Trials{Stop: job.Stop{Reduction: 3, From: 1}}, path: path, rung: -1}
	look := func(content string, rungs ...int) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := c.look(nil); err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, s := range c.scores {
			got = append(got, s.Rung)
		}
		if !slices.Equal(got, rungs) {
			t.Errorf("after %.40q: rungs %v, want %v", content, got, rungs)
		}
	}
	if err := c.look(nil); err != nil {
		t.Fatal(err)
	}
	look(`{"metric": 1, "st`)
	look("{\"metric\": 1, \"step\": 1}\n", 0)
	look("{\"metric\": 1, \"step\": 1}\nno\n"+strings.Repeat("x", maxRow+9)+"\n{\"metric\": 1, \"step\": 13}\n", 0, 2)
	look("{\"metric\": 1, \"step\": 3}\n", 0, 2)
	look("{\"metric\": 1, \"step\": 3}\n{\"metric\": 1, \"step\": 27}\n{\"metric\": 1, \"step\": 28}", 0, 2, 3)
}

func TestWorthIsTheMetricsOrder(t *testing.T) {
	order := []float64{math.Inf(-1), -math.MaxFloat64, -3, -math.SmallestNonzeroFloat64, 0, math.SmallestNonzeroFloat64, 1e-9, 3,
		math.Inf(1)}
	for _, s := range []job.Stop{{Maximize: true}, {}} {
		nan, zero := math.NaN(), math.Copysign(0, -1)
		if worth(&s, nil) != math.MinInt64 || worth(&s, &nan) != math.MinInt64 || worth(&s, &zero) != 0 {
			t.Errorf("%+v: of no number %d and %d, of -0 %d", s, worth(&s, nil), worth(&s, &nan), worth(&s, &zero))
		}
		for i := range order {
			for k := range order {
				a, b := worth(&s, &order[i]), worth(&s, &order[k])
				if more := i > k == s.Maximize && i != k; (a > b) != more || a == math.MinInt64 {
					t.Errorf("%+v: %v is worth %d and %v %d", s, order[i], a, order[k], b)
				}
			}
		}
	}
}
