// Package daemon runs real daemons (`sluice up`) on loopback for benchmarks, each with a client. It measures nothing itself.
package daemon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
)

// Options of a daemon. Bin, Dir and GPUs are needed.
type Options struct {
	// Bin is the directory of sluice and sluice-shim, absolute.
	Bin string
	// Dir holds its data, in Data, and what it logs. It is made if it is not there.
	Dir string
	// GPUs as `sluice up --gpus` takes them.
	GPUs string
	// Flags of `sluice up` besides; they come last.
	Flags []string
	// Join: it is no head but a machine, which joins the head at this address by the token (`sluice join`); Flags are of that command.
	Join, Token string
	// Patience is how long it may take until it serves. Default 20 s.
	Patience time.Duration
	// Memory is how much it may have in memory, in MiB, before it is killed, for as long as it lives. 0: as much as it likes.
	Memory float64
}

// Daemon is one `sluice up` or `sluice join` with a client for it.
type Daemon struct {
	sluicev1alpha1connect.SluiceServiceClient
	// Base is its URL, HTTP a client that keeps enough connections for 128 callers.
	Base string
	HTTP *http.Client
	// Started is when its process was started, Served how long it took until it said that it serves.
	Started time.Time
	Served  time.Duration

	cmd *exec.Cmd
	log string
	// gone is closed when its process has ended, with why in ended. greedy: it was killed because it took too much memory.
	gone   chan struct{}
	ended  error
	greedy atomic.Bool
}

// Data is the data directory of a daemon whose Options.Dir is dir.
func Data(dir string) string { return filepath.Join(dir, "data") }

// Why a daemon did not come up. Its process is gone.
var (
	// ErrPatience: it did not serve in time.
	ErrPatience = errors.New("the daemon does not serve in time")
	// ErrMemory: it took more memory than it may.
	ErrMemory = errors.New("the daemon takes too much memory")
)

// Start starts a daemon and returns once it says that it serves.
func Start(o Options) (*Daemon, error) {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	d := &Daemon{
		log: filepath.Join(o.Dir, "log"), HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128,
			DisableCompression: true}}, gone: make(chan struct{}),
	}
	log, err := os.OpenFile(d.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	flags := []string{"up"}
	if o.Join != "" {
		flags = []string{"join", o.Join, "--token", o.Token}
	}
	flags = append(flags, "--data", Data(o.Dir), "--gpus", o.GPUs, "--listen", "127.0.0.1:0", "--log", "warn")
	d.cmd = exec.Command(filepath.Join(o.Bin, "sluice"), append(flags, o.Flags...)...)
	d.cmd.Stderr = log
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	d.Started = time.Now()
	if err = d.cmd.Start(); err != nil {
		return nil, err
	}
	patience := o.Patience
	if patience == 0 {
		patience = 20 * time.Second
	}
	if o.Memory > 0 {
		go d.guard(o.Memory)
	}
	late := time.AfterFunc(patience, func() { _ = d.cmd.Process.Kill() })
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	d.Served = time.Since(d.Started)
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		d.ended = d.cmd.Wait()
		close(d.gone)
	}()
	_, rest, found := strings.Cut(line, " serves on ")
	switch stopped := late.Stop(); {
	case err == nil && found && stopped:
	case d.Greedy():
		d.Kill()
		return nil, fmt.Errorf("%w: more than %.0f MiB after %v", ErrMemory, o.Memory, d.Served.Round(time.Millisecond))
	case !stopped:
		d.Kill()
		return nil, fmt.Errorf("%w: %v; its log: %s", ErrPatience, patience, d.Said())
	default:
		_ = d.Stop()
		return nil, fmt.Errorf("the daemon did not come up: %q %w; its log: %s", line, err, d.Said())
	}
	address, _, _ := strings.Cut(rest, ",")
	d.Base = "http://" + address
	d.SluiceServiceClient = sluicev1alpha1connect.NewSluiceServiceClient(d.HTTP, d.Base)
	return d, nil
}

// AwaitSlices waits until the daemon shows so many slices. On an error it was stopped.
func (d *Daemon) AwaitSlices(ctx context.Context, slices int) error {
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		list, err := d.ListSlices(ctx, connect.NewRequest(&pb.ListSlicesRequest{}))
		if err == nil && len(list.Msg.Slices) == slices {
			return nil
		}
		if time.Now().After(until) {
			return errors.Join(fmt.Errorf("the daemon shows no slices: %w; its log: %s", err, d.Said()), d.Stop())
		}
	}
}

// Stop ends the daemon and waits until it is gone, at most 20 s; then it is killed, which is an error.
func (d *Daemon) Stop() error {
	d.HTTP.CloseIdleConnections()
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(20*time.Second, func() { _ = d.cmd.Process.Kill() })
	defer kill.Stop()
	<-d.gone
	return d.ended
}

// Kill ends the daemon at once and waits until it is gone.
func (d *Daemon) Kill() {
	d.HTTP.CloseIdleConnections()
	_ = d.cmd.Process.Kill()
	<-d.gone
}

// Freeze stops the daemon's process where it is, so that another one is measured alone; Thaw lets it go on.
func (d *Daemon) Freeze() { _ = d.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw lets a frozen daemon go on.
func (d *Daemon) Thaw() { _ = d.cmd.Process.Signal(syscall.SIGCONT) }

// Greedy says whether the daemon was killed because it took more memory than it may.
func (d *Daemon) Greedy() bool { return d.greedy.Load() }

// guard kills the daemon if it takes more memory than it may.
func (d *Daemon) guard(memory float64) {
	for look := time.NewTicker(100 * time.Millisecond); ; {
		select {
		case <-d.gone:
			look.Stop()
			return
		case <-look.C:
			if now, _, err := d.Resident(); err == nil && now > memory {
				d.greedy.Store(true)
				_ = d.cmd.Process.Kill()
			}
		}
	}
}

// Said is what the daemon logged, over all its starts in this directory.
func (d *Daemon) Said() string {
	text, err := os.ReadFile(d.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Send submits a job file.
func (d *Daemon) Send(ctx context.Context, file string) error {
	_, err := d.Submit(ctx, connect.NewRequest(&pb.SubmitRequest{Job: file, FileName: "bench"}))
	return err
}

// Drain takes a slice off the market, all of them where none is named, so that jobs wait. It returns what gives them back.
func (d *Daemon) Drain(ctx context.Context, slice string) (giveBack func() error, err error) {
	r, err := d.Reserve(ctx, connect.NewRequest(&pb.ReserveRequest{Kind: pb.Reservation_DRAIN, Source: "bench", Slice: slice}))
	if err != nil {
		return nil, err
	}
	return func() error {
		for _, id := range r.Msg.Ids {
			if _, err := d.Unreserve(ctx, connect.NewRequest(&pb.UnreserveRequest{Id: id})); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// Completed waits until so many jobs have completed since the daemon started. Any other end is an error. It reads the
// metrics, which costs the daemon less than a list of jobs, and the less often the longer it takes: every 5 to 50 ms.
func (d *Daemon) Completed(ctx context.Context, n int) error {
	for pause := 5 * time.Millisecond; ; pause = min(pause+pause/8, 50*time.Millisecond) {
		counts, err := d.Metrics(ctx, "sluice_jobs_ended_total")
		if err != nil {
			return err
		}
		done, all := 0, 0
		for state, count := range counts {
			all += int(count)
			if strings.EqualFold(state, "completed") {
				done = int(count)
			}
		}
		switch {
		case all != done:
			return fmt.Errorf("jobs ended otherwise than completed: %v; the daemon's log: %s", counts, d.Said())
		case done >= n:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// Metrics returns one metric by the value of its only label, "" where it has none.
func (d *Daemon) Metrics(ctx context.Context, name string) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.Base+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := d.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	found := map[string]float64{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		rest, ours := strings.CutPrefix(lines.Text(), name)
		label, value, valued := strings.Cut(rest, " ")
		if !ours || !valued || label != "" && label[0] != '{' {
			continue
		}
		_, label, _ = strings.Cut(strings.Trim(label, "{}"), "=")
		if found[strings.Trim(label, `"`)], err = strconv.ParseFloat(value, 64); err != nil {
			return nil, fmt.Errorf("metric %s: %w", name, err)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("there is no metric %s (status %s)", name, resp.Status)
	}
	return found, nil
}

// Resident is what the daemon's process has in memory now, and what it had at most, in MiB.
func (d *Daemon) Resident() (now, most float64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	for _, line := range strings.Split(string(text), "\n") {
		key, value, _ := strings.Cut(line, ":")
		kib, failed := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(value, " kB")), 64)
		switch {
		case key != "VmRSS" && key != "VmHWM":
			continue
		case failed != nil:
			return 0, 0, fmt.Errorf("/proc/%d/status: %s: %w", d.cmd.Process.Pid, key, failed)
		case key == "VmRSS":
			now = kib / 1024
		default:
			most = kib / 1024
		}
	}
	return now, most, nil
}
