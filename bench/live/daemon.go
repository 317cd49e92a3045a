package main

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
	"syscall"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/internal/edge/wire/sluice/v1alpha1"
	"sluice.dev/sluice/internal/edge/wire/sluice/v1alpha1/sluicev1alpha1connect"
)

// daemon is one `sluice up` of this run with a client for it.
type daemon struct {
	cmd  *exec.Cmd
	base string
	http *http.Client
	sluicev1alpha1connect.SluiceServiceClient
	log string
}

// up starts a daemon with s.slots simulated slices.
func (s *settings) up(ctx context.Context) (*daemon, error) { return s.upWith(ctx, s.slots) }

// upWith starts a daemon with so many simulated slices and a data directory of its own, and waits until it serves.
func (s *settings) upWith(ctx context.Context, slots int, flags ...string) (*daemon, error) {
	dir, err := os.MkdirTemp(s.temp, "daemon-")
	if err != nil {
		return nil, err
	}
	d := &daemon{log: filepath.Join(dir, "log"), http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}}}
	log, err := os.Create(d.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	gpus := "sim:custom,mem=256Mi" + strings.Repeat("+256Mi", slots-1)
	d.cmd = exec.Command(filepath.Join(s.bin, "sluice"), append([]string{"up", "--data", filepath.Join(dir, "data"), "--gpus", gpus, "--listen", "127.0.0.1:0", "--log", "warn"}, flags...)...)
	d.cmd.Stderr = log
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err = d.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	_, rest, found := strings.Cut(line, " serves on ")
	if err != nil || !found {
		_ = d.down()
		return nil, fmt.Errorf("the daemon did not come up: %q %w; its log: %s", line, err, d.said())
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	address, _, _ := strings.Cut(rest, ",")
	d.base = "http://" + address
	d.SluiceServiceClient = sluicev1alpha1connect.NewSluiceServiceClient(d.http, d.base)
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		slices, err := d.ListSlices(ctx, connect.NewRequest(&pb.ListSlicesRequest{}))
		if err == nil && len(slices.Msg.Slices) == slots {
			return d, nil
		}
		if time.Now().After(until) {
			return nil, errors.Join(fmt.Errorf("the daemon shows no slices: %w; its log: %s", err, d.said()), d.down())
		}
	}
}

// down stops the daemon and waits for its end.
func (d *daemon) down() error {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(20*time.Second, func() { _ = d.cmd.Process.Kill() })
	defer kill.Stop()
	return d.cmd.Wait()
}

// said is what the daemon logged.
func (d *daemon) said() string {
	text, err := os.ReadFile(d.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// submit sends a job file.
func (d *daemon) submit(ctx context.Context, file string) error {
	_, err := d.Submit(ctx, connect.NewRequest(&pb.SubmitRequest{Job: file, FileName: "bench"}))
	return err
}

// reserve takes all slices off the market, so that jobs wait. It returns what gives them back.
func (d *daemon) reserve(ctx context.Context) (giveBack func() error, err error) {
	r, err := d.Reserve(ctx, connect.NewRequest(&pb.ReserveRequest{Kind: "drain", Source: "bench"}))
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

// completed waits until so many jobs have completed since the daemon started. Any other end is an error. It reads the
// metrics, which costs the daemon less than a list of jobs.
func (d *daemon) completed(ctx context.Context, n int) error {
	for {
		counts, err := d.metrics(ctx, "sluice_jobs_ended_total")
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
			return fmt.Errorf("jobs ended otherwise than completed: %v; the daemon's log: %s", counts, d.said())
		case done >= n:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// metrics returns one counter by the value of its only label.
func (d *daemon) metrics(ctx context.Context, name string) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.base+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	found := map[string]float64{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		rest, ours := strings.CutPrefix(lines.Text(), name+"{")
		if !ours {
			continue
		}
		label, value, _ := strings.Cut(rest, "} ")
		_, label, _ = strings.Cut(label, "=")
		if found[strings.Trim(label, `"`)], err = strconv.ParseFloat(value, 64); err != nil {
			return nil, fmt.Errorf("metric %s: %w", name, err)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("there is no metric %s (status %s)", name, resp.Status)
	}
	return found, nil
}

// resident is what the daemon's process has in memory now, in MiB.
func (d *daemon) resident() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", d.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	pages, err := strconv.Atoi(fields[min(1, len(fields)-1)])
	return float64(pages) * float64(os.Getpagesize()) / (1 << 20), err
}
