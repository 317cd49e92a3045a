package report

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/workload"
)

// simulated runs jobs first-come on the first idle slice, in pieces of at most the length given, and measures them: a
// history with the shape of real ones for the pictures.
func simulated(t testing.TB, seed uint64, count, jobs int, load float64, piece time.Duration) Row {
	t.Helper()
	classes := []measure.Class{{Name: "3g.40gb", Count: count / 2, Weight: 429, Memory: 40 << 30},
		{Name: "1g.10gb", Count: count - count/2, Weight: 143, Memory: 10 << 30}}
	c, err := measure.New(measure.Config{Classes: classes, Usable: func(j *workload.Job) uint64 { return uint64(1 + 2*(j.Number%2)) }})
	if err != nil {
		t.Fatal(err)
	}
	r := measure.NewRecorder(classes, 1<<20)
	o := measure.Observers{c, r}
	random := prng.New(seed)
	queues := []string{"research", "production", ""}

	type running struct {
		measure.Piece
		job int
	}
	type live struct {
		workload.Job
		left time.Duration
		done int64
	}
	var now, next quantity.Instant
	slices := make([]*running, count)
	var waiting []int
	all := map[int]*live{}
	for arrived, over := 0, 0; over < jobs; {
		now = next
		if arrived == jobs {
			now = quantity.Never
		}
		for _, s := range slices {
			if s != nil {
				now = min(now, s.End)
			}
		}
		for i, s := range slices {
			if s == nil || s.End != now {
				continue
			}
			slices[i] = nil
			o.Ended(now, &s.Piece)
			j := all[s.job]
			if j.left -= s.Useful; j.left <= 0 {
				o.Done(now, s.Slot, job.Finished)
				over++
			} else {
				waiting = append(waiting, s.job)
			}
		}
		if now == next && arrived < jobs {
			j := &live{Job: workload.Job{Number: int64(arrived), Queue: queues[random.IntN(3)], Slices: 1, Theta: 10000}}
			j.Work = time.Duration(600 * random.Exp() * random.Exp() * float64(time.Second)).Truncate(time.Second)
			j.left = j.Work
			all[arrived] = j
			o.Arrived(now, measure.Slot(arrived), &j.Job)
			waiting = append(waiting, arrived)
			arrived++
			next = now.Add(time.Duration(random.Exp() * 600 / load / float64(count) * float64(time.Second)))
		}
		for i := range slices {
			if slices[i] != nil || len(waiting) == 0 {
				continue
			}
			j := all[waiting[0]]
			p := measure.Piece{Slot: measure.Slot(waiting[0]), First: int32(i), Slices: 1, Start: now, Overhead: 5 * time.Second,
				Outcome: job.Yielded, Peak: quantity.Amount(random.IntN(12 << 30))}
			if i >= count/2 {
				p.Class = 1
			}
			p.Useful = min(piece, j.left)
			if p.Useful == j.left {
				p.Outcome = job.Done
			}
			p.End = now.Add(p.Overhead + p.Useful)
			if random.IntN(20) == 0 {
				p.Outcome, p.Excess, p.Useful = job.MemoryKilled, true, p.Useful/3
			}
			p.Work = p.Useful
			p.Units = job.Range{From: j.done, To: j.done + int64(p.Useful/time.Second)}
			j.done = p.Units.To
			slices[i] = &running{p, waiting[0]}
			waiting = waiting[1:]
			o.Began(now, p.Slot, p.Class, 1)
		}
	}
	m := c.Finish(now)
	m.Set(measure.BoundShare, .9*m.Get(measure.UsefulUtilization))
	return Row{Scenario: "small", Seed: seed, Metrics: m, Waits: c.Waits(), Spans: r.Recording()}
}

// exampleStudy has two mechanisms over three loads and three seeds each, with the history of the first seed at one load.
func exampleStudy(t testing.TB, count, jobs int) *Study {
	s := &Study{Title: "Pieces against blocks </script><b>",
		Notes: []string{"A first-come queue on two kinds of slices, drawn at random. Nothing here is a result."}}
	for _, load := range []float64{.6, .9, 1.2} {
		for seed := range uint64(3) {
			for _, m := range []struct {
				name  string
				piece time.Duration
			}{{"sja", 5 * time.Minute}, {"easy", 24 * time.Hour}, {"fcfs", 20 * time.Minute}} {
				r := simulated(t, seed+1, count, jobs, load, m.piece)
				r.Mechanism, r.Params = m.name, []Param{{"load", load}}
				if seed > 0 || load != .9 {
					r.Spans = nil
				}
				s.Rows = append(s.Rows, r)
			}
		}
	}
	return s
}

func TestHTMLNeedsNothingElse(t *testing.T) {
	s := exampleStudy(t, 8, 60)
	var first, second bytes.Buffer
	for _, w := range []*bytes.Buffer{&first, &second} {
		if err := s.HTML(w); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two pages of the same study differ")
	}
	if to := os.Getenv("SLUICE_REPORT_OUT"); to != "" {
		if err := os.WriteFile(filepath.Join(to, "example.html"), first.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := first.String()
	if found := regexp.MustCompile(`(src|href|@import|url\()\s*=?\s*["'(]?[^ >]*`).FindString(text); found != "" {
		t.Errorf("the page refers to %q", found)
	}
	if found := strings.ReplaceAll(text, "http://www.w3.org/2000/svg", ""); strings.Contains(found, "http://") ||
		strings.Contains(found, "https://") {
		t.Error("the page names another address")
	}
	if strings.Contains(text, "<b>") || strings.Count(text, "</script>") != 2 {
		t.Errorf("the title is not escaped, or there are %d ends of scripts instead of 2", strings.Count(text, "</script>"))
	}
	for _, want := range []string{"small load=0.9", "Share of the bound", "by load", "3 seeds", "Waits: share of jobs", "±"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	data := regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`).FindStringSubmatch(text)
	if data == nil {
		t.Fatal("no timelines")
	}
	var read timelineData
	if err := json.Unmarshal([]byte(data[1]), &read); err != nil {
		t.Fatal(err)
	}
	if want := s.timelines(); !reflect.DeepEqual(read, want) || len(read.Timelines) != 3 || len(read.Timelines[0].Spans)%spanFields != 0 {
		t.Errorf("the page's %d timelines read back differ", len(read.Timelines))
	}
}

func TestScriptIsRead(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node to read the script with")
	}
	if out, err := exec.Command(node, "--check", "page/page.js").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestHTMLOfLittle(t *testing.T) {
	for name, s := range map[string]*Study{
		"nothing": {Title: "Empty"},
		"no values": {Title: "One",
			Rows: []Row{{Scenario: "s", Mechanism: "m", Metrics: measure.Metrics{{Name: measure.WaitMean, Value: math.NaN()}}}}},
		"no spans": {Title: "One", Rows: []Row{{Scenario: "s", Mechanism: "m", Metrics: measure.Metrics{{Name: measure.WaitMean, Value: 3}},
			Spans: &measure.Recording{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := s.HTML(&out); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(out.String(), "NaN") || !strings.Contains(out.String(), s.Title) {
				t.Error("the page is not right")
			}
		})
	}
}

func TestRunsNameTheirSettings(t *testing.T) {
	s := &Study{Rows: []Row{
		{Scenario: "small", Mechanism: "sja", Seed: 3, Params: []Param{{"load", .9}, {"share", 1}},
			Metrics: measure.Metrics{{Name: "waitMean", Value: 2}}},
		{Scenario: "small", Mechanism: "easy", Seed: 3, Metrics: measure.Metrics{{Name: "waitMean", Value: 4}}},
	}}
	var asJSON, asCSV bytes.Buffer
	if err := s.JSON(&asJSON); err != nil {
		t.Fatal(err)
	}
	if err := s.CSV(&asCSV); err != nil {
		t.Fatal(err)
	}
	const wantJSON = `[
 {"scenario":"small load=0.9 share=1","mechanism":"sja","seed":3,"metrics":{"waitMean":2}},
 {"scenario":"small","mechanism":"easy","seed":3,"metrics":{"waitMean":4}}
]
`
	const wantCSV = "scenario,mechanism,seed,waitMean\nsmall load=0.9 share=1,sja,3,2\nsmall,easy,3,4\n"
	if asJSON.String() != wantJSON || asCSV.String() != wantCSV {
		t.Errorf("got %s%s", asJSON.String(), asCSV.String())
	}
}

// row has one metric.
func row(mechanism string, seed uint64, metric string, value float64, params ...Param) Row {
	return Row{Scenario: "s", Mechanism: mechanism, Seed: seed, Params: params, Metrics: measure.Metrics{{Name: metric, Value: value}}}
}

func TestWhoLeads(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name, metric string
		a, b, c      []float64
		want         []bool
	}{
		{"less is better, by little on every seed", measure.WaitMean, []float64{10, 200, 3000}, []float64{11, 201, 3001},
			[]float64{12, 203, 3004}, []bool{true, false, false}},
		{"more is better", measure.Utilization, []float64{.5, .6}, []float64{.7, .8}, []float64{.7, .8}, []bool{false, true, true}},
		{"not told apart", measure.WaitMean, []float64{10, 20, 30}, []float64{30, 5, 20}, []float64{90, 91, 92}, []bool{true, true, false}},
		{"all alike", measure.WaitMean, []float64{7, 8}, []float64{7, 8}, []float64{7, 8}, []bool{false, false, false}},
		{"one seed", measure.WaitMean, []float64{10}, []float64{11}, []float64{10}, []bool{true, false, true}},
		{"neither way", measure.Subjobs, []float64{10}, []float64{11}, []float64{12}, []bool{false, false, false}},
		{"nothing measured", measure.WaitMean, []float64{nan}, []float64{nan}, []float64{nan}, []bool{false, false, false}},
		{"some measured", measure.WaitMean, []float64{nan}, []float64{5}, []float64{nan}, []bool{false, true, false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &Study{}
			for i := len(c.a) - 1; i >= 0; i-- { // in any order of seeds
				s.Rows = append(s.Rows, row("a", uint64(i), c.metric, c.a[i]), row("b", uint64(i), c.metric, c.b[i]),
					row("c", uint64(i), c.metric, c.c[i]))
			}
			g := s.groups()
			if len(g) != 1 {
				t.Fatalf("%d groups, want 1", len(g))
			}
			if got := g[0].leading(mechanisms(g[0].rows), c.metric); !reflect.DeepEqual(got, c.want) {
				t.Errorf("leading are %v, want %v", got, c.want)
			}
		})
	}
}

func TestSweeps(t *testing.T) {
	s := &Study{}
	for _, load := range []float64{1.2, .5} {
		for _, share := range []float64{0, 100} {
			s.Rows = append(s.Rows, row("sja", 1, measure.WaitMean, load*share, Param{"load", load}, Param{"share", share}))
		}
	}
	s.Rows = append(s.Rows, row("easy", 1, measure.WaitMean, 7, Param{"load", .5}, Param{"share", 0}))
	var got []string
	for _, w := range s.sweeps() {
		text := w.param + " of " + w.name + ":"
		for _, g := range w.groups {
			text += " " + g.name
		}
		got = append(got, text)
	}
	want := []string{
		"load of s share=0: s load=0.5 share=0 s load=1.2 share=0",
		"share of s load=1.2: s load=1.2 share=0 s load=1.2 share=100",
		"load of s share=100: s load=0.5 share=100 s load=1.2 share=100",
		"share of s load=0.5: s load=0.5 share=0 s load=0.5 share=100",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	charts := s.Lines("load", measure.WaitMean)
	if len(charts) != 2 || len(charts[0].Series) != 2 || charts[1].Series[0].Dots[1].Y != 120 ||
		!math.IsNaN(charts[0].Series[1].Dots[1].Y) {
		t.Errorf("charts over load are %+v", charts)
	}
	if c := s.Bars("s load=0.5 share=0", measure.WaitMean); c == nil || len(c.Series) != 2 || c.Series[1].Dots[0].Y != 7 {
		t.Errorf("bars are %+v", c)
	}
	if c := s.Bars("elsewhere", measure.WaitMean); c != nil {
		t.Errorf("bars of nothing are %+v", c)
	}
}

func TestPerfetto(t *testing.T) {
	s := exampleStudy(t, 4, 20)
	var out bytes.Buffer
	if err := s.Perfetto(&out); err != nil {
		t.Fatal(err)
	}
	var read struct {
		TraceEvents []struct {
			Ph        string
			Pid, Tid  int
			Name, Cat string
			TS, Dur   float64
			Args      map[string]any
		}
	}
	if err := json.Unmarshal(out.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	type track struct{ pid, tid int }
	names, ends, spans, counters := map[track]string{}, map[track]float64{}, 0, map[string]float64{}
	for _, e := range read.TraceEvents {
		at := track{e.Pid, e.Tid}
		switch e.Ph {
		case "M":
			if e.Name != "thread_sort_index" {
				names[at], _ = e.Args["name"].(string)
			}
		case "X":
			spans++
			if names[at] == "" || e.Dur <= 0 || e.TS < ends[at] {
				t.Fatalf("a run at %g of %g us on track %v (%q), where the last one ended at %g", e.TS, e.Dur, at, names[at], ends[at])
			}
			ends[at] = e.TS + e.Dur - .002 // times have three digits
		case "C":
			v, ok := e.Args["waiting"].(float64)
			if !ok || v < 0 {
				t.Fatalf("counter %s is %v", e.Name, e.Args)
			}
			counters[e.Name] = v
		default:
			t.Errorf("an event of phase %q", e.Ph)
		}
	}
	want := 0
	for i := range s.Rows {
		if s.Rows[i].Spans != nil {
			want += len(s.Rows[i].Spans.Spans)
		}
	}
	if spans != want || want == 0 {
		t.Errorf("%d runs in the trace, want %d", spans, want)
	}
	if names[track{2, 0}] != "small load=0.9, easy, seed 1" || names[track{1, 4}] != "slice 3 1g.10gb" {
		t.Errorf("tracks are %v", names)
	}
	if !reflect.DeepEqual(counters, map[string]float64{"queue research": 0, "queue production": 0, "queue default": 0}) {
		t.Errorf("counters end at %v, want three queues that are empty", counters)
	}
}

func TestPerfettoDrawsGangsOnEverySlice(t *testing.T) {
	s := &Study{Rows: []Row{{Scenario: "s", Mechanism: "m", Spans: &measure.Recording{
		Classes: []measure.Class{{Name: `"gpu"`, Count: 3}},
		Spans: []measure.Span{{Job: 5, Piece: measure.Piece{First: 1, Slices: 2, Start: 1_000_000_500, End: 3_000_000_000,
			Outcome: job.Done}}},
	}}}}
	var out bytes.Buffer
	if err := s.Perfetto(&out); err != nil {
		t.Fatal(err)
	}
	const one = `"name":"job 5","cat":"default","ts":0.000,"dur":1999999.500,"args":{"job":5,"outcome":"done","useful":"0 s","overhead":"0 s","excess":false}}`
	for _, want := range []string{`"tid":2,` + one, `"tid":3,` + one, `"name":"slice 2 \"gpu\""`, `"name":"slice 0"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the trace lacks %s:\n%s", want, out.String())
		}
	}
}
