package cli

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/api/apitest"
	"sluice.dev/sluice/internal/face/cli/session"
)

// emptying is a daemon whose second zone has one job less each time somebody looks, and that is away once meanwhile.
type emptying struct {
	*apitest.Fake
	looks atomic.Int32
}

func (e *emptying) Zones(context.Context) ([]status.Zone, error) {
	n := int(e.looks.Add(1))
	if n == 4 {
		return nil, errkind.Errorf(errkind.Unavailable, "it is stopping")
	}
	left := max(0, 6-n)
	return []status.Zone{{ID: "local-1"}, {ID: "local-2", Nodes: e.ZoneList[1].Nodes, Drained: n > 1, Homed: max(0, left-1),
		Running: left / 4, Over: min(left, 1)}}, nil
}

// TestADrainIsAskedForAndWaitedFor: a person is asked, a script says --yes, and --wait ends when nothing is left.
func TestADrainIsAskedForAndWaitedFor(t *testing.T) {
	drain := []string{"zones", "drain", "local-2"}
	for _, c := range []struct {
		name     string
		args     []string
		terminal bool
		in       string
		code     int
		out, err string
		looks    int32
	}{
		{"a person says yes", drain, true, "y\n", command.ExitOK,
			"zone local-2 drained; 3 jobs are at home there, 1 of them run; 1 that is over is not archived yet",
			"4 jobs that are not over move to other zones, 1 of which first end there", 2},
		{"a person says nothing", drain, true, "\n", command.ExitFailed, "", "nothing was done", 1},
		{"a script", drain, false, "y\n", command.ExitUsage, "", "give --yes", 1},
		{"a script that waits", append(drain, "--yes", "--wait"), false, "", command.ExitOK,
			"zone local-2 drained, and empty: it may be left out at the daemon's next start, with zones: [local-1] and nodes: 1", "is back",
			6},
	} {
		t.Run(c.name, func(t *testing.T) {
			fake := &emptying{Fake: apitest.New()}
			addr := served(t, fake)
			var out, errs bytes.Buffer
			code := Run(t.Context(), Deps{
				Args: c.args, Options: session.Options{In: strings.NewReader(c.in), Out: &out, Err: &errs, Now: apitest.Now, Patience: -1,
					Interactive: func() bool { return c.terminal },
					Getenv:      func(k string) string { return map[string]string{"SLUICE_SERVER": addr}[k] }},
			})
			if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.err) ||
				fake.looks.Load() != c.looks {
				t.Errorf("exit %d after %d looks: %q, %q; want %d after %d: %q, %q", code, fake.looks.Load(), out.String(), errs.String(),
					c.code, c.looks, c.out, c.err)
			}
			if done := len(fake.Calls()) > 0; done != (c.code == command.ExitOK) {
				t.Errorf("calls %q", fake.Calls())
			}
		})
	}
}

// TestTheOnlyZoneIsNotDrained: the answer says what a second one takes.
func TestTheOnlyZoneIsNotDrained(t *testing.T) {
	fake := apitest.New()
	fake.ZoneList = fake.ZoneList[:1]
	r := sluice(t, answering(t, fake), "", "zones", "drain", "local-1", "--yes")
	if r.code != command.ExitFailed || !strings.Contains(r.err, "zones: in the file of --config") || len(fake.Calls()) > 0 {
		t.Errorf("%+v", r)
	}
}
