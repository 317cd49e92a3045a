package process_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim/adapter"
)

// TestACommandThatKnowsNoContract: the lines of a piece are answered by a program that reads stdin, how it ends is judged by what it has
// answered, and who asks it to end is heard by the adapter alone.
func TestACommandThatKnowsNoContract(t *testing.T) {
	input := filepath.Join(t.TempDir(), "input")
	var text strings.Builder
	for range 10 {
		text.WriteString(strings.Repeat("line", 300) + "\n")
	}
	if err := os.WriteFile(input, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	lines := func(length time.Duration, script string) protocol.Message {
		m := polite(lease(length, "sh", "-c", script))
		m.Body.(*protocol.Work).Spec.Launch.Adapter.Lines.Input = input
		return m
	}
	for name, c := range map[string]struct {
		script string
		// stop it once there is progress.
		stop    bool
		outcome job.Outcome
		to      int64
		says    string
	}{
		"answers":            {"cat", false, job.Done, 10, ""},
		"fails at a line":    {"head -n 4; exit 7", false, job.ExitFailed, 4, "exit status 7"},
		"miscounts":          {"cat; echo", false, job.ExitFailed, 0, "wrote 11 lines for 10"},
		"can't begin":        {"echo no module >&2; exit 1", false, job.StartFailed, 0, "no module"},
		"is cut":             {"while read x; do echo $x; sleep 0.3; done", true, job.Yielded, -1, ""},
		"does not end":       {"cat; exec sleep 60", false, job.Done, 10, ""},
		"is cut and is deaf": {"trap '' TERM; head -n 1; sleep 60", true, job.Yielded, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(o *process.Options) { o.Report = 50 * time.Millisecond })
			m := lines(time.Minute, c.script)
			if name == "does not end" {
				m.Body.(*protocol.Work).Spec.Launch.Grace = 300 * time.Millisecond
			}
			b.do(m)
			b.next(protocol.Started)
			if c.stop {
				b.await("progress", func() bool { p, ok := b.dir().ReadProgress(); return ok && p.Progress > 0 })
				b.do(protocol.Message{Kind: protocol.Stop, Token: token, Job: "j", Body: &protocol.Halt{}})
			}
			r := b.exited(c.outcome)
			if c.to >= 0 && r.Progress != c.to || !strings.Contains(r.Detail, c.says) || c.stop && (r.Progress < 1 || r.Progress == 10) {
				t.Errorf("%+v", r)
			}
			if name == "does not end" && r.Idle < 300*time.Millisecond || r.Own() > r.Ran()-r.Idle {
				t.Errorf("idle for %v of %v", r.Idle, r.Ran())
			}
			data, err := os.ReadFile(filepath.Join(b.dir().Output(), adapter.Answers))
			if err != nil || !strings.HasPrefix(text.String(), string(data)) && c.to != 0 ||
				strings.Count(string(data), "\n") < int(r.Progress) {
				t.Errorf("%d bytes of answers for %d lines: %v", len(data), r.Progress, err)
			}
		})
	}
}
