package scenario_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
	"sluice.dev/sluice/internal/lab/scenario/play"
)

// lent is a small world without nodes.
const lent = `
scenario: lent
pools:
  - {name: a, atMost: 3, lengths: [2m, 10m, 30m], start: 8s, slices: [{memory: 10Gi, profile: 1g.10gb, speed: 1}]%s}
workload:
  jobs:
    - {at: 0s, name: chain, count: 6, every: 2m, steps: {total: 600, perStep: 1s, every: 5, checkpoint: 1s, restore: 1s}, memory: 4Gi}
    - {at: 3m, name: sweep, items: {total: 900, perItem: 1s, grid: 5, parallelism: 3}, memory: 4Gi}
    - {at: 5m, name: block, rigid: {walltime: 4m}, memory: 4Gi}
window: {limit: 12h}
%s`

// playLent plays it under sja, as often as seeds say, with so many workers.
func playLent(t interface {
	Helper()
	Fatal(...any)
}, pool, more string, workers int, seeds ...uint64) []outcome.Result {
	t.Helper()
	s, err := scenario.Parse("lent.yml", fmt.Appendf(nil, lent, pool, more))
	if err != nil {
		t.Fatal(err)
	}
	m, err := table().Find(s, []string{play.SJA})
	if err != nil {
		t.Fatal(err)
	}
	results, err := play.Run(context.Background(), play.Options{Scenario: s, Mechanisms: m, Seeds: seeds, Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// TestPilotsServeWhateverTheirHostDoes: all work is done on pilots alone, in any gaps, shown or not, however often room is taken back and
// for however long the host refuses or is silent, and while daemons crash; in the end every pilot was given back, and nothing that must
// hold was broken. What is asked for is bounded: nobody asks again and again for what isn't had.
func TestPilotsServeWhateverTheirHostDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		minutes := func(name string, from, to int) string {
			return fmt.Sprintf("%dm%ds", rapid.IntRange(from, to).Draw(t, name), rapid.IntRange(0, 59).Draw(t, name+", seconds"))
		}
		list := func(name string, most int, line func() string) string {
			var all []string
			for range rapid.IntRange(0, most).Draw(t, name) {
				all = append(all, line())
			}
			return "[" + strings.Join(all, ", ") + "]"
		}
		gaps := list("gaps", 3, func() string {
			return fmt.Sprintf("{at: %s, for: %s, count: %d}", minutes("gap", 0, 60), minutes("for", 1, 40),
				rapid.IntRange(1, 3).Draw(t, "count"))
		})
		gaps = strings.Replace(gaps[:len(gaps)-1]+", {at: 70m, count: 2}]", "[, ", "[", 1) // in the end there is room
		pool := fmt.Sprintf(", gaps: %s, ahead: %s, pass: %ds, blind: %v", gaps, minutes("ahead", 0, 60),
			rapid.SampledFrom([]int{0, 1, 10, 30}).Draw(t, "pass"), rapid.Bool().Draw(t, "blind"))
		pool += ", preempt: " + list("preemptions", 4, func() string {
			return fmt.Sprintf("{at: %s, count: %d, grace: %ds, for: %s}", minutes("taken", 0, 100), rapid.IntRange(1, 3).Draw(t, "take"),
				rapid.SampledFrom([]int{0, 5, 30, 120}).Draw(t, "grace"), minutes("stay", 1, 20))
		})
		for _, key := range []string{"refuse", "silent"} {
			at := rapid.IntRange(0, 90).Draw(t, key)
			pool += fmt.Sprintf(", %s: [{from: %dm, to: %dm}]", key, at, at+rapid.IntRange(1, 20).Draw(t, key+" for"))
		}
		more := "faults: " + list("crashes", 3, func() string {
			return fmt.Sprintf("{at: %s, kill: %s, for: %ds}", minutes("crash", 0, 100),
				rapid.SampledFrom([]string{"daemon", "zone, zone: zone", "gate"}).Draw(t, "what"), rapid.IntRange(1, 90).Draw(t, "down"))
		})
		r := playLent(t, pool, more, 1, 3)[0]
		m := r.Metrics
		if len(r.Broken) > 0 || r.Live > 0 || r.Finished != 8 || r.Partial {
			t.Fatalf("%s\n%s\n%d finished, %d are left, broken %v", pool, more, r.Finished, r.Live, r.Broken)
		}
		if r.At.Sub(0).Hours() >= 12 {
			t.Fatalf("%s\n%s\npilots are left", pool, more)
		}
		asked, granted := m.Get(measure.PilotsAsked), m.Get(measure.PilotsGranted)
		if asked > 150 || granted < 1 || granted > asked || m.Get(measure.PilotUseful) <= 0 || m.Get(measure.PilotUseful) > 1 {
			t.Fatalf("%s\n%s\n%v", pool, more, m)
		}
	})
}

// TestPoolsAreTheSameEachTime: neither the number of workers nor another run changes a byte, and the seed does.
func TestPoolsAreTheSameEachTime(t *testing.T) {
	pool := ", pass: 7s, gaps: [{at: 1m, for: 20m15s, count: 3}, {at: 40m, count: 2}], preempt: [{at: 9m, count: 2, grace: 30s, for: 5m}]"
	more := "faults: [{every: 20m, kill: daemon, for: 20s}]\nmodel: {network: {delay: 2ms, jitter: 5ms, loss: 1%}}"
	run := func(workers int) string {
		var runs []measure.Run
		for _, r := range playLent(t, pool, more, workers, 1, 2, 3) {
			if len(r.Broken) > 0 || r.Live > 0 {
				t.Errorf("seed %d: %d are left, broken %v", r.Seed, r.Live, r.Broken)
			}
			r.Seed = 0
			runs = append(runs, r.Run)
		}
		var b strings.Builder
		for i := range runs {
			fmt.Fprintln(&b, runs[i].Metrics)
		}
		return b.String()
	}
	one := run(1)
	if two := run(3); two != one {
		t.Errorf("with three workers\n%s\nwith one\n%s", two, one)
	}
	if lines := strings.Split(one, "\n"); lines[0] == lines[1] {
		t.Error("two seeds are alike: nothing was drawn")
	}
}

// TestWhatGoesWithPools: what can't be played is said, with what to do.
func TestWhatGoesWithPools(t *testing.T) {
	many := strings.Replace(fmt.Sprintf(lent, "", ""), "atMost: 3", "atMost: 10000", 1)
	for _, c := range [][2]string{
		{"scenario: a\npools: [{name: p, atMost: 1, lengths: [2m], slices: [{memory: 1Gi}]}]\nworkload: {jobs: []}",
			"a window with a limit"},
		{fmt.Sprintf(lent, "", "cluster: {nodes: [{gpus: \"sim:a30-24gb=1\", count: 2}], zones: 2}"), "lend to one zone"},
		{fmt.Sprintf(lent, "", "memory: {host: 64Gi}"), "is of nodes that are always"},
		{many + "cluster: {nodes: [{gpus: \"sim:custom=64,mem=10Gi\", count: 1000}]}", "at most 65536"},
	} {
		text, want := c[0], c[1]
		if _, err := scenario.Parse("pools.yml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nwant %q in %v", text, want, err)
		}
	}
	s, err := scenario.Parse("lent.yml", fmt.Appendf(nil, lent, "", ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"easy", "laminar"} {
		m, err := table().Find(s, []string{name})
		if err != nil {
			t.Fatal(err)
		}
		_, err = play.Run(t.Context(), play.Options{Scenario: s, Mechanisms: m})
		if err == nil || !strings.Contains(err.Error(), "has pools") {
			t.Errorf("%s: %v", name, err)
		}
	}
	m, err := table().Find(s, []string{play.JASDA})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := play.Run(t.Context(), play.Options{Scenario: s, Mechanisms: m}); err != nil || r[0].Finished != 8 || len(r[0].Broken) > 0 {
		t.Errorf("under jasda: %+v, %v", r, err)
	}
}
