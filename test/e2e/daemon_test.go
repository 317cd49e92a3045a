package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// patience is how long anything may take before a test gives up; nothing here takes a twentieth of it on an idle machine, and fifteen times
// as long on two cores that a dozen others share.
const patience = 5 * time.Minute

// daemon is one `sluice up`, or `sluice join`, that can be killed and started again on the same directory and address.
type daemon struct {
	t     *testing.T
	dir   string // data, log and job files lie below it
	data  string
	addr  string
	token string
	verb  []string // what it is started with; nil: up
	flags []string
	user  *syscall.Credential // whom it runs as; nil: whoever tests
	host  string              // what the host is called; empty: as it is
	files int                 // how many it may have open; 0: as many as whoever tests
	// programs is the folder of the programs that it is started from; empty: those under test.
	programs string
	cmd      *exec.Cmd
	ended    chan struct{}
	log      *logged
}

// logged collects what a daemon writes.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// three is an inventory of three slices that differ.
const three = "sim:custom,mem=256Mi+128Mi+64Mi"

// up starts a daemon and waits until it answers. It is killed when the test ends, with all that it started.
func up(t *testing.T, gpus string, flags ...string) *daemon {
	t.Helper()
	d := newDaemon(t, gpus, flags...)
	d.start()
	return d
}

func newDaemon(t *testing.T, gpus string, flags ...string) *daemon {
	t.Helper()
	dir := t.TempDir()
	d := &daemon{t: t, dir: dir, data: filepath.Join(dir, "data"), addr: freeAddress(t), log: new(logged)}
	d.flags = append([]string{"--gpus", gpus}, flags...)
	t.Cleanup(func() {
		d.kill()
		endBelow(d.data)
		openUp(d.data)
		if t.Failed() {
			lines := strings.Split(d.log.String(), "\n")
			t.Logf("the end of the daemon's log:\n%s", strings.Join(lines[max(0, len(lines)-20):], "\n"))
		}
	})
	return d
}

// nextPort counts through ports that the kernel gives to nobody by itself, from a place of this process's own.
var nextPort atomic.Int64

func freeAddress(t *testing.T) string {
	t.Helper()
	const low, many = 12000, 18000
	for range many {
		addr := fmt.Sprintf("127.0.0.1:%d", low+(int64(os.Getpid())*97+nextPort.Add(1))%many)
		if l, err := net.Listen("tcp", addr); err == nil {
			if err = l.Close(); err == nil {
				return addr
			}
		}
	}
	t.Fatal("no port is free")
	return ""
}

// start starts the daemon and waits until it answers.
func (d *daemon) start() {
	d.t.Helper()
	d.launch()
	d.until("the daemon answers", func() bool {
		select {
		case <-d.ended:
			d.t.Fatalf("the daemon ended: %s", d.log)
		default:
		}
		_, _, code := d.sluice("slices")
		return code == 0
	})
}

// launch starts the daemon's process.
func (d *daemon) launch() {
	d.t.Helper()
	program := filepath.Join(cmp.Or(d.programs, bin), "sluice")
	c := exec.Command(program, slices.Concat(d.begins(), []string{"--data", d.data, "--listen", d.addr}, d.flags)...)
	if d.files > 0 {
		c = exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, d.files)}, c.Args...)...)
	}
	if d.host != "" {
		c = exec.Command("unshare", append([]string{"--uts", "sh", "-c", `hostname "$0" && exec "$@"`, d.host}, c.Args...)...)
	}
	c.Env = append(os.Environ(), "SLUICE_TOKEN="+d.token)
	c.Stdout, c.Stderr = d.log, d.log
	if d.user != nil {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: d.user}
		c.Dir = "/"
	}
	c.WaitDelay = time.Second
	if err := c.Start(); err != nil {
		d.t.Fatal(err)
	}
	ended := make(chan struct{})
	d.cmd, d.ended = c, ended
	go func() {
		_ = c.Wait() // how it ended is read from ProcessState
		close(ended)
	}()
}

// begins is the command that starts it.
func (d *daemon) begins() []string {
	if d.verb == nil {
		return []string{"up"}
	}
	return d.verb
}

// refused starts the daemon, which must end by itself with an error, and returns what it said.
func (d *daemon) refused() string {
	d.t.Helper()
	before := len(d.log.String())
	d.launch()
	select {
	case <-d.ended:
	case <-time.After(patience):
		d.t.Fatalf("the daemon runs, want a refusal: %s", d.log)
	}
	if d.cmd.ProcessState.Success() {
		d.t.Fatal("the daemon ended well, want a refusal")
	}
	return d.log.String()[before:]
}

// kill ends the daemon without a word; subjobs go on.
func (d *daemon) kill() { d.end(syscall.SIGKILL) }

// end sends a signal and waits until the daemon is gone.
func (d *daemon) end(sig syscall.Signal) {
	if d.cmd == nil {
		return
	}
	_ = d.cmd.Process.Signal(sig) // it may be gone
	<-d.ended
}

// endBelow ends every process whose environment names a directory below dir: what a killed daemon left.
func endBelow(dir string) {
	for range 3 { // a supervisor that dies takes its tree along, which can take a moment
		list, _ := filepath.Glob("/proc/[0-9]*")
		for _, p := range list {
			env, _ := os.ReadFile(filepath.Join(p, "environ"))
			args, _ := os.ReadFile(filepath.Join(p, "cmdline"))
			var pid int
			if _, err := fmt.Sscanf(filepath.Base(p), "%d", &pid); err == nil && pid != os.Getpid() &&
				bytes.Contains(append(env, args...), []byte(dir+"/")) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// openUp lets checkpoints, which are read-only, be removed.
func openUp(dir string) {
	_ = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			_ = os.Chmod(path, 0o700) // if not, the test says which could not be removed
		}
		return nil
	})
}

// sluice runs the client. The code is -1 if it could not run.
func (d *daemon) sluice(args ...string) (out, errs string, code int) {
	return d.as(nil, args...)
}

// as runs the client with something to read.
func (d *daemon) as(in []byte, args ...string) (out, errs string, code int) {
	var o bytes.Buffer
	errs, code = d.into(&o, in, args...)
	return o.String(), errs, code
}

// into is as, with what it prints in out as it comes.
func (d *daemon) into(out io.Writer, in []byte, args ...string) (errs string, code int) {
	var e bytes.Buffer
	c := exec.Command(filepath.Join(bin, "sluice"), append(args, "--server", d.addr)...)
	c.Env = append(os.Environ(), "SLUICE_TOKEN="+d.token)
	c.Dir = d.dir
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(in), out, &e
	err := c.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		return err.Error(), -1
	}
	return e.String(), code
}

// must runs the client, which must do well, and returns what it printed.
func (d *daemon) must(args ...string) string {
	d.t.Helper()
	out, errs, code := d.sluice(args...)
	if code != 0 {
		d.t.Fatalf("sluice %s: exit %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// fails runs the client, which must fail with a code and say all of the words; it returns what was said.
func (d *daemon) fails(code int, words []string, args ...string) string {
	d.t.Helper()
	out, errs, got := d.sluice(args...)
	if got != code {
		d.t.Fatalf("sluice %s: exit %d, want %d\n%s%s", strings.Join(args, " "), got, code, out, errs)
	}
	says(d.t, errs, words...)
	return errs
}

// says fails unless a text has all of the words.
func says(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("it says\n%s\nand not %q", text, w)
		}
	}
}

// submit sends job files' text, which must be accepted.
func (d *daemon) submit(text string, args ...string) string {
	d.t.Helper()
	out, errs, code := d.as([]byte(text), append([]string{"submit", "-f", "-"}, args...)...)
	if code != 0 {
		d.t.Fatalf("submit: exit %d\n%s%s", code, out, errs)
	}
	return out
}

// until waits for something to become true.
func (d *daemon) until(what string, ok func() bool) {
	d.t.Helper()
	until(d.t, what, ok)
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after %v: %s", patience, what)
		}
	}
}

// jobView is what the tests read of a job.
type jobView struct {
	Name, State, Reason                      string
	Progress, Reported, Skipped, MemoryScale int64
	Subjobs, Running, Lost                   int
	FinishEarliest, FinishLatest             time.Time
	Ended                                    time.Time
	History                                  []subjobView
}

// subjobView is what the tests read of a subjob.
type subjobView struct {
	Subjob, Slice, Outcome, Detail string
	From, To                       int64
	PlannedEnd, Start, End         time.Time
	PeakMemoryBytes                int64
	PrepareSeconds                 float64
	Running                        bool
}

// job asks for one job.
func (d *daemon) job(name string) (j jobView) {
	d.t.Helper()
	out := d.must("job", name, "-o", "json")
	if err := json.Unmarshal([]byte(out), &j); err != nil {
		d.t.Fatalf("%v in %s", err, out)
	}
	return j
}

// over waits until a job is over and returns it.
func (d *daemon) over(name string) jobView {
	d.t.Helper()
	if _, errs, code := d.sluice("wait", name, "--timeout", patience.String()); code > 1 {
		d.t.Fatalf("wait %s: exit %d: %s\n%s", name, code, errs, d.must("job", name))
	}
	return d.job(name)
}

// done waits until a job is over, which must have completed.
func (d *daemon) done(name string) jobView {
	d.t.Helper()
	j := d.over(name)
	if j.State != "COMPLETED" {
		d.t.Fatalf("job %s is %s: %s\n%s", name, j.State, j.Reason, d.must("job", name))
	}
	return j
}

// running waits until processes of so many of a job's subjobs run.
func (d *daemon) running(name string, n int) {
	d.t.Helper()
	d.until(fmt.Sprintf("%d subjobs of %s run", n, name), func() bool {
		started := 0
		for _, s := range d.job(name).History {
			if s.Running && !s.Start.IsZero() {
				started++
			}
		}
		return started >= n
	})
}

// write makes a file below the test's folder and returns its path.
func (d *daemon) write(name, text string) string {
	d.t.Helper()
	path := filepath.Join(d.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
	return path
}

// spec is the text of a job file: work is its kind, script what a shell runs, more is further lines of spec.
func spec(name, work, script string, more ...string) string {
	command, err := json.Marshal([]string{"sh", "-c", script})
	if err != nil {
		panic(err)
	}
	text := fmt.Sprintf("---\napiVersion: sluice.dev/v1alpha1\nkind: Job\nmetadata: {name: %s}\nspec:\n  %s\n  command: %s\n", name, work,
		command)
	memory := true
	for _, m := range more {
		text += "  " + m + "\n"
		memory = memory && !strings.HasPrefix(m, "memory:")
	}
	if memory {
		text += "  memory: 16Mi\n"
	}
	return text
}

// say is shell that reports progress: `say N`, with a whole checkpoint.
const say = `say() { echo "{\"progress\":$1,\"checkpoint\":true}" > "$SLUICE_PROGRESS_FILE.t" && mv "$SLUICE_PROGRESS_FILE.t" "$SLUICE_PROGRESS_FILE"; }
`

// each is shell that works on unit after unit, writes each to the output and reports it, or fails where it can't write; body runs before
// each with the unit in $i.
func each(body string) string {
	return say + `i=$SLUICE_FROM; while [ $i -lt $SLUICE_TO ]; do ` + body +
		`; echo $i >> "$SLUICE_OUTPUT_DIR/units" || exit 1; i=$((i+1)); say $i; done`
}

// opened is shell that waits for a file of the test, which write makes: what a test does to a program that runs must not race with its end.
func (d *daemon) opened(name string) string {
	return "until [ -e '" + filepath.Join(d.dir, name) + "' ]; do sleep 0.05; done"
}

// once checks that the committed output has every unit of [0, total) once, in order; a killed subjob leaves units beyond
// what it reported, which the folder's name leaves out.
func (d *daemon) once(name string, total int64) {
	d.t.Helper()
	var list []struct {
		Path     string
		From, To int64
	}
	if err := json.Unmarshal([]byte(d.must("output", name, "-o", "json")), &list); err != nil {
		d.t.Fatal(err)
	}
	next := int64(0)
	for _, o := range list {
		data, err := os.ReadFile(filepath.Join(o.Path, "units"))
		if err != nil {
			d.t.Fatal(err)
		}
		for _, line := range strings.Fields(string(data)) {
			var unit int64
			if _, err := fmt.Sscan(line, &unit); err != nil {
				d.t.Fatal(err)
			}
			if unit >= o.To {
				break
			}
			if unit != next {
				d.t.Fatalf("%s: unit %d where %d was due, in %s", name, unit, next, o.Path)
			}
			next++
		}
	}
	if next != total {
		d.t.Fatalf("%s: the output has %d units, want %d", name, next, total)
	}
}
