package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/command"
)

// TestCheckOfAForecast: an answer of -o json, the last of several, stands beside what a daemon remembers; what can't be compared is said.
func TestCheckOfAForecast(t *testing.T) {
	dir := t.TempDir()
	dump, nodes := slurmDump(func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	})
	own := filepath.Join(dir, "mine.yml")
	if err := os.WriteFile(own, []byte("- {at: 0s, name: scan, items: {total: 100, perItem: 10s}, memory: 1Gi}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	answer := sluice(t, "forecast", dump, nodes, "--jobs", own, "--quick", "-o", "json")
	before := filepath.Join(dir, "before.json")
	if err := os.WriteFile(before, []byte(answer.out+answer.out), 0o600); err != nil || answer.code != 0 {
		t.Fatal(err, answer)
	}
	other := filepath.Join(dir, "other.json")
	if err := os.WriteFile(other, []byte(`{"items":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	from := quantity.Instant(1_700_000_000) * quantity.Instant(time.Second)
	day := func(long time.Duration) status.History {
		return status.History{From: from, To: from.Add(long), Slices: []status.SliceHistory{{Slice: protocol.Slice{Speed: 1000},
			Spans: []status.Span{{Start: from, End: from.Add(12 * time.Hour)}, {Kind: protocol.ForLease, Start: from.Add(12 * time.Hour),
				End: from.Add(24 * time.Hour), UsedStart: from.Add(12 * time.Hour), UsedEnd: from.Add(24 * time.Hour),
				Committed: job.Range{To: 10}}}}}}
	}
	for name, c := range map[string]struct {
		file, backlog, format, mechanism string
		long                             time.Duration
		err                              error
		code                             int
		says                             string
	}{
		"text":      {file: before, long: 24 * time.Hour, says: "No verdict: 50.0% kept"},
		"json":      {file: before, backlog: "yours", format: "json", long: 24 * time.Hour, says: `"keptGPUHours": 12`},
		"too young": {file: before, long: 3 * time.Hour, code: command.ExitUsage, says: "the daemon remembers 3h0m0s"},
		"almost a day": {file: before, long: 24*time.Hour - 2*time.Minute, code: command.ExitUsage,
			says: "the daemon remembers 23h58m0s"},
		// Its memory is a day long, and some of that passed before it answered.
		"all of a day": {file: before, long: 24*time.Hour - time.Minute, says: "No verdict: "},
		"mechanism":    {file: before, mechanism: "other", long: 24 * time.Hour, code: command.ExitUsage, says: `the daemon runs "other"`},
		"backlog":      {file: before, backlog: "x", long: 24 * time.Hour, code: command.ExitUsage, says: "the backlogs yours"},
		"no daemon": {file: before, err: &command.Failure{Code: command.ExitUnavailable, Err: errors.New("no answer")},
			code: command.ExitUnavailable, says: "no answer"},
		"no file":    {file: before + "x", code: command.ExitUsage, says: "no such file"},
		"not a file": {file: own, code: command.ExitUsage, says: "this is no answer"},
		"empty":      {file: os.DevNull, code: command.ExitUsage, says: "this is no answer"},
	} {
		var out strings.Builder
		a := &command.App{Out: &out, Format: c.format}
		err := checkForecast(t.Context(), a, &checkFlags{c.file, c.backlog}, func(context.Context) (string, status.History, error) {
			if c.mechanism == "" {
				c.mechanism = "sja"
			}
			return c.mechanism, day(c.long), c.err
		})
		switch {
		case c.code == 0 && (err != nil || !strings.Contains(out.String(), c.says)):
			t.Errorf("%s: %v, %q; want %q", name, err, out.String(), c.says)
		case c.code != 0 && (err == nil || command.ExitCode(err) != c.code || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v; want %d, %q", name, err, c.code, c.says)
		}
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--check", before}, command.ExitUnavailable, "127.0.0.1:1"},
		{[]string{"--check", other}, command.ExitUsage, "this is no answer: give what"}, // before a daemon is asked
		{[]string{"--check", before, dump}, command.ExitUsage, "reads no log"},
		{[]string{"--check", before, "--live"}, command.ExitUsage, "--live: --check makes no forecast"},
		{[]string{dump, "--backlog", "x"}, command.ExitUsage, "it goes with --check"},
	} {
		if r := sluice(t, append([]string{"forecast"}, c.args...)...); r.code != c.code || !strings.Contains(r.err, c.says) {
			t.Errorf("%v: exit %d, %q; want %d, %q", c.args, r.code, r.err, c.code, c.says)
		}
	}
}
