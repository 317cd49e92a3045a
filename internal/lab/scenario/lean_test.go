package scenario_test

import (
	"reflect"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario"
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
	m, err := table().Find(s, []string{"spillback", scenario.All})
	if err != nil {
		t.Fatal(err)
	}
	if m[0].Name != "spillback" || len(m) != len(table().Swarm) {
		t.Errorf("all and the first named are %d mechanisms, the first %s", len(m), m[0].Name)
	}
	o := scenario.Options{Scenario: s, Mechanisms: m, Seeds: []uint64{1, 2}}
	results, err := scenario.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Workers = 1
	again, err := scenario.Run(t.Context(), o)
	if err != nil || !reflect.DeepEqual(results, again) {
		t.Errorf("with one worker it comes out otherwise (%v)", err)
	}
	for _, r := range results {
		for _, f := range measure.FlowTable() {
			v := r.Metrics.Get(f.Name)
			if f.Name == measure.CPUNanosPerTask {
				if v == v {
					t.Errorf("%s: the processor's time is in a result: %v", r.Mechanism, v)
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

// TestLeanFilesSayWhatIsWrong, each with what to do.
func TestLeanFilesSayWhatIsWrong(t *testing.T) {
	for replace, want := range map[string]string{
		"until: 15s|":                                     "until",
		"warmup: 5s|warmup: 20s":                          "nothing would be measured",
		"zones: 2|zones: 0":                               "zones",
		"nodes: 20|nodes: 3":                              "nodes",
		"zone: 1|zone: 2":                                 "zone",
		"nodes: 20|tasks: {load: 2000%}":                  "load",
		"mechanism:|cluster: {nodes: []}\nmechanism:":     "lean nodes (swarm) says all of that there",
		"window: {warmup: 5s, until: 15s}|":               "window",
		"window: {warmup: 5s, until: 15s}|window: {}":     "says no end",
		"use: [spillback]|use: [spillback], policy: fair": "policy",
		"nodes: 20|gigabytes: 4":                          "gigabytes",
		"nodes: 20|network: {delay: 1s, duplication: 1}":  "duplication",
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
