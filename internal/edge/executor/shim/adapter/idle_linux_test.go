package adapter

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/edge/executor/shim"
)

// TestAllAnswered: a command that has answered all lines and does not end is ended, and its answers count. What it did after the last
// answer is said apart, since no line has cost it.
func TestAllAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		body  string
		grace time.Duration
		// stop it when all is answered.
		stop bool
		says string
		idle time.Duration
	}{
		"ends in its grace":        {"cat; sleep 0.4", patience, false, "", 300 * time.Millisecond},
		"ends by SIGTERM":          {"cat; exec sleep 600", 500 * time.Millisecond, false, "SIGTERM", 400 * time.Millisecond},
		"does not heed SIGTERM":    {"trap '' TERM; cat; exec sleep 600", 500 * time.Millisecond, false, "SIGKILL", 900 * time.Millisecond},
		"ends well when told":      {"trap 'exit 0' TERM; cat; while :; do sleep 0.05; done", 300 * time.Millisecond, false, "SIGTERM", 0},
		"is cut meanwhile":         {"cat; exec sleep 600", patience, true, "", 0},
		"is cut and does not heed": {"trap '' TERM; cat; exec sleep 600", 2 * time.Second, true, "", 0},
		"writes more":              {"cat; sleep 0.3; echo more; exec sleep 600", patience, false, "wrote 11 lines for 10", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worldOf(t, numbers(30), 10, 20)
			w.s.Grace = c.grace
			p, said := w.command("sh", "-c", c.body)
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			if c.stop {
				w.await(20)
				if err := p.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			}
			over := make(chan error, 1)
			go func() { over <- p.Wait() }()
			select {
			case <-over:
			case <-time.After(patience / 2):
				t.Fatalf("it goes on, and says %s", said)
			}
			status, to := 0, int64(20)
			if name == "writes more" {
				status, to = 1, 10
			}
			if got := p.ProcessState.ExitCode(); got != status || w.progress() != to || !strings.Contains(said.String(), c.says) {
				t.Errorf("status %d, progress %d, says %s; want %d, %d, %q", got, w.progress(), said, status, to, c.says)
			}
			if c.says == "" && strings.Contains(said.String(), "sluice:") {
				t.Errorf("it says %s; want nothing", said)
			}
			if got, want := w.answers(), strings.Join(strings.SplitAfter(numbers(30), "\n")[10:to], ""); got != want {
				t.Errorf("answers %q, want %q", got, want)
			}
			if got := w.said().Idle; got < c.idle {
				t.Errorf("idle for %v, want at least %v", got, c.idle)
			}
		})
	}
}

// TestNotIdle: a piece of which not all is answered has no time that no line has cost.
func TestNotIdle(t *testing.T) {
	t.Parallel()
	w := worldOf(t, numbers(30), 10, 20)
	p, said := w.command("sh", "-c", "head -n 4; sleep 0.3; exit 7")
	if err := p.Run(); p.ProcessState.ExitCode() != 7 || w.progress() != 14 || w.said().Idle != 0 {
		t.Errorf("%v, %+v: %s", err, w.said(), said)
	}
}

// said is the progress file.
func (w *world) said() (p shim.Progress) {
	w.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, "progress", "progress.json"))
	if err = errors.Join(err, json.Unmarshal(data, &p)); err != nil {
		w.Fatal(err)
	}
	return p
}
