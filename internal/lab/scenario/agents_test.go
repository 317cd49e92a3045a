package scenario

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
)

func TestAgentsAreRead(t *testing.T) {
	s, err := Load("small", strict.Set{Path: "market", Value: "{lambda: 0.3, weigh: time, repack: never, starve: never}"},
		strict.Set{Path: "workload.agents", Value: "[{strategy: honest, share: 60%, think: 5ms}, {name: liars, strategy: shade, by: " +
			"2.5, share: 0.1}]"},
		strict.Set{Path: "workload.synthetic.1.agent", Value: "liars"})
	if err != nil {
		t.Fatal(err)
	}
	a := s.Workload.Agents
	if len(a) != 2 || a[0].Name != "honest" || a[0].Share != 600_000 || a[0].Think != 5*time.Millisecond || a[1].By != 2500 ||
		a[1].Think != time.Millisecond ||
		a[1].Strategy.Name != "shade" || s.Workload.Streams[1].Agent != "liars" {
		t.Errorf("agents %+v", a)
	}
	if m := s.Settings.Market; m.Weights.Lambda != 300_000 || !m.PerTime || m.Starve != -1 || m.Variants != 4 {
		t.Errorf("market %+v", m)
	}
	if got := s.groups(); !slices.Equal(got, []string{"honest", "liars", "own"}) {
		t.Errorf("groups %v", got)
	}
	known := outcome.Known{Groups: s.groups()}
	if _, err := known.Parse("jasda.waitMean@liars < jasda.waitMean@honest"); err != nil {
		t.Error(err)
	}
	if _, err := known.Parse("waitMean@nobody < 5m"); err == nil {
		t.Error("there is a group nobody")
	}
	_, err = Load("small", strict.Set{Path: "market", Value: "{lamda: 0.3}"},
		strict.Set{Path: "workload.jobs", Value: "[{at: 0s, name: r, rigid: {walltime: 5m}, memory: 4Gi, agent: honest}]"},
		strict.Set{Path: "workload.agents", Value: "[{strategy: honest, share: 60%}, {strategy: honest, by: 3}, {strategy: hnest, " +
			"share: 50%}, {name: own, strategy: slow}]"},
		strict.Set{Path: "workload.synthetic.1.agent", Value: "liar"})
	for _, want := range []string{
		`market.lamda: unknown key; did you mean "lambda"?`, "the strategy honest has no number", "there are agents honest already",
		`there is no strategy "hnest"; did you mean "honest"?`,
		"add up to more than all jobs", "stands for jobs without an agent", "nobody bids for a rigid job", `there are no agents "liar"`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in %v", want, err)
		}
	}
}
