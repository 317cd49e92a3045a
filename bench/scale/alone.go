package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sluice.dev/sluice/bench/program"
	"sluice.dev/sluice/bench/scale/fleet"
)

// question is a measurement that a child process of this program makes in isolation, and reply its result.
type question struct {
	// Kind is world, node or fleet.
	Kind string `json:"kind"`
	// Waiting jobs and Slices of a world; Slices of a node; Nodes of a fleet.
	Waiting int  `json:"waiting,omitempty"`
	Slices  int  `json:"slices,omitempty"`
	Nodes   int  `json:"nodes,omitempty"`
	JASDA   bool `json:"jasda,omitempty"`
	// Sold is how many subjobs are watched.
	Sold int `json:"sold"`
	// Cold is how many MiB are read between two steps, so that a step finds nothing of its actor near: what is then dearer among many is
	// more work, and what was dearer before, memory farther away.
	Cold int `json:"cold,omitempty"`
	// Profile names the file that a profile of what is watched, without the setting up, is written to; empty: none.
	Profile string `json:"profile,omitempty"`
}

// reply is what was measured.
type reply struct {
	inside
	// PerSecond is how many simulated subjobs were over in a second, PerProcessor in a second of processor time, collecting garbage
	// included; Peak what the process had in memory at most, in GiB.
	PerSecond    float64 `json:"perSecond,omitempty"`
	PerProcessor float64 `json:"perProcessor,omitempty"`
	Peak         float64 `json:"peak"`
}

// alone answers a question, as JSON.
func alone(ctx context.Context, asked string, limit time.Duration) error {
	var q question
	if err := json.Unmarshal([]byte(asked), &q); err != nil {
		return fmt.Errorf("-alone: %w", err)
	}
	ctx, stop := frugal(ctx, limit)
	defer stop()
	var r reply
	switch q.Kind {
	case "world":
		r.inside = runWorld(ctx, q)
	case "node":
		r.inside = runNode(ctx, q)
	case "fleet":
		r = runFleet(ctx, q)
	default:
		return fmt.Errorf("-alone: there is no %q", q.Kind)
	}
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return err
	}
	r.Peak = float64(use.Maxrss) / (1 << 20)
	return json.NewEncoder(os.Stdout).Encode(r)
}

// patience is how many times longer than its limit of processor time a process may take where the machine has other things to do.
const patience = 5

// frugal is a context that ends when this process has used so much processor time.
func frugal(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithTimeout(ctx, patience*limit)
	go func() {
		look := time.NewTicker(100 * time.Millisecond)
		defer look.Stop()
		for ctx.Err() == nil {
			<-look.C
			if used() > limit {
				stop()
			}
		}
	}()
	return ctx, stop
}

// used is the processor time of this process.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// runFleet fills a simulated cluster and lets it run until so many subjobs are over, or time is.
func runFleet(ctx context.Context, q question) (r reply) {
	begin := time.Now()
	f, err := fleet.New(fleet.Options{Nodes: q.Nodes, Seed: seed})
	if err == nil {
		err = f.Fill(ctx)
	}
	if err != nil {
		r.GaveUp = fmt.Sprintf("gave up filling it after %s: %s", round(time.Since(begin)), firstLine(err))
		return r
	}
	r.SetUp = round(time.Since(begin)).String()
	before, from, spent := f.Counts(), time.Now(), used()
	if err = program.Profiled(q.Profile, func() error { return f.Go(ctx, int64(q.Sold)) }); err != nil && ctx.Err() == nil {
		r.GaveUp = firstLine(err)
		return r
	}
	r.Sold = int(f.Counts().Done - before.Done)
	r.PerSecond = float64(r.Sold) / time.Since(from).Seconds()
	r.PerProcessor = float64(r.Sold) / (used() - spent).Seconds()
	return r
}

// ask has a process of this program answer a question. One that takes too much memory or time is given up.
func (s *settings) ask(ctx context.Context, q question) (r reply, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	if s.profile != "" {
		q.Profile = filepath.Join(s.profile, fmt.Sprintf("%s-%d-%d-jasda=%v.pprof", q.Kind, q.Waiting, q.Slices+q.Nodes, q.JASDA))
	}
	asked, err := json.Marshal(q)
	if err != nil {
		return r, err
	}
	cmd := exec.CommandContext(ctx, self, "-limit", s.limit.String(), "-alone", string(asked))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return r, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	why := ""
	for look := time.NewTicker(100 * time.Millisecond); ; {
		select {
		case err := <-ended:
			look.Stop()
			if why != "" {
				s.say("%s: %s", asked, why)
				return reply{inside: inside{GaveUp: why}}, nil
			}
			if err != nil {
				return r, errors.Join(fmt.Errorf("%s: %w", asked, err), ctx.Err())
			}
			err = json.Unmarshal(out.Bytes(), &r)
			s.say("%s: set up in %s, over after %s%s", asked, r.SetUp, round(time.Since(begin)), r.GaveUp)
			return r, err
		case <-look.C:
			switch took := time.Since(begin); {
			case resident(cmd.Process.Pid) > s.memory:
				why = fmt.Sprintf("gave up: more than %s GiB after %s", number(s.memory/1024), round(took))
			case took > patience*s.limit+10*time.Second: // it does not look at the clock itself while it steps
				why = fmt.Sprintf("gave up after %s", round(took))
			default:
				continue
			}
			_ = cmd.Process.Kill()
		}
	}
}

// resident is what a process has in memory, in MiB; 0 if it is gone.
func resident(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseFloat(fields[1], 64)
	return pages * float64(os.Getpagesize()) / (1 << 20)
}
