package cli

import (
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/api/apitest"
)

// TestJobsAreReadByPages: however many are asked for, they come in order, each once, and the note says how many are older and how to
// see them.
func TestJobsAreReadByPages(t *testing.T) {
	fake := apitest.New()
	const n = 2500
	for i := range n {
		fake.Set(status.Job{Name: job.ID(fmt.Sprintf("p%04d", i)), Queue: "paged", Submitted: apitest.At(0)})
	}
	addr := answering(t, fake)
	for _, tc := range []struct {
		args        string
		from, to    int
		note, usage string
	}{
		{"", 1500, n, "1500 older jobs are not shown: --limit or --all shows more of them, --before p1500 those before", ""},
		{"-o name", 0, n, "", ""},
		{"-o name --limit 2100", 400, n, "400 older jobs", ""},
		{"-o name --limit 3", n - 3, n, "2497 older jobs", ""},
		{"-o name --all", 0, n, "", ""},
		{"-o name --limit 2 --before p0010", 8, 10, "8 older jobs", ""},
		{"-o name --before p0000", 0, 0, "", ""},
		{"--limit -1", 0, 0, "", "--limit -1: want a number above 0"},
		{"--limit 0", 0, 0, "", "--limit 0: want a number above 0, or --all for all there are"},
		{"--limit 0 --all", 0, 0, "", "--limit 0: want a number above 0"},
		{"--limit 1 --all", 0, 0, "", "want one of them"},
	} {
		r := sluice(t, addr, "", append([]string{"jobs", "--queue", "paged"}, strings.Fields(tc.args)...)...)
		if tc.usage != "" {
			if r.code != command.ExitUsage || !strings.Contains(r.err, tc.usage) {
				t.Errorf("%s: %+v", tc.args, r)
			}
			continue
		}
		var names []string
		for line := range strings.Lines(r.out) {
			if f := strings.Fields(line); len(f) > 0 && strings.HasPrefix(f[0], "p") {
				names = append(names, f[0])
			}
		}
		if r.code != command.ExitOK || len(names) != tc.to-tc.from || (tc.note == "") != (r.err == "") ||
			!strings.Contains(r.err, tc.note) {
			t.Errorf("%s: %d names, %q, exit %d; want %d", tc.args, len(names), r.err, r.code, tc.to-tc.from)
			continue
		}
		for i, name := range names {
			if want := fmt.Sprintf("p%04d", tc.from+i); name != want {
				t.Fatalf("%s: at place %d is %s, want %s", tc.args, i, name, want)
			}
		}
	}
}

// TestJobsThatAreMissingAreNamed on stderr, and on the screen; the others are shown.
func TestJobsThatAreMissingAreNamed(t *testing.T) {
	fake := apitest.New()
	fake.Warnings = []string{`job "a" is damaged: do this`, `job "b" is damaged: do that`}
	fake.Set(status.Job{Name: "whole", Queue: "default", Submitted: apitest.At(0)})
	r := sluice(t, answering(t, fake), "", "jobs", "-o", "name")
	if want := "sluice: job \"a\" is damaged: do this\nsluice: job \"b\" is damaged: do that\n"; r.code != command.ExitOK ||
		!strings.Contains(r.out, "whole\n") || r.err != want {
		t.Errorf("%+v, want %q on stderr", r, want)
	}
}
