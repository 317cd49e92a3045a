package cli

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/face/api/apitest"
)

// lending are the providers of a head, as a test sets them.
type lending struct {
	list  []status.Provider
	taken bool
	did   []string
}

func (l *lending) Providers() []status.Provider { return l.list }

func (l *lending) note(what, name string) error {
	if name != "scavenger" {
		return errkind.Errorf(errkind.NotFound, "there is no provider %q; there are: scavenger, nights", name)
	}
	l.did = append(l.did, what)
	return nil
}

func (l *lending) PauseProvider(_ context.Context, name, why string) error {
	return l.note("pause "+name+" "+why, name)
}

func (l *lending) ResumeProvider(_ context.Context, name string) error {
	return l.note("resume "+name, name)
}

func (l *lending) TryProvider(_ context.Context, name string) (status.Trial, error) {
	t := status.Trial{Provider: l.list[0], Length: 30 * time.Minute, Wanted: l.taken, Taken: l.taken,
		Command: "sbatch --test-only --time=30"}
	if t.Why = "allocation failure: Invalid account"; l.taken {
		t.Why, t.Starts = "", quantity.At(apitest.Now().Add(time.Minute))
	}
	return t, l.note("try "+name, name)
}

func lent() *lending {
	at := func(d time.Duration) quantity.Instant { return quantity.At(apitest.Now().Add(d)) }
	return &lending{list: []status.Provider{{
		Name: "scavenger", Kind: "slurm", Describes: "slurm: partition preempt, gpu:1g.10gb:1", Seen: at(-2 * time.Second), Most: 8,
		Slices: 1, Lengths: []time.Duration{10 * time.Minute, 30 * time.Minute, 2 * time.Hour}, Decided: at(-time.Second),
		Next: at(29 * time.Second),
		Why:  "one pilot of 30m is asked for: 40m of work wait that no slice serves sooner",
		Pilots: []status.Pilot{
			{Name: "scavenger-a1b2c3d4", State: "joined", ID: "41", Length: 30 * time.Minute, Asked: at(-11 * time.Minute),
				Started: at(-10 * time.Minute), Joined: at(-9 * time.Minute), Until: at(20 * time.Minute), Idle: at(-time.Minute)},
			{Name: "scavenger-b1b2c3d4", State: "waiting", ID: "43", Length: 2 * time.Hour, Asked: at(-time.Minute),
				Expected: at(time.Hour), Why: "Priority"},
			{Name: "scavenger-c1b2c3d4", State: "sent", Length: 10 * time.Minute, Asked: at(-time.Second)},
		},
		Ended: []status.Ended{{How: "done", Count: 12}, {How: "preempted", Count: 3}},
		Endings: []status.PilotEnd{{Name: "scavenger-z1b2c3d4", How: "preempted", Why: "PREEMPTED", Length: 2 * time.Hour,
			Asked: at(-2 * time.Hour), Started: at(-time.Hour), Joined: at(-59 * time.Minute), Ended: at(-30 * time.Minute)}},
	}, {
		Name: "nights", Kind: "slurm", Describes: "slurm: partition gpu", Paused: "eve: maintenance", Most: 2, Slices: 4, Blind: true,
		Silent: "squeue: Unable to contact slurm controller", Lengths: []time.Duration{time.Hour},
	}}}
}

func (l *lending) ask(t *testing.T, args ...string) result {
	t.Helper()
	o := api.Options{Service: apitest.New(), Now: apitest.Now}
	if l != nil {
		o.Providers = l
	}
	s := httptest.NewServer(api.Handler(o))
	t.Cleanup(s.Close)
	return sluice(t, strings.TrimPrefix(s.URL, "http://"), "", args...)
}

func TestProvidersAreShown(t *testing.T) {
	var b strings.Builder
	for _, args := range []string{"providers", "providers -o wide", "providers -o json", "providers -o name", "providers scavenger",
		"providers scavenger -o wide", "providers nights", "providers nowhere", "providers scavenger -o yaml", "providers test scavenger",
		"providers pause scavenger --why maintenance", "providers resume scavenger nowhere", "providers test nowhere", "providers pause"} {
		r := lent().ask(t, strings.Fields(args)...)
		fmt.Fprintf(&b, "$ sluice %s\n%s%s[%d]\n\n", args, r.out, r.err, r.code)
	}
	golden(t, "testdata/providers.golden", b.String())
}

func TestProvidersAreTold(t *testing.T) {
	l := lent()
	l.taken = true
	for args, want := range map[string]string{"pause scavenger --why x": "pause scavenger x", "resume scavenger": "resume scavenger",
		"test scavenger": "try scavenger"} {
		l.did = nil
		r := l.ask(t, append([]string{"providers"}, strings.Fields(args)...)...)
		if r.code != command.ExitOK || len(l.did) != 1 || l.did[0] != want {
			t.Errorf("%s: %+v, did %q", args, r, l.did)
		}
	}
	r := l.ask(t, "providers", "test", "scavenger")
	if !strings.Contains(r.out, "it would take it, and start it at") || !strings.Contains(r.out, "sbatch --test-only") {
		t.Error(r.out)
	}
	r = (*lending)(nil).ask(t, "providers")
	if r.code != command.ExitOK || !strings.Contains(r.out+r.err, "no providers") {
		t.Errorf("%+v", r)
	}
	if r = (*lending)(nil).ask(t, "providers", "x"); r.code != command.ExitFailed || !strings.Contains(r.err, "no providers") {
		t.Errorf("%+v", r)
	}
}
