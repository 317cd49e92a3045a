package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"time"
)

// pace is how many times longer the work takes here and now than the demo's times suppose, at least 1: what is planned (walltimes, declared
// unit times, reservations, patience) is that much longer, on both sides alike. The work is what it is.
type pace float64

// slow is the pace of this run, set once before anything is planned.
var slow pace = 1 //nolint:gochecknoglobals // this program runs one demo

func (p pace) of(d time.Duration) time.Duration { return time.Duration(float64(p) * float64(d)) }

// mostPace bounds how long the demo takes. Walltimes are two to five times what the work takes on an idle machine, and half of that is
// rest: with it they hold where a program gets a tenth of a processor.
const mostPace = 4

// times are what a job file says of time.
var times = regexp.MustCompile(`\b(walltime|perItem|perStep|perUnit|restore|checkpoint|grace): (\d+)(ms|s)\b`)

// stretch is a file of jobs as its owner would write it where everything takes longer.
func (p pace) stretch(jobs string) string {
	return times.ReplaceAllStringFunc(jobs, func(text string) string {
		part := times.FindStringSubmatch(text)
		length, err := time.ParseDuration(part[2] + part[3])
		if err != nil {
			return text
		}
		return fmt.Sprintf("%s: %dms", part[1], int64(math.Ceil(float64(p.of(length))/float64(time.Millisecond))))
	})
}

// sample is a small part of the work and how long the demo's times suppose that it takes.
type sample struct {
	name   string
	script string
	env    []string
	takes  time.Duration
}

// samples are a small part of each example, as the blocks run them: beside each other, resting where they would wait for a device.
func samples(python bool) []sample {
	all := []sample{
		{"count-words", "examples/items/count.sh", []string{"SLUICE_FROM=0", "SLUICE_TO=100", "PACE=0.13"}, 1900 * time.Millisecond},
		{"growing", "examples/growing/grow.sh", []string{"SLUICE_FROM=190", "SLUICE_TO=210", "PACE=0.03"}, 1300 * time.Millisecond},
		{"big-sort", "examples/rigid/sort.sh", []string{"PRIME=99991", "ROOT=1000", "PACE=0.1"}, 1100 * time.Millisecond},
	}
	if python {
		all = append(all, sample{"train", "examples/steps/train.py", []string{"TOTAL_STEPS=200", "SLUICE_FROM=0", "SLUICE_TO=200", "PACE=0.6"},
			2200 * time.Millisecond})
	}
	return all
}

// margin is what is added to what was measured: others may come to a machine that is busy already.
const margin = 1.25

// calibrate measures how fast this machine runs the work now: samples of all of it, beside each other.
func calibrate(ctx context.Context, dir string, python bool) (pace, error) {
	list := samples(python)
	took, wrong := make([]float64, len(list)), make([]error, len(list))
	var all sync.WaitGroup
	for i := range list {
		all.Go(func() {
			began := time.Now()
			wrong[i] = list[i].run(ctx, filepath.Join(dir, "pace", list[i].name))
			took[i] = float64(time.Since(began)) / float64(list[i].takes)
		})
	}
	all.Wait()
	if err := errors.Join(wrong...); err != nil {
		return 1, fmt.Errorf("measuring how fast this machine is: %w", err)
	}
	most := 0.0
	for _, t := range took {
		most = max(most, t)
	}
	return paceOf(most), nil
}

// paceOf is the pace for work that takes so many times longer than supposed: as supposed on a machine that is about as fast.
func paceOf(times float64) pace {
	if times <= 1.25 {
		return 1
	}
	return pace(min(mostPace, math.Ceil(times*margin*4)/4))
}

// run does the sample as its subjob would, without Sluice.
func (s *sample) run(ctx context.Context, dir string) error {
	script, err := filepath.Abs(s.script)
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	for _, sub := range []string{"work", "output", "checkpoint"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	program := "sh"
	if filepath.Ext(script) == ".py" {
		program = "python3"
	}
	cmd := exec.CommandContext(ctx, program, script)
	cmd.Dir = filepath.Join(dir, "work")
	cmd.Env = append(os.Environ(), "SLUICE_JOB=pace", "SLUICE_SUBJOB=pace", "SLUICE_DEADLINE=2999-01-01T00:00:00Z",
		"PYTHONDONTWRITEBYTECODE=1",
		"SLUICE_OUTPUT_DIR="+filepath.Join(dir, "output"), "SLUICE_CHECKPOINT_DIR="+filepath.Join(dir, "checkpoint"),
		"SLUICE_PROGRESS_FILE="+filepath.Join(dir, "progress"), "SLUICE_NOTICE_FILE="+filepath.Join(dir, "notice"))
	cmd.Env = append(cmd.Env, s.env...)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", s.script, err, said)
	}
	return nil
}
