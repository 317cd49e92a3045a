package scenario_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/play"
	"sluice.dev/sluice/internal/lab/workload"
	"sluice.dev/sluice/internal/lab/workload/compose"
)

// staying is a small world with programs that stay, written out and generated.
const staying = `
scenario: staying
cluster: {nodes: [{name: n, gpus: "sim:a100-80gb=2"}]}
host: {gaps: {uniform: [5m, 10m]}, stays: {fixed: 4m}%s}
mechanism: {policy: fair, horizon: 30m, continue: true}
workload:
  jobs:
    - at: 0s
      name: sweep
      count: 2
      items: {total: 100, perItem: 5s}
      startup: 30s
      template: sweep
      resident: true
      memory: 4Gi
      true: {startup: 50s}
    - {at: 0s, name: plain, items: {total: 100, perItem: 5s}, startup: 30s, memory: 4Gi, true: {startup: 0s}}
  synthetic: {jobs: 60, arrivals: {poisson: 1s}, durations: {lognormal: {median: 5m, sigma: 1}}, startup: 60s, templates: 6, resident: true}
window: {until: 6h, limit: 8h}
`

// TestResidentJobsAreRead: what a file says of programs that stay, of templates and of starts comes to the jobs, and to their specs.
func TestResidentJobsAreRead(t *testing.T) {
	s, err := scenario.Parse("staying.yml", fmt.Appendf(nil, staying, ""))
	if err != nil {
		t.Fatal(err)
	}
	sweep, plain := &s.Workload.Jobs[0].Job, &s.Workload.Jobs[2].Job
	if !sweep.Process.Resident || sweep.Template != "sweep" || sweep.Startup != 30*time.Second || sweep.Start() != 50*time.Second ||
		sweep.Before(false) != 50*time.Second {
		t.Errorf("sweep: %+v", sweep)
	}
	if plain.Process.Resident || plain.Start() != 0 || plain.Startup != 30*time.Second {
		t.Errorf("plain: %+v", plain)
	}
	specs := workload.Specs{Continue: true}
	spec, err := specs.Spec(sweep, "sweep")
	if err != nil || !spec.Resident || spec.Continue || spec.Startup != 30*time.Second || spec.Residence("a") != spec.Residence("b") {
		t.Errorf("%+v, %v", spec, err)
	}
	specs.Cold = true
	if spec, err = specs.Spec(sweep, "sweep"); err != nil || spec.Resident || !spec.Continue || spec.Residence("a") != 0 {
		t.Errorf("cold: %+v, %v", spec, err)
	}
	if o := s.Workload.Streams[0].Options; o.Templates != 6 || !o.Resident || o.Startup != time.Minute || !s.Workload.Stays() {
		t.Errorf("%+v", o)
	}
	for line, want := range map[string]string{
		"rigid: {walltime: 1m}, resident: true":                                  "a rigid job has one subjob",
		"rigid: {walltime: 1m}, true: {startup: 1m}":                             "counted from the start of its process",
		"items: {total: 100, perItem: 5s}, resident: true, true: {startup: -1s}": "startup",
	} {
		_, err := scenario.Parse("wrong.yml", []byte(`
scenario: wrong
cluster: {nodes: [{gpus: "sim:custom=1,mem=1Gi"}]}
workload: {jobs: [{at: 0s, name: a, memory: 1Mi, `+line+`}]}
`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want that %s", line, err, want)
		}
	}
	alone := strings.Replace(staying, ", stays: {fixed: 4m}", "", 1)
	for _, wrong := range []string{fmt.Sprintf(staying, ", synthetic: {load: 0.5}"), fmt.Sprintf(alone, ""),
		fmt.Sprintf(strings.Replace(staying, "gaps: {uniform: [5m, 10m]}, ", "", 1), "")} {
		if _, err := scenario.Parse("wrong.yml", []byte(wrong)); err == nil || !strings.Contains(err.Error(), "want both of them") {
			t.Errorf("got %v of %s", err, wrong)
		}
	}
}

// TestTemplatesAreDrawn: jobs are spread evenly over their templates, and what may not be cut does not stay.
func TestTemplatesAreDrawn(t *testing.T) {
	o := compose.Options{Jobs: 6000, Atomizable: .5, Templates: 6, Resident: true, Classes: classesOf(t)}
	from, err := compose.New(compose.Synthetic(), o)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	var j workload.Job
	for {
		more, err := from.Next(&j)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		count[j.Template]++
		if _, err := new(workload.Specs).Spec(&j, j.Name()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 6 {
		if n := count[fmt.Sprint("t", i+1)]; n < 880 || n > 1120 { // four deviations
			t.Errorf("%d jobs of template %d of 6000", n, i+1)
		}
	}
}

// classesOf are those of a machine with whole GPUs.
func classesOf(t *testing.T) []compose.Class {
	s, err := scenario.Parse("one.yml", []byte("scenario: one\ncluster: {nodes: [{gpus: \"sim:a100-80gb=8\"}]}\nworkload: {jobs: []}\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, classes := s.Classes()
	var c compose.Class
	c.Name, c.Count, c.Memory, c.Speed, c.Compute = classes[0].Name, classes[0].Count, classes[0].Memory, classes[0].Weight, 7
	return []compose.Class{c}
}

// TestColdMechanisms: every subjob starts a program of its own under them, in the same gaps, and each start is seen.
func TestColdMechanisms(t *testing.T) {
	s, err := scenario.Parse("staying.yml", fmt.Appendf(nil, staying, ", walltimes: none"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := table().Find(s, []string{"sja:cold", "jasda:fair:cold", "checkpoint"})
	if err != nil || !m[0].Cold || m[0].Name != "sja:cold" || m[1].Name != "jasda:fair:cold" || m[1].Market == nil || m[2].Cold {
		t.Fatalf("%+v, %v", m, err)
	}
	results, err := play.Run(t.Context(), play.Options{Scenario: s, Mechanisms: m})
	if err != nil {
		t.Fatal(err)
	}
	for i := range results {
		r := &results[i]
		get := r.Metrics.Get
		if i < 2 && (get(measure.ColdStarts) < 40 || get(measure.ResidentStarts) != 0 || get(measure.GapsUsed) < 20 ||
			get(measure.StartOverhead) <= 0 || get(measure.StartOverhead) >= get(measure.StartTime)) {
			t.Errorf("%s: %v", r.Mechanism, r.Metrics)
		}
		if i == 2 && !math.IsNaN(get(measure.ColdStarts)) {
			t.Errorf("fillers know no programs that stay, and have %g cold starts", get(measure.ColdStarts))
		}
		if len(r.Broken) > 0 || get(measure.Gaps) != results[0].Metrics.Get(measure.Gaps) || get(measure.HostDelayMean) > 1e-6 {
			t.Errorf("%s: %v, %v", r.Mechanism, r.Broken, r.Metrics)
		}
	}
	for name, want := range map[string]string{"checkpoint:cold": "checkpoint", "easy:cold": "programs stay under sja and jasda alone",
		"sja:cold:cold": "programs stay under", "sja:quick:cold": "no policy"} {
		if _, err := table().Find(s, []string{name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want that %s", name, err, want)
		}
	}
	small, err := scenario.Load("small")
	if err == nil {
		_, err = table().Find(small, []string{"sja:cold"})
	}
	if err == nil || !strings.Contains(err.Error(), "no job of scenario small is resident") {
		t.Errorf("got %v", err)
	}
}
