package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
)

// daemon is a `sluice up` of our own, on any free port of this machine.
type daemon struct {
	cmd  *exec.Cmd
	over chan struct{} // closed when it is over
	addr string
	// slices it has for sale.
	slices int
	sluicev1alpha1connect.SluiceServiceClient
}

// machine is what a daemon runs on, and how.
type machine struct {
	gpus   string
	slices int
	flags  []string
	// file is its configuration; empty: what is compared is the same on every machine, so that nothing waits for other programs' memory.
	file string
}

// undisturbed is the file of a daemon that does not look at the machine's memory.
const undisturbed = "airlock: {kind: off}\n"

// start runs a daemon over dir/data and returns when it answers. Its log is added to dir/log. It has a process group of
// its own, so that Ctrl-C reaches us alone and what runs is ended in order; if we are killed it gets SIGTERM.
func start(ctx context.Context, dir string, m machine) (*daemon, error) {
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	file := filepath.Join(dir, "daemon.yml")
	if err = os.WriteFile(file, []byte(cmp.Or(m.file, undisturbed)), 0o644); err != nil {
		return nil, err
	}
	args := []string{"up", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--gpus", m.gpus, "--horizon",
		slow.of(5 * time.Minute).String(), "--config", file}
	cmd := exec.Command("bin/sluice", append(args, m.flags...)...)
	cmd.Stderr = log
	cmd.SysProcAttr = ownGroup()
	said, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d := &daemon{cmd: cmd, over: make(chan struct{}), slices: m.slices}
	first := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(said)
		for lines.Scan() {
			if _, rest, ok := strings.Cut(lines.Text(), " serves on "); ok {
				addr, _, _ := strings.Cut(rest, ",")
				first <- addr
			}
		}
		close(first)
		_ = cmd.Wait() // how it ended is in its log
		close(d.over)
	}()
	select {
	case d.addr = <-first:
	case <-time.After(2 * time.Minute):
	case <-ctx.Done():
	}
	if d.addr == "" {
		d.kill()
		return nil, errors.Join(ctx.Err(), errors.New("the daemon did not start"))
	}
	d.SluiceServiceClient = sluicev1alpha1connect.NewSluiceServiceClient(&http.Client{Timeout: time.Minute}, "http://"+d.addr)
	return d, d.ready(ctx)
}

// ready waits until the daemon has all its slices for sale.
func (d *daemon) ready(ctx context.Context) error {
	for until := time.Now().Add(2 * time.Minute); ; {
		list, err := d.ListSlices(ctx, connect.NewRequest(&pb.ListSlicesRequest{}))
		if err == nil && len(list.Msg.Slices) == d.slices {
			return nil
		}
		if time.Now().After(until) {
			d.kill()
			return errors.Join(errors.New("the daemon offers no slices"), err)
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			d.stop()
			return err
		}
	}
}

// kill ends the daemon as a power cut would: it can do nothing about it. What it started lives on.
func (d *daemon) kill() {
	_ = d.cmd.Process.Kill()
	<-d.over
}

// stop ends the daemon and everything that it started.
func (d *daemon) stop() {
	ctx, done := context.WithTimeout(context.Background(), slow.of(15*time.Second))
	defer done()
	if d.SluiceServiceClient != nil {
		d.cancel(ctx)
	}
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.over:
	case <-ctx.Done():
		d.kill()
	}
}

// cancel ends all jobs and waits until nothing of them runs. A subjob would outlive its daemon, as it should, up to the
// end of its lease.
func (d *daemon) cancel(ctx context.Context) {
	list, err := d.ListJobs(ctx, connect.NewRequest(&pb.ListJobsRequest{}))
	if err != nil {
		return
	}
	for _, j := range list.Msg.Jobs {
		if !j.Final {
			_, _ = d.Cancel(ctx, connect.NewRequest(&pb.CancelRequest{Name: j.Name}))
		}
	}
	for pause(ctx, 50*time.Millisecond) == nil {
		list, err := d.ListSlices(ctx, connect.NewRequest(&pb.ListSlicesRequest{}))
		if err != nil {
			return
		}
		running := 0
		for _, s := range list.Msg.Slices {
			if s.Job != "" {
				running++
			}
		}
		if running == 0 {
			return
		}
	}
}

// sluice runs a command against the daemon.
func (d *daemon) sluice(ctx context.Context, dir, stdin string, args ...string) error {
	_, err := d.command(ctx, dir, stdin, args...)
	return err
}

// says is what a command against the daemon writes.
func (d *daemon) says(ctx context.Context, args ...string) (string, error) {
	return d.command(ctx, ".", "", args...)
}

func (d *daemon) command(ctx context.Context, dir, stdin string, args ...string) (string, error) {
	program, err := filepath.Abs("bin/sluice")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "SLUICE_SERVER="+d.addr)
	said, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("sluice %s: %w\n%s", strings.Join(args, " "), err, said)
	}
	return string(said), nil
}

// pause waits, less if ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
