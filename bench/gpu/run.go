package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// trial is one thing that is tried. It holds if do returns no error; its figures are kept either way.
type trial struct {
	name string
	// shows is what has to be seen for it to hold.
	shows string
	// limit bounds it, so that those behind it have their time.
	limit time.Duration
	do    func(ctx context.Context, w *world) ([]figure, error)
}

func trials() []trial {
	const short, long = 40 * time.Second, 4 * time.Minute
	return []trial{
		{"isolation", "the daemon says how far subjobs are contained here", short, isolation},
		{"inventory", "name, memory and UUID of every GPU are those of nvidia-smi -q -x", short, inventoryTrial},
		{"memory", "the observed peak is the size that a program takes", time.Minute, memory},
		{"outgrow", "the device out of memory raises the profile, a crash does not", 90 * time.Second, outgrow},
		{"training", "a loop that was cut ends with the weights of one that was not", long, training},
		{"empty", "NVML sees nobody on the device once the next subjob has begun", time.Minute, empty},
		{"starts", "a cold start reaches its first result", 90 * time.Second, starts},
		{"host", "the device's memory is free in time for each of a host's bursts", long, host},
		{"power", "power was drawn, and sampled all the while", short, power},
	}
}

// figure is one thing that was seen.
type figure struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func fig(name, format string, args ...any) figure { return figure{name, fmt.Sprintf(format, args...)} }

// verdict is what became of a trial.
type verdict struct {
	Trial   string   `json:"trial"`
	Shows   string   `json:"shows"`
	Held    bool     `json:"held"`
	Why     string   `json:"why,omitempty"`
	Seconds float64  `json:"seconds"`
	Figures []figure `json:"figures"`
}

// run probes the machine and runs the trials, one after another; one that does not hold keeps none from being run.
func run(ctx context.Context, s *settings, out io.Writer) (code int, err error) {
	some, err := wanted(s.only)
	if err != nil {
		return heldNot, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.budget)
	defer cancel()
	if err = os.Setenv("PYTHONDONTWRITEBYTECODE", "1"); err != nil { // the bundle stays as it is
		return heldNot, err
	}
	if s.pretended != "" {
		if err = pretend(s.pretended); err != nil {
			return heldNot, err
		}
		fmt.Fprintln(out, "A rehearsal with a pretended driver: no GPU is tried, and nothing below is a figure of one.")
	}
	m, err := probe(ctx, s)
	if errors.Is(err, errNoGPU) {
		fmt.Fprintf(out, "no GPU: %v\n", err)
		return noGPU, nil
	}
	if err != nil {
		return heldNot, err
	}
	fmt.Fprintln(out, m.line())
	temp, err := os.MkdirTemp("", "sluice-gpu-")
	if err != nil {
		return heldNot, err
	}
	defer func() {
		if left := clearAway(temp); left != nil {
			fmt.Fprintf(out, "left behind: %v\n", left) // no verdict of a trial's
		}
	}()
	eye, err := watch(ctx, m.Python.Path, filepath.Join(s.bundle, "programs"), m.gpu().UUID, s.pace.look)
	if err != nil {
		return heldNot, err
	}
	defer func() { err = errors.Join(err, eye.close()) }()
	r := &results{Rehearsal: s.pretended != "", Date: time.Now().UTC(), Machine: m}
	shared := &shared{settings: s, machine: m, eye: eye, spans: map[string][]span{}, slowest: m.Python.Seconds}
	for _, t := range some {
		v := attempt(ctx, t, shared, filepath.Join(temp, t.name))
		r.Trials = append(r.Trials, v)
		printVerdict(out, v)
	}
	if err = r.write(s.out); err != nil {
		return heldNot, err
	}
	failed := r.failed()
	fmt.Fprintf(out, "\n%d of %d held; results in %s\n", len(some)-len(failed), len(some), s.out)
	if len(failed) > 0 {
		return heldNot, fmt.Errorf("did not hold: %s", strings.Join(failed, ", "))
	}
	return held, nil
}

// clearAway removes the trials' folders. Checkpoints in them are closed to writing, which counts where this is not root.
func clearAway(dir string) error {
	return errors.Join(filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	}), os.RemoveAll(dir))
}

// attempt runs one trial in a world of its own.
func attempt(ctx context.Context, t trial, shared *shared, dir string) (v verdict) {
	v = verdict{Trial: t.name, Shows: t.shows}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, t.limit)
	defer cancel()
	w := &world{shared: shared, dir: dir}
	figures, err := t.do(ctx, w)
	if err = errors.Join(err, w.close()); err != nil && ctx.Err() != nil {
		err = fmt.Errorf("its time was over: %w", err)
	}
	v.Figures, v.Held, v.Seconds = figures, err == nil, time.Since(began).Seconds()
	if err != nil {
		v.Why = err.Error()
	}
	return v
}

func printVerdict(out io.Writer, v verdict) {
	word := "held"
	if !v.Held {
		word = "DID NOT HOLD"
	}
	fmt.Fprintf(out, "\n%-10s %s (%.0f s): %s\n", v.Trial, word, v.Seconds, v.Shows)
	for _, f := range v.Figures {
		fmt.Fprintf(out, "  %-44s %s\n", f.Name, f.Value)
	}
	if v.Why != "" {
		fmt.Fprintf(out, "  why: %s\n", v.Why)
	}
}
