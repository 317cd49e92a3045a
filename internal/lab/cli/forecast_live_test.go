package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/lab/live"
)

// TestForecastOfARecord: a directory that --live made is answered with --once, by its name, and file by file alike; what can't be is said.
func TestForecastOfARecord(t *testing.T) {
	dir, short := t.TempDir(), t.TempDir()
	const from, header = 1_790_035_200, "JobIDRaw\\u001fJobID\\u001fState\\u001fSubmit\\u001fStart\\u001fEnd\\u001fAllocTRES\\u001fNodeList"
	for day := range 2 {
		text := ""
		for hour := range 24 {
			at := from + (24*day+hour)*3600
			if hour == 0 {
				text += fmt.Sprintf(`{"at":%d,"begin":"slurm","every":1800,"after":%d}`+"\n", at, (at-3600)*day)
				text += fmt.Sprintf(`{"at":%d,"nodes":["NodeName=n1 Gres=gpu:a100:2 State=IDLE Partitions=debug"],`+
					`"reservations":[]}`+"\n", at)
			}
			text += fmt.Sprintf(`{"at":%d,"jobs":["%s","%d\u001f%d\u001fCOMPLETED\u001f%d\u001f%d\u001f%d\u001fgres/gpu=1\u001fn1"],`+
				`"seen":true}`+"\n", at, header, at, at, at-1800, at-1800, at-600)
		}
		if day == 1 {
			text += fmt.Sprintf(`{"at":%d,"seen":true}`+"\n"+`{"at":17`, from+48*3600)
		}
		name := filepath.Join(dir, fmt.Sprintf("2026-09-%d.jsonl", 22+day))
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if day == 0 {
			if err := os.WriteFile(filepath.Join(short, "2026-09-22.jsonl"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	own := filepath.Join(dir, "mine.yml")
	if err := os.WriteFile(own, []byte("- {at: 0s, name: scan, items: {total: 100, perItem: 10s}, memory: 1Gi}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	once := sluice(t, "forecast", "--live", "--once", "--record", dir, "--jobs", own, "--quick")
	for _, says := range []string{"The record: 48 runs on 2 GPUs or slices of 1 node over 2 whole days.", "Don't install",
		"A line of a record that is none (1 times"} {
		if once.code != 0 || !strings.Contains(once.out, says) {
			t.Errorf("exit %d, %q, %q: want %q", once.code, once.out, once.err, says)
		}
	}
	for _, args := range [][]string{{dir}, {filepath.Join(dir, "2026-09-23.jsonl"), filepath.Join(dir, "2026-09-22.jsonl")}} {
		if got := sluice(t, append([]string{"forecast", "--jobs", own, "--quick"}, args...)...); got.out != once.out {
			t.Errorf("%v: exit %d, %q, %q", args, got.code, got.out, got.err)
		}
	}
	d, err := live.Open(dir)
	if err != nil || d.Days() != 2 || recorded(d) != "2 d 0 h 0 min recorded in "+dir {
		t.Fatalf("%v: %v", d, err)
	}
	defer d.Close()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--live", "--once", "--record", t.TempDir()}, command.ExitUsage, "holds no record: sluice forecast --live makes one"},
		{[]string{t.TempDir()}, command.ExitUsage, "holds no record"},
		{[]string{"--live", "--once", "--record", short, "--quick"}, command.ExitUsage, "less than a day"},
		{[]string{"--live", "--record", dir}, command.ExitFailed, "is recorded by another process"},
		{[]string{"--live", dir}, command.ExitUsage, "--live reads no files"},
		{[]string{"--live", "--every", "1s"}, command.ExitUsage, "want whole seconds, 10s to 10m"},
		{[]string{"--live"}, command.ExitUsage, "--record: want a directory"},
		{[]string{"--live", "--prometheus", "http://x"}, command.ExitUsage, "leave one out"},
		{[]string{"--live", "--kubeconfig", "x"}, command.ExitUsage, "--kubeconfig: it goes with --live --kubernetes"},
		{[]string{dir, "--kubernetes"}, command.ExitUsage, "--kubernetes: it goes with --live"},
		{[]string{dir, "--once"}, command.ExitUsage, "--once: it goes with --live"},
	} {
		if r := sluice(t, append([]string{"forecast"}, c.args...)...); r.code != c.code || !strings.Contains(r.err, c.says) {
			t.Errorf("%v: exit %d, %q; want %d, %q", c.args, r.code, r.err, c.code, c.says)
		}
	}
}

// TestForecastOfAClustersRecord: what was seen of a Kubernetes is answered by a program that can reach none, without names if so wished.
func TestForecastOfAClustersRecord(t *testing.T) {
	dir := t.TempDir()
	const from = 1_790_035_200
	text := ""
	for hour := range 48 {
		at := from + hour*3600
		begin := ""
		if hour == 0 {
			begin = fmt.Sprintf(`{"at":%d,"begin":"kubernetes","every":1800}`+"\n"+
				`{"at":%d,"hosts":[{"name":"n1","devices":{"nvidia.com/gpu":2},"product":"secret-gpu"}]}`+"\n", at, at)
		}
		text += begin + fmt.Sprintf(`{"at":%d,"pods":[{"uid":"u%d","namespace":"secret-space","name":"secret-pod","node":"n1",`+
			`"created":%d,"scheduled":%d,`+
			`"ended":%d,"phase":"Succeeded","devices":{"nvidia.com/gpu":1}}]}`+"\n"+`{"at":%d,"seen":true,"waiting":1}`+"\n",
			at, hour, at-1800, at-1800, at-600, at)
	}
	text += fmt.Sprintf(`{"at":%d,"seen":true}`+"\n", from+48*3600)
	own := filepath.Join(dir, "mine.yml")
	for name, content := range map[string]string{filepath.Join(dir, "2026-09-22.jsonl"): text,
		own: "- {at: 0s, name: scan, items: {total: 100, perItem: 10s}, memory: 1Gi}\n"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		more  []string
		named bool
	}{{nil, true}, {[]string{"--anonymize"}, false}} {
		args := []string{"forecast", "--live", "--once", "--kubernetes", "--record", dir, "--jobs", own, "--quick"}
		r := sluice(t, append(args, c.more...)...)
		if r.code != 0 || !strings.Contains(r.out, "The record: 48 runs on 2 GPUs or slices of 1 node over 2 whole days.") ||
			strings.Contains(r.out, "secret-space") != c.named || !c.named && strings.Contains(r.out, "secret") {
			t.Errorf("%v: exit %d, %q, %q", c.more, r.code, r.out, r.err)
		}
	}
}
