package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/face/api/apitest"
	"sluice.dev/sluice/internal/face/cli/session"
)

// console is a terminal: what the command sees, and what somebody at it sees and types.
type console struct {
	t      *testing.T
	master *os.File
	slave  *os.File
	seen   safe
}

func newConsole(t *testing.T, columns, rows uint16) *console {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	fd := int(master.Fd())
	if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}); err != nil {
		t.Fatal(err)
	}
	c := &console{t: t, master: master, slave: slave}
	go func() { // ends when both ends are closed
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			_, _ = c.seen.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = slave.Close()
		_ = master.Close()
	})
	return c
}

// run runs the command at the terminal.
func (c *console) run(addr string, env map[string]string, args ...string) <-chan int {
	done := make(chan int, 1)
	go func() {
		done <- Run(c.t.Context(), Deps{
			Args: args, Options: session.Options{Version: "v1", Commit: "abc", In: c.slave, Out: c.slave, Err: c.slave, Now: apitest.Now,
				Patience: -1,
				Getenv: func(k string) string {
					if k == "SLUICE_SERVER" {
						return addr
					}
					return env[k]
				}},
		})
	}()
	return done
}

func (c *console) see(text string) {
	c.t.Helper()
	eventually(c.t, fmt.Sprintf("%q is seen in %q", text, c.seen.String()), func() bool { return strings.Contains(c.seen.String(), text) })
}

func (c *console) typed(keys string) {
	c.t.Helper()
	if _, err := c.master.WriteString(keys); err != nil {
		c.t.Fatal(err)
	}
}

func (c *console) ends(done <-chan int, want int) {
	c.t.Helper()
	select {
	case code := <-done:
		if code != want {
			c.t.Errorf("exit %d, want %d: %q", code, want, c.seen.String())
		}
	case <-time.After(time.Minute):
		c.t.Fatalf("still there after a minute: %q", c.seen.String())
	}
}

const takes, gives = "\x1b[?1049h", "\x1b[?1049l"

// TestTopAtATerminal takes the whole terminal, follows its size, ends with q and gives the terminal back as it was.
func TestTopAtATerminal(t *testing.T) {
	c := newConsole(t, 80, 24)
	before, err := unix.IoctlGetTermios(int(c.slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	done := c.run(answering(t, apitest.New()), nil, "top", "--every", "100ms")
	c.see(takes)
	c.see("sluice top  node-1")
	c.see("\x1b[32m") // what runs is green
	c.typed("zzjk\x1b[A q")
	c.ends(done, 0)
	if !strings.HasSuffix(c.seen.String(), gives) {
		eventually(t, "the terminal is given back", func() bool { return strings.HasSuffix(c.seen.String(), gives) })
	}
	after, err := unix.IoctlGetTermios(int(c.slave.Fd()), unix.TCGETS)
	if err != nil || *after != *before {
		t.Errorf("the terminal is %+v, was %+v (%v)", after, before, err)
	}
}

// TestNoColor: NO_COLOR leaves color out, and nothing else.
func TestNoColor(t *testing.T) {
	c := newConsole(t, 80, 24)
	done := c.run(answering(t, apitest.New()), map[string]string{"NO_COLOR": "1"}, "jobs", "--watch")
	c.see("count-words")
	c.typed("q")
	c.ends(done, 0)
	if s := c.seen.String(); strings.Contains(s, "\x1b[32m") || strings.Contains(s, "\x1b[31m") || !strings.Contains(s, "\x1b[7m") {
		t.Errorf("%q", s)
	}
}

// TestADumbTerminal is not taken over.
func TestADumbTerminal(t *testing.T) {
	c := newConsole(t, 80, 24)
	c.ends(c.run(answering(t, apitest.New()), map[string]string{"TERM": "dumb"}, "top"), 0)
	c.see("count-words")
	if s := c.seen.String(); strings.Contains(s, "\x1b") {
		t.Errorf("%q", s)
	}
}

// TestWaitAtATerminal rewrites one line, and takes it away at the end.
func TestWaitAtATerminal(t *testing.T) {
	fake := apitest.New()
	c := newConsole(t, 80, 24)
	done := c.run(answering(t, fake), nil, "wait", "train")
	c.see("\r\x1b[Ktrain  PENDING")
	fake.Set(status.Job{Name: "train", State: job.Finished, Kind: job.Steps, Total: 9, Progress: 9, Unit: "step",
		Reason: "\x1b]0;evil\x07"})
	c.ends(done, 0)
	c.see("\r\x1b[Kjob train COMPLETED, 9/9 100% steps: ^[]0;evil^G")
}

// TestLogsAtATerminal: what a job wrote does not reach the terminal as it is, unless that is asked for.
func TestLogsAtATerminal(t *testing.T) {
	fake := apitest.New()
	fake.LogText = "\x1b[2Jgone\u009b31m\rover\x9b\u202e\n"
	addr := answering(t, fake)
	for args, want := range map[string]string{"logs train": `^[[2Jgone\u009b31m^Mover\x9b\u202e`,
		"logs train --raw": "\x1b[2Jgone\u009b31m\rover\x9b\u202e"} {
		c := newConsole(t, 80, 24)
		c.ends(c.run(addr, nil, strings.Fields(args)...), 0)
		c.see(want)
	}
	for args, want := range map[string]string{"logs train": fake.LogText, "logs train --raw": fake.LogText} {
		if r := sluice(t, addr, "", strings.Fields(args)...); r.out != want {
			t.Errorf("without a terminal: %q", r.out)
		}
	}
}
