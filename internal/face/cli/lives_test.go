package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/api/apitest"
	"sluice.dev/sluice/internal/face/cli/clitest"
	"sluice.dev/sluice/internal/face/cli/session"
)

// TestPausingSaysWhatItCosts: a rigid job loses all it ran. A person at a terminal is asked, a script has to say --yes,
// and nobody else's stdin is ever read.
func TestPausingSaysWhatItCosts(t *testing.T) {
	gang := status.Cut{Job: "gang", Token: job.Token{Epoch: 1, Seq: 4}, Kind: job.Rigid, Slice: "node-1/0/3g.40gb", Slices: 2,
		Ran: 133 * time.Second, AtRisk: 133 * time.Second}
	train := status.Cut{Job: "train", Token: job.Token{Epoch: 1, Seq: 5}, Kind: job.Steps, Slice: "node-1/0/3g.40gb", Slices: 1,
		Range: job.Range{From: 10, To: 50}, Reported: 20, Ran: 5 * time.Minute, AtRisk: 80 * time.Second}
	cheap, late := train, gang
	cheap.AtRisk = 2 * time.Second
	late.Withdrawn, late.Ran, late.AtRisk = true, 0, 0
	pause := []string{"pause", "node-1/0/3g.40gb"}
	for _, c := range []struct {
		name     string
		cuts     []status.Cut
		args     []string
		terminal bool
		in       string
		code     int
		says     []string
		done     bool
	}{
		{"nothing runs", nil, pause, false, "", command.ExitOK, nil, true},
		{"a script, a gang", []status.Cut{gang}, pause, false, "y\n", command.ExitUsage,
			[]string{"gang (rigid, subjob 1-4): has run 2m13s on 2 slices, and starts again from the beginning", "--yes"}, false},
		{"a script that knows", []status.Cut{gang}, append(pause, "--yes"), false, "", command.ExitOK,
			[]string{"starts again from the beginning"}, true},
		{"a script, much at risk", []status.Cut{train}, pause, false, "", command.ExitUsage,
			[]string{"train (steps, subjob 1-5): has run 5m and reported 20 of 40 units; up to 1m20s is done again"}, false},
		{"a script, little at risk", []status.Cut{cheap}, pause, false, "", command.ExitOK, []string{"up to 2s is done again"}, true},
		{"a script, not begun", []status.Cut{late}, pause, false, "", command.ExitOK, []string{"has not begun"}, true},
		{"a person says yes", []status.Cut{gang}, pause, true, "y\n", command.ExitOK, []string{"[y/N]"}, true},
		{"a person says nothing", []status.Cut{gang}, pause, true, "\n", command.ExitFailed, []string{"[y/N]", "nothing was done"}, false},
		{"a person leaves", []status.Cut{gang}, pause, true, "", command.ExitFailed, []string{"nothing was done"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			fake := apitest.New()
			fake.CutList = c.cuts
			addr := answering(t, fake)
			in := strings.NewReader(c.in)
			var out, errs bytes.Buffer
			code := Run(t.Context(), Deps{
				Args: c.args, Options: session.Options{In: in, Out: &out, Err: &errs, Now: apitest.Now, Patience: -1,
					Interactive: func() bool { return c.terminal },
					Getenv:      func(k string) string { return map[string]string{"SLUICE_SERVER": addr}[k] }},
			})
			if code != c.code {
				t.Errorf("exit %d, want %d: %s", code, c.code, errs.String())
			}
			for _, want := range c.says {
				if !strings.Contains(errs.String(), want) {
					t.Errorf("%q does not say %q", errs.String(), want)
				}
			}
			if done := len(fake.Calls()) > 0; done != c.done {
				t.Errorf("calls %q, want any: %v", fake.Calls(), c.done)
			}
			if !c.terminal && in.Len() != len(c.in) {
				t.Error("it read from stdin")
			}
		})
	}
}

func TestSubmitSaysHowAKnownJobStands(t *testing.T) {
	addr := answering(t, apitest.New())
	file := filepath.Join(clitest.Tree(t, map[string]string{"gang.yml": fmt.Sprintf(jobFile, "gang", "")}), "gang.yml")
	if r := sluice(t, addr, "", "submit", file); r.code != command.ExitFailed {
		t.Errorf("over a job that is over: %+v", r)
	}
	if r := sluice(t, addr, "", "submit", "--replace", file); r.code != command.ExitOK || r.out != "job gang accepted\n" {
		t.Errorf("in its place: %+v", r)
	}
	if r := sluice(t, addr, "", "submit", "--replace", file); r.code != command.ExitFailed || !strings.Contains(r.err, "cancel it first") {
		t.Errorf("in the place of one that is not over: %+v", r)
	}
}

// TestUnquarantineSaysWhatItDid: of a slice that was not quarantined it says so.
func TestUnquarantineSaysWhatItDid(t *testing.T) {
	fake := apitest.New()
	slice := &fake.SliceList[0]
	addr, id := answering(t, fake), string(slice.Slice.ID)
	for state, want := range map[string]string{"quarantined": "unquarantined", "idle": "not quarantined, nothing changed"} {
		slice.State = state
		if r := sluice(t, addr, "", "unquarantine", id); r.code != 0 || r.out != id+" "+want+"\n" {
			t.Errorf("%s: %+v", state, r)
		}
	}
}
