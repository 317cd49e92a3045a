package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/bench/slurm"
)

// peers are the contenders that are installed here; one line is said about each that is not. stop ends what was started
// for them.
func (s *settings) peers(ctx context.Context) (all []contender, stop func() error) {
	for _, p := range []struct{ program, lacks string }{
		{"xargs", "nothing is durable, nothing is watched or contained, no output is kept apart, a failure is a number at the end"},
		{"parallel", "its job log is not synced, nothing is watched or contained; it keeps outputs apart and can go on from its log"},
	} {
		path, err := exec.LookPath(p.program)
		if err != nil {
			fmt.Printf("# %s is not installed: skipped\n", p.program)
			continue
		}
		all = append(all, contender{"Noop/" + p.program, p.lacks, s.piped(path), s.processes})
	}
	c, err := slurm.Start(ctx, slurm.Options{Dir: filepath.Join(s.temp, "slurm"), Nodes: 1, CPUs: s.slots})
	if err != nil {
		fmt.Printf("# slurm: skipped: %v\n", err)
		return all, func() error { return nil }
	}
	const lacks = "no accounting and no control groups here: a process is held by its tree; job state is saved at intervals and not at " +
		"every change"
	return append(all,
		contender{"Noop/slurm-array", lacks, plain(c.Array), max(1, s.processes/5)},
		contender{"Noop/slurm-steps", lacks + "; steps of one allocation are not queued or kept as jobs", plain(c.Steps),
			max(1, s.processes/5)},
	), c.Stop
}

// plain is a batch without other figures.
func plain(batch func(context.Context, int) (time.Duration, error)) func(context.Context, int) (time.Duration, []figure, error) {
	return func(ctx context.Context, n int) (time.Duration, []figure, error) {
		took, err := batch(ctx, n)
		return took, nil, err
	}
}

// piped runs a program that reads an argument a line and starts /bin/true for each.
func (s *settings) piped(path string) func(context.Context, int) (time.Duration, []figure, error) {
	return func(ctx context.Context, n int) (time.Duration, []figure, error) {
		var in strings.Builder
		for i := range n {
			in.WriteString(strconv.Itoa(i) + "\n")
		}
		args := []string{"-n", "1", "-P", strconv.Itoa(s.slots), "/bin/true"}
		if strings.HasSuffix(path, "parallel") {
			args = []string{"--will-cite", "-j", strconv.Itoa(s.slots), "--joblog", s.temp + "/joblog", "/bin/true"}
		}
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Stdin = strings.NewReader(in.String())
		var said bytes.Buffer
		cmd.Stderr = &said
		begin := time.Now()
		err := cmd.Run()
		took := time.Since(begin)
		if err != nil {
			return 0, nil, fmt.Errorf("%w: %s", err, said.String())
		}
		return took, nil, nil
	}
}
