package cli

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/planner"
)

func TestRigid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		want planner.Discipline
		why  string // what the error says
	}{
		{name: "", want: planner.Discipline{Reserve: 1, Overtake: true}},
		{name: "easy", want: planner.Discipline{Reserve: 1, Overtake: true}},
		{name: "fcfs", want: planner.Discipline{Reserve: 1}},
		{name: "skip", want: planner.Discipline{Overtake: true}},
		{name: "migrate", why: `planner "migrate" is a baseline that stops running work; choose one of fcfs, skip, easy, conservative`},
		{name: "fgd", why: `planner "fgd" is a baseline for simulations; choose one of fcfs, skip, easy, conservative`},
		{name: "best", why: `planner "best": there is none of that name; choose one of fcfs, skip, easy, conservative`},
	} {
		got, err := actorConfig(UpOptions{Policy: "fairness", Mechanism: "sja", Rigid: c.name}, "n")
		switch {
		case c.why == "":
			if err != nil || got.Zone.Rigid != c.want {
				t.Errorf("%q: %+v %v, want %+v", c.name, got.Zone.Rigid, err, c.want)
			}
		case err == nil || !strings.Contains(err.Error(), c.why) || errkind.Of(err) != errkind.Invalid:
			t.Errorf("%q: %v, want %q", c.name, err, c.why)
		}
	}
	// Everything that is wrong is said at once.
	_, err := actorConfig(UpOptions{Policy: "none", Mechanism: "jasda", Rigid: "migrate"}, "n")
	for _, part := range []string{`"none"`, `"jasda"`, `"migrate"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
}
