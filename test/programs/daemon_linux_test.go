package programs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience bounds each wait.
const patience = 10 * time.Minute

// daemon is one `sluice up`, that can be killed and started again on the same directory and address.
type daemon struct {
	t                   *testing.T
	data, addr, horizon string
	log                 string
	cmd                 *exec.Cmd
}

// up starts a daemon with one slice, whose windows are as long as the horizon.
func up(t *testing.T, horizon string) *daemon {
	t.Helper()
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{t: t, data: filepath.Join(dir, "data"), log: filepath.Join(dir, "log"), addr: l.Addr().String(), horizon: horizon}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.kill()
		for range 3 { // a supervisor that dies takes its tree along, which can take a moment
			for _, p := range processes(d.data) {
				_ = syscall.Kill(p.pid, syscall.SIGKILL)
			}
			time.Sleep(50 * time.Millisecond)
		}
		// Checkpoints are read-only, and are removed with the test's folder.
		_ = exec.Command("chmod", "-R", "u+rwX", dir).Run()
		if text, err := os.ReadFile(d.log); t.Failed() && err == nil {
			t.Logf("the end of the daemon's log:\n%s", strings.ReplaceAll(string(text[max(0, len(text)-3000):]), "\\r", "\n"))
		}
	})
	d.start()
	return d
}

// start starts the daemon and waits until it answers.
func (d *daemon) start() {
	d.t.Helper()
	log, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	d.cmd = exec.Command(filepath.Join(bin, "sluice"), "up", "--data", d.data, "--listen", d.addr, "--gpus", "sim:custom,mem=4Gi",
		"--horizon", d.horizon)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	until(d.t, "the daemon answers", func() bool { return d.client("slices").Run() == nil })
}

// kill ends the daemon without a word.
func (d *daemon) kill() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

func (d *daemon) client(args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(bin, "sluice"), args...)
	c.Env = append(os.Environ(), "SLUICE_SERVER="+d.addr)
	return c
}

// must runs the client in a directory, and it must do well.
func (d *daemon) must(dir string, args ...string) string {
	d.t.Helper()
	c := d.client(args...)
	c.Dir = dir
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		d.t.Fatalf("sluice %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.String()
}

// jobView is what the tests read of a job.
type jobView struct {
	State, Reason     string
	Progress, Running int64
	Subjobs, Lost     int
	History           []struct {
		From, To  int64
		Committed *struct{ From, To int64 }
		Outcome   string
		Start     time.Time
		End       time.Time
	}
}

// over: the job has ended one way or another.
func (j *jobView) over() bool {
	return slices.Contains([]string{"COMPLETED", "FAILED", "CANCELLED", "EXPIRED"}, j.State)
}

func (d *daemon) job(name string) (j jobView) {
	d.t.Helper()
	text := d.must("", "job", name, "-o", "json")
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		d.t.Fatalf("what is said of %s: %v", name, err)
	}
	return j
}

// done waits until a job is over, which must have completed.
func (d *daemon) done(name string) jobView {
	d.t.Helper()
	until(d.t, name+" is over", func() bool { j := d.job(name); return j.over() })
	j := d.job(name)
	if j.State != "COMPLETED" {
		logs, _ := d.client("logs", name).CombinedOutput()
		d.t.Fatalf("%s is %s: %s\n%s\n%s", name, j.State, j.Reason, d.must("", "job", name), logs[max(0, len(logs)-3000):])
	}
	return j
}

// outputs are the folders of a job's committed output, in order of units.
func (d *daemon) outputs(name string) (paths []string) {
	d.t.Helper()
	var list []struct{ Path string }
	if err := json.Unmarshal([]byte(d.must("", "output", name, "-o", "json")), &list); err != nil {
		d.t.Fatal(err)
	}
	for _, o := range list {
		if o.Path != "" {
			paths = append(paths, o.Path)
		}
	}
	return paths
}

// last is the folder of the last output.
func (d *daemon) last(name string) string {
	d.t.Helper()
	paths := d.outputs(name)
	if len(paths) == 0 {
		d.t.Fatalf("%s has no output", name)
	}
	return paths[len(paths)-1]
}

// process is one of a subjob.
type process struct {
	pid, parent int
	name        string
}

// processes are those of subjobs of a data directory, but no supervisors.
func processes(data string) (found []process) {
	list, _ := filepath.Glob("/proc/[0-9]*")
	for _, at := range list {
		env, err := os.ReadFile(filepath.Join(at, "environ"))
		if err != nil || !bytes.Contains(env, []byte("SLUICE_PROGRESS_FILE="+data)) {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(at, "stat"))
		open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
		if err != nil || open < 0 || end < open {
			continue
		}
		fields := strings.Fields(string(stat[end+1:]))
		p := process{name: string(stat[open+1 : end])}
		p.pid, _ = strconv.Atoi(filepath.Base(at))
		p.parent, _ = strconv.Atoi(fields[1])
		if fields[0] != "Z" {
			found = append(found, p)
		}
	}
	return found
}

// strike kills something of a running subjob, and says what. False: nothing of that kind runs just now.
func (d *daemon) strike(kind string) bool {
	running := processes(d.data)
	inside := map[int]bool{}
	for _, p := range running {
		inside[p.pid] = true
	}
	switch kind {
	case "daemon":
		if len(running) == 0 {
			return false
		}
		d.kill()
		d.start()
		return true
	case "supervisor":
		for _, p := range running {
			if !inside[p.parent] && p.parent > 1 {
				return syscall.Kill(p.parent, syscall.SIGKILL) == nil
			}
		}
	case "program":
		for _, p := range slices.Backward(running) {
			if p.name != "sluice-shim" && p.name != "sh" {
				return syscall.Kill(p.pid, syscall.SIGKILL) == nil
			}
		}
	}
	return false
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after %v: %s", patience, what)
		}
	}
}

// edit replaces texts in a file, each of which must be there.
func edit(t *testing.T, path string, oldNew ...string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(oldNew); i += 2 {
		if !bytes.Contains(text, []byte(oldNew[i])) {
			t.Fatalf("%s has no %q", path, oldNew[i])
		}
		text = bytes.Replace(text, []byte(oldNew[i]), []byte(oldNew[i+1]), 1)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// do runs a command in a directory, and it must do well.
func do(t *testing.T, dir string, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", fmt.Sprint(c.Args), err, out)
	}
	return string(out)
}
