package slurm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

// maxAnswer is the most that a command may say, in bytes: some 500,000 jobs.
const maxAnswer = 128 << 20

// commands are those that are used.
var commandNames = []string{"sbatch", "squeue", "scontrol", "scancel"}

// answer of a command that ended by itself.
type answer struct {
	out, err string
	code     int
}

// run runs a command of Slurm's. Errors: Unavailable: it did not end by itself, in time. It is not known what it did then.
func (c *commands) run(ctx context.Context, stdin string, env []string, name string, args ...string) (a answer, err error) {
	if err = ctx.Err(); err != nil {
		return a, errkind.Errorf(errkind.Unavailable, "%s: not called: %w", name, err)
	}
	ctx, end := context.WithTimeout(ctx, c.o.Timeout)
	defer end()
	path, err := c.find(name)
	if err != nil {
		return a, err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	out, said := limited{left: maxAnswer}, limited{left: maxAnswer}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &said
	cmd.Env, cmd.Dir = append(environment(), env...), "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // with what it has started
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	a = answer{out.String(), strings.TrimSpace(said.String()), cmd.ProcessState.ExitCode()}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return a, errkind.Errorf(errkind.Unavailable, "%s: no answer within %v, and was ended: is slurmctld there? %s", name, c.o.Timeout,
			brief(a.err))
	case err == nil, errors.As(err, &exit) && exit.Exited():
		return a, nil
	}
	return a, errkind.Errorf(errkind.Unavailable, "%s: %w: %s", name, err, brief(a.err))
}

// limited keeps what is written to it, and refuses more than its limit. It embeds no buffer: io.Copy prefers a buffer's ReadFrom to Write,
// which would pass the limit by.
type limited struct {
	said bytes.Buffer
	left int
}

func (l *limited) String() string { return l.said.String() }

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, io.ErrShortBuffer
	}
	return l.said.Write(p)
}

// environment of a command: settings such as SBATCH_TIMELIMIT and SQUEUE_FORMAT would change what is asked, SLURM_TIME_FORMAT the answer.
// In UTC no hour comes twice a year; times are written by the commands, not by their host.
func environment() []string {
	env := []string{"LANG=C", "LC_ALL=C", "TZ=UTC"}
	for _, name := range []string{"PATH", "HOME", "USER", "LOGNAME", "SLURM_CONF"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// find is the path of a command. Errors: Unsupported: it is not there.
func (c *commands) find(name string) (string, error) {
	if c.o.Bin != "" {
		name = filepath.Join(c.o.Bin, name)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", errkind.Errorf(errkind.Unsupported, "slurm: %w: install Slurm's commands on this machine, or name their folder", err)
	}
	return path, nil
}

// ask runs a command that changes nothing, and returns what it printed. Errors: by what it said; Slurm's commands end with 0 also after
// some errors, so nothing printed and something said is one, too.
func (c *commands) ask(ctx context.Context, name string, args ...string) (string, error) {
	a, err := c.run(ctx, "", nil, name, args...)
	switch {
	case err != nil:
		return "", err
	case a.code != 0, a.err != "" && (a.out == "" || strings.Contains(a.err, "error")):
		said := a.err
		if said == "" {
			said = a.out // scontrol says there what it does not find
		}
		return "", errkind.Errorf(kindOf(said), "%s: ended with %d: %s", name, a.code, brief(said))
	}
	return a.out, nil
}

// words are parts of what Slurm says, and the kind of error that they mean. The first that fits counts.
var wordTable = []struct {
	text string
	kind errkind.Kind
}{
	{"unable to contact", errkind.Unavailable},
	{"connect failure", errkind.Unavailable},
	{"timed out", errkind.Unavailable},
	{"zero bytes", errkind.Unavailable},
	{"standby", errkind.Unavailable},
	{"connection", errkind.Unavailable},
	{"authentication", errkind.Unavailable}, // munge is not there
	{"policy", errkind.Exhausted},
	{"qosmax", errkind.Exhausted},
	{"qosgrp", errkind.Exhausted},
	{"assocmax", errkind.Exhausted},
	{"assocgrp", errkind.Exhausted},
	{"temporarily unable to accept", errkind.Exhausted}, // MaxJobCount
	{"writing script/environment", errkind.Exhausted},   // its disk is full
	{"configuration not available now", errkind.Exhausted},
	{"partition is down", errkind.Exhausted},
	{"drained", errkind.Exhausted},
	{"denied", errkind.Denied},
	{"not permitted", errkind.Denied},
	{"not allowed", errkind.Denied},
	{"does not have access", errkind.Denied},
	{"user does not", errkind.Denied},
	{"invalid", errkind.Invalid},
	{"not found", errkind.Invalid},
	{"unrecognized option", errkind.Invalid},
	{"requested node configuration is not available", errkind.Invalid},
	{"requested", errkind.Invalid},
	{"not supported", errkind.Unsupported},
	{"disabled", errkind.Unsupported},
}

// kindOf is the kind of error that Slurm's words mean; Unavailable where they are not known: it may have been done or not.
func kindOf(said string) errkind.Kind {
	said = strings.ToLower(said)
	for _, w := range wordTable {
		if strings.Contains(said, w.text) {
			return w.kind
		}
	}
	return errkind.Unavailable
}

// brief is what was said, for one line: without the program's name before each, and not longer than people read.
func brief(said string) string {
	said = strings.Join(strings.Fields(said), " ")
	if said == "" {
		return "it said nothing"
	}
	if len(said) > 400 {
		said = strings.ToValidUTF8(said[:400], "") + "..."
	}
	return said
}
