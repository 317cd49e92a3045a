package queue

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if os.Getenv(WorkerVariable) != "" {
		os.Exit(Work())
	}
	os.Exit(m.Run())
}

// endless is a unit's work that has no end, but goes with its worker.
const endless = "while kill -0 $PPID 2> /dev/null; do sleep 0.02; done"

// begin starts a worker as a process of its own, which writes each unit that it has begun, and each that it has done, to a file.
func begin(t *testing.T, queue string, w Worker, work string) (cmd *exec.Cmd, lines func() []string) {
	t.Helper()
	seen := filepath.Join(t.TempDir(), "seen")
	w.Queue = queue
	w.Command = []string{"sh", "-c", `echo "begun $` + UnitVariable + `" >> "$1"; ` + work + `; echo "done $` + UnitVariable + `" >> "$1"`,
		"sh", seen}
	self, err := os.Executable()
	must(t, err)
	text, err := json.Marshal(w)
	must(t, err)
	cmd = exec.Command(self)
	cmd.Env = append(os.Environ(), WorkerVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, func() []string {
		data, _ := os.ReadFile(seen)
		return strings.Split(strings.TrimSpace(string(data)), "\n")
	}
}

// within waits for what has to come.
func within(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// TestAWorkerIsTold: SIGTERM lets it finish what fits into its grace, else it gives its unit back at once; it takes nothing more.
func TestAWorkerIsTold(t *testing.T) {
	for _, c := range []struct {
		name             string
		takes, grace     time.Duration
		work             string
		committed, again int // again: the grants there are once somebody else has pulled all that is left
	}{
		{"it fits", 300 * time.Millisecond, 20 * time.Second, "sleep 0.3", 1, 3},
		{"it does not fit", time.Hour, 20 * time.Second, endless, 0, 4},
		{"it was to fit, and takes longer", 10 * time.Millisecond, margin + 300*time.Millisecond, endless, 0, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := open(t, filepath.Join(t.TempDir(), "queue"))
			must(t, q.Push(3))
			server := httptest.NewServer(q)
			defer server.Close()
			cmd, lines := begin(t, server.URL, Worker{Takes: c.takes, Grace: c.grace}, c.work)
			within(t, "it has begun", func() bool { return lines()[0] == "begun 0" })
			must(t, cmd.Process.Signal(syscall.SIGTERM))
			if err := cmd.Wait(); err != nil {
				t.Errorf("it ended with %v", err)
			}
			if n := q.Counts(); n.Committed != c.committed || n.Granted != 1 {
				t.Errorf("%+v, it wrote %q", n, lines())
			}
			for ok := true; ok; { // what it gave back is there, and does not wait for the end of its lease
				var err error
				_, ok, err = q.Pull()
				must(t, err)
			}
			if n := q.Counts(); n.Granted != c.again {
				t.Errorf("%d grants in all, want %d", n.Granted, c.again)
			}
		})
	}
}

// TestAWorkerIsKilled: its unit is given again when its lease has ended, and whoever comes late with the first grant is refused.
func TestAWorkerIsKilled(t *testing.T) {
	q, err := Open(filepath.Join(t.TempDir(), "queue"), 500*time.Millisecond)
	must(t, err)
	must(t, q.Push(1))
	server := httptest.NewServer(q)
	defer server.Close()
	cmd, lines := begin(t, server.URL, Worker{Grace: time.Second}, endless)
	within(t, "it has begun", func() bool { return lines()[0] == "begun 0" })
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	begin(t, server.URL, Worker{Grace: time.Second}, "true")
	within(t, "it is committed", func() bool { return q.Counts().Committed == 1 })
	late := Worker{Queue: server.URL}
	late.tell("/commit", Grant{Unit: 0, Token: 1})
	if n := q.Counts(); n.Committed != 1 || n.Granted != 2 || n.Refused != 1 {
		t.Errorf("%+v", n)
	}
}
