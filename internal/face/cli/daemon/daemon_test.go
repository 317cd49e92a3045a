package daemon

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/edge/config"
)

func TestRigid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		want backfill.Discipline
		why  string // what the error says
	}{
		{name: "", want: backfill.Discipline{Reserve: 1, Overtake: true, Gangs: true}},
		{name: "gangs", want: backfill.Discipline{Reserve: 1, Overtake: true, Gangs: true}},
		{name: "easy", want: backfill.Discipline{Reserve: 1, Overtake: true}},
		{name: "fcfs", want: backfill.Discipline{Reserve: 1}},
		{name: "skip", want: backfill.Discipline{Overtake: true}},
		{name: "migrate", why: `planner "migrate" is none for live work; choose one of gangs, fcfs, skip, easy, conservative`},
		{name: "fgd", why: `planner "fgd" is none for live work; choose one of gangs, fcfs, skip, easy, conservative`},
		{name: "best", why: `planner "best" is none for live work; choose one of gangs, fcfs, skip, easy, conservative`},
	} {
		got, err := actorConfig(Options{File: config.Daemon{Policy: "fair"}, Mechanism: "sja", Rigid: c.name}, "n")
		switch {
		case c.why == "":
			if err != nil || got.Zones[0].Rigid != c.want {
				t.Errorf("%q: %+v %v, want %+v", c.name, got.Zones[0].Rigid, err, c.want)
			}
		case err == nil || !strings.Contains(err.Error(), c.why) || errkind.Of(err) != errkind.Invalid:
			t.Errorf("%q: %v, want %q", c.name, err, c.why)
		}
	}
	// Everything that is wrong is said at once.
	_, err := actorConfig(Options{File: config.Daemon{Policy: "none"}, Mechanism: "auction", Rigid: "migrate"}, "n")
	for _, part := range []string{`"none"`, `"auction"`, `"migrate"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
}

// TestMechanism: jasda has a market, sja has none, and both let external jobs in; a market without jasda is a mistake.
func TestMechanism(t *testing.T) {
	slow := auction.Config{Close: time.Second}.WithDefaults()
	preset := auction.Config{}.WithDefaults()
	for _, c := range []struct {
		mechanism string
		given     *auction.Config
		want      *auction.Config
		why       string
	}{
		{mechanism: "sja"},
		{mechanism: "jasda", want: &preset},
		{mechanism: "jasda", given: &slow, want: &slow},
		{mechanism: "jasda", given: &auction.Config{Rounds: 17}, why: "rounds is 17"},
		{mechanism: "sja", given: &slow, why: "start with --mechanism jasda"},
		{mechanism: "JASDA", why: `mechanism "JASDA" is not known; want sja, jasda or laminar`},
	} {
		got, err := actorConfig(Options{File: config.Daemon{Policy: "fair", Market: c.given}, Mechanism: c.mechanism}, "n")
		switch {
		case c.why == "":
			if err != nil || !reflect.DeepEqual(got.Zones[0].Market, c.want) || !got.Gate.External {
				t.Errorf("%s: %+v %v, want %+v", c.mechanism, got.Zones[0].Market, err, c.want)
			}
		case err == nil || !strings.Contains(err.Error(), c.why) || errkind.Of(err) != errkind.Invalid:
			t.Errorf("%s: %v, want %q", c.mechanism, err, c.why)
		}
	}
}

func TestPolicyByANameOfBefore(t *testing.T) {
	t.Parallel()
	got, err := actorConfig(Options{File: config.Daemon{Policy: "sla"}, Mechanism: "sja"}, "n")
	if err != nil || got.Zones[0].Policy.Name() != "deadline" {
		t.Errorf("--policy sla: %v, %v; want deadline", got.Zones[0].Policy, err)
	}
}
