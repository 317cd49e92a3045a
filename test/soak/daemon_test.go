package soak

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// daemon is one `sluice up` that is killed and started again on the same directory and address.
type daemon struct {
	bin, data, addr, planted string
	// snapshot is after how many records it writes one; 0: as it does by itself, which no soak lives to see.
	snapshot int
	// group that it is in, with Airlock on; nil: none.
	group *group
	// configured: it has a file.
	configured bool
	log        *os.File
	cmd        *exec.Cmd
}

const gpus = "sim:custom,mem=256Mi+128Mi+128Mi,speed=1000+1000+1000"

func newDaemon(bin, dir, planted string, snapshot int, g *group) (*daemon, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	if err = l.Close(); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "daemon.log"))
	if err != nil {
		return nil, err
	}
	d := &daemon{bin: bin, data: filepath.Join(dir, "data"), addr: addr, planted: planted, snapshot: snapshot, group: g, log: log}
	text := ""
	if g != nil {
		text = fmt.Sprintf("airlock: {timer: %v}\n", airlockTimer)
	}
	if os.Getenv("SLUICE_SOAK_STORE") == "1" {
		text += fmt.Sprintf("store: local:%s\n", filepath.Join(dir, "store"))
	}
	if journal != "" {
		text += fmt.Sprintf("journal: %s%s\n", journal, dir)
	}
	if d.configured = text != ""; d.configured {
		if err := os.WriteFile(d.config(), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return d, d.start()
}

func (d *daemon) start() error {
	args := []string{
		"up", "--data", d.data, "--listen", d.addr, "--gpus", gpus, "--snapshot-records", strconv.Itoa(d.snapshot),
		"--keep-hot", "1s", // jobs leave to the archive while it kills
	}
	if d.configured {
		args = append(args, "--config", d.config())
	}
	d.cmd = d.group.into(exec.Command(filepath.Join(d.bin, "sluice"), args...))
	d.cmd.Env = append(os.Environ(), "SLUICE_PLANTED="+d.planted)
	d.cmd.Stdout, d.cmd.Stderr = d.log, d.log
	d.cmd.SysProcAttr = newSession()
	return d.cmd.Start()
}

// config is its file where there are storms.
func (d *daemon) config() string { return d.log.Name() + ".yaml" }

// acts counts in the daemon's log what the watcher did, by its step.
func (d *daemon) acts() map[string]int {
	acts := map[string]int{}
	data, _ := os.ReadFile(d.log.Name())
	for line := range strings.Lines(string(data)) {
		if _, said, ok := strings.Cut(line, "watcher=\""); ok {
			step, _, _ := strings.Cut(said, " ")
			acts[step]++
		}
	}
	return acts
}

// kill ends the daemon without a word and collects it.
func (d *daemon) kill() {
	_ = d.cmd.Process.Signal(syscall.SIGKILL) // it may be gone already: a planted bug can end it
	_ = d.cmd.Wait()
}

// alive says whether the daemon's process is still there; a broken invariant of its own ends it.
func (d *daemon) alive() bool { return d.cmd.Process.Signal(syscall.Signal(0)) == nil && !d.exited() }

func (d *daemon) exited() bool {
	_, state := stat(d.cmd.Process.Pid)
	return state == "Z" || state == ""
}

// killed collects a daemon that is gone, and says whether SIGKILL ended it.
func (d *daemon) killed() bool {
	_ = d.cmd.Wait()
	how, ok := d.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && how.Signaled() && how.Signal() == syscall.SIGKILL
}

// run calls the command-line client and returns what it printed.
func (d *daemon) run(args ...string) (string, error) {
	c := exec.Command(filepath.Join(d.bin, "sluice"), append(args, "--server", d.addr)...)
	out, err := c.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("sluice %s: %w: %s", strings.Join(args, " "), err, exit.Stderr)
	}
	return string(out), err
}

// submit goes on until the daemon has acknowledged the job: a retry is the same job.
func (d *daemon) submit(file string, limit time.Duration) error {
	end := time.Now().Add(limit)
	for {
		_, err := d.run("submit", "-f", file)
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// states asks for every job's state; an error while the daemon is down.
func (d *daemon) states() (map[string]string, error) {
	out, err := d.run("jobs", "-o", "json")
	if err != nil {
		return nil, err
	}
	var jobs []struct{ Name, State, Reason string }
	if err := json.Unmarshal([]byte(out), &jobs); err != nil {
		return nil, err
	}
	states := map[string]string{}
	for _, j := range jobs {
		states[j.Name] = j.State
		if j.State != "COMPLETED" {
			states[j.Name] += ": " + j.Reason
		}
	}
	return states, nil
}

// snapshots reads in the daemon's log how many it wrote, and every one that it would not write because something was missing.
func (d *daemon) snapshots() (written int, wrong []string) {
	data, err := os.ReadFile(d.log.Name())
	if err != nil {
		return 0, []string{err.Error()}
	}
	for line := range strings.Lines(string(data)) {
		switch {
		case strings.Contains(line, "wrote a snapshot"):
			written++
		case strings.Contains(line, "no snapshot was written"):
			wrong = append(wrong, strings.TrimSpace(line))
		}
	}
	return written, wrong
}
