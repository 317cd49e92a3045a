package scenario_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/play"
)

const leanFile = `
scenario: lean
mechanism: {use: [spillback]}
swarm: {zones: 2, nodes: 20, faults: [{at: 12s, zone: 1, for: 2s, cut: true}]}
window: {warmup: 5s, until: 15s}
`

// TestLean: a world of lean nodes is read, run under every mechanism, measured, and the same again.
func TestLean(t *testing.T) {
	s, err := scenario.Parse("lean.yml", []byte(leanFile))
	if err != nil {
		t.Fatal(err)
	}
	m, err := table().Find(s, []string{"spillback", play.All})
	if err != nil {
		t.Fatal(err)
	}
	if m[0].Name != "spillback" || len(m) != len(table().Swarm) {
		t.Errorf("all and the first named are %d mechanisms, the first %s", len(m), m[0].Name)
	}
	o := play.Options{Scenario: s, Mechanisms: m, Seeds: []uint64{1, 2}}
	results, err := play.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Workers = 1
	again, err := play.Run(t.Context(), o)
	if err != nil || !reflect.DeepEqual(results, again) {
		t.Errorf("with one worker it comes out otherwise (%v)", err)
	}
	for _, r := range results {
		for _, f := range measure.FlowTable() {
			v := r.Metrics.Get(f.Name)
			if f.Name == measure.CPUNanosPerTask {
				if v == v {
					t.Errorf("%s: the processor's time is in a result that is the same everywhere: %v", r.Mechanism, v)
				}
			} else if !(v >= 0) || f.Unit == measure.Share && v > 1 {
				t.Errorf("%s: %s is %v", r.Mechanism, f.Name, v)
			}
		}
		if r.Live != 0 || r.Partial || len(r.Broken) > 0 {
			t.Errorf("%s: %+v", r.Mechanism, r)
		}
	}
}

// TestLeanWithAClock: the processor's time is measured, and nothing else comes out otherwise.
func TestLeanWithAClock(t *testing.T) {
	s, err := scenario.Parse("lean.yml", []byte(leanFile))
	if err != nil {
		t.Fatal(err)
	}
	m, err := table().Find(s, []string{"laminar"})
	if err != nil {
		t.Fatal(err)
	}
	o := play.Options{Scenario: s, Mechanisms: m, Seeds: []uint64{1}}
	plain, err := play.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	now := int64(0)
	o.Clock = func() int64 { now += 7; return now }
	timed, err := play.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range measure.FlowTable() {
		was, is := plain[0].Metrics.Get(f.Name), timed[0].Metrics.Get(f.Name)
		if f.Name == measure.CPUNanosPerTask {
			if is != 0 { // nothing passes between two looks but what a look takes
				t.Errorf("a clock that only its own looks move has measured %v ns a task", is)
			}
		} else if is != was {
			t.Errorf("%s is %v with a clock and %v without", f.Name, is, was)
		}
	}
}

// TestLeanFilesSayWhatIsWrong, each with what to do.
func TestLeanFilesSayWhatIsWrong(t *testing.T) {
	for replace, want := range map[string]string{
		"until: 15s|":                                                     "until",
		"warmup: 5s|warmup: 20s":                                          "nothing would be measured",
		"zones: 2|zones: 0":                                               "zones",
		"nodes: 20|nodes: 3":                                              "nodes",
		"zone: 1|zone: 2":                                                 "zone",
		"nodes: 20|tasks: {load: 2000%}":                                  "load",
		"mechanism:|cluster: {nodes: []}\nmechanism:":                     "lean nodes (swarm) says all of that there",
		"window: {warmup: 5s, until: 15s}|":                               "window",
		"window: {warmup: 5s, until: 15s}|window: {}":                     "says no end",
		"use: [spillback]|use: [spillback], policy: fair":                 "policy",
		"nodes: 20|tasks: {mean: 1s, arrivals: {format: azure, file: x}}": "mean",
		"nodes: 20|tasks: {arrivals: {format: azure}}":                    "file",
		"nodes: 20|gigabytes: 4":                                          "gigabytes",
		"nodes: 20|network: {delay: 1s, duplication: 1}":                  "duplication",
	} {
		from, to, _ := strings.Cut(replace, "|")
		_, err := scenario.Parse("lean.yml", []byte(strings.Replace(leanFile, from, to, 1)))
		if errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want it to say %q", replace, err, want)
		}
	}
	s, err := scenario.Parse("lean.yml", []byte(leanFile))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := scenario.Parse("lean.yml", []byte(strings.Replace(leanFile, "mechanism: {use: [spillback]}\n", "", 1)))
	if err != nil || len(plain.Settings.Use) != 1 || plain.Settings.Use[0] != "laminar" {
		t.Errorf("without a mechanism it runs %v (%v), want laminar", plain.Settings.Use, err)
	}
	for _, name := range []string{"sja", "sparow"} {
		if _, err := table().Find(s, []string{name}); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "sparrow") {
			t.Errorf("%s: got %v, want the names that there are", name, err)
		}
	}
	if s, err = scenario.Load("small"); err != nil {
		t.Fatal(err)
	}
	if _, err := table().Find(s, []string{"sparrow"}); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "lean nodes") {
		t.Errorf("got %v, want it to say what sparrow is for", err)
	}
}

// TestLeanLog: requests of a file are the tasks, and where the file is not there the run says so.
func TestLeanLog(t *testing.T) {
	dir := t.TempDir()
	text := "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.0,10,50\n2023-11-16 18:15:47.0,10,0\n2023-11-16 " +
		"18:15:49.0,20,100\n"
	if err := os.WriteFile(filepath.Join(dir, "log.csv"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	file := strings.Replace(leanFile, "nodes: 20", "nodes: 20, tasks: {load: 50%, arrivals: {format: azure, file: log.csv, tokens: "+
		"{prompt: 1ms}}}", 1)
	s, err := reader().Parse("lean.yml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	m, err := table().Find(s, []string{"omniscient"})
	if err != nil {
		t.Fatal(err)
	}
	o := play.Options{Scenario: s, Mechanisms: m, Seeds: []uint64{1}, Data: &play.Traces{Dir: dir}}
	got, err := play.Run(t.Context(), o)
	// 160 slices, of which 96 are left, at half load, .697 s on average (50 tokens at 20 ms and ten of the prompt; ten; 100 and twenty):
	// 690 in ten seconds.
	if err != nil || got[0].Finished < 300 || got[0].Finished > 1200 {
		t.Fatalf("%+v, %v", got, err)
	}
	if !s.NeedsData() {
		t.Error("it needs no data")
	}
	o.Data = &play.Traces{Dir: t.TempDir()}
	if _, err := play.Run(t.Context(), o); err == nil {
		t.Error("a log that is not there was played")
	}
}
