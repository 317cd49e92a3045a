package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/bench/daemon"
)

// version is set by the build.
var version = "unknown"

// shared is what all trials of a run have in common.
type shared struct {
	*settings
	machine *machine
	eye     *witness
	// spans are the times in which the device did one kind of work, for the figures of power. One trial at a time writes to it.
	spans map[string][]span
	// stepping is how long a step of training takes, once it is known.
	stepping stepping
	// slowest is the longest that a program was seen to need until the device worked for it, in seconds.
	slowest float64
}

type span struct{ from, to time.Time }

// world is one trial's own daemon.
type world struct {
	*shared
	// dir is a folder of the trial's own, with the programs of the bundle in bin.
	dir string
	d   *daemon.Daemon
	// slice is the one that is worked on.
	slice *pb.Slice

	mu   sync.Mutex
	jobs int
}

// up starts a daemon on these GPUs.
func (w *world) up(gpus string) error {
	bin := filepath.Join(w.dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	if err := unpack(w.bundle, bin); err != nil {
		return err
	}
	var err error
	w.d, err = daemon.Start(daemon.Options{Bin: bin, Dir: w.dir, GPUs: gpus})
	return err
}

// upOnOne starts a daemon on the first GPU. If it is cut into several slices all but the first are taken off the market.
func (w *world) upOnOne(ctx context.Context) error {
	if err := w.up("nvml:" + w.machine.gpu().UUID); err != nil {
		return err
	}
	all, err := w.slices(ctx)
	if err != nil {
		return err
	}
	w.slice = all[0]
	for _, s := range all[1:] {
		if _, err := w.d.Drain(ctx, s.Id); err != nil {
			return err
		}
	}
	return nil
}

// slices waits until the daemon shows some.
func (w *world) slices(ctx context.Context) ([]*pb.Slice, error) {
	for {
		list, err := w.d.ListSlices(ctx, connect.NewRequest(&pb.ListSlicesRequest{}))
		if err != nil {
			return nil, err
		}
		if len(list.Msg.Slices) > 0 {
			return list.Msg.Slices, nil
		}
		if err = pause(ctx, 20*time.Millisecond); err != nil {
			return nil, fmt.Errorf("the daemon shows no slices: %w; its log: %s", err, w.d.Said())
		}
	}
}

// free waits until the slice is for sale: nobody is seen on it any more.
func (w *world) free(ctx context.Context) error {
	for {
		all, err := w.slices(ctx)
		if err != nil {
			return err
		}
		for _, s := range all {
			if s.Id == w.slice.Id && s.State == pb.Slice_IDLE {
				return nil
			}
		}
		if err = pause(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("slice %s is not free: %w", w.slice.Id, err)
		}
	}
}

func (w *world) close() error {
	if w.d == nil {
		return nil
	}
	return w.d.Stop()
}

// job is a job that is submitted: what is said of it in a job file, and its program with its environment.
type job struct {
	// spec has the keys of spec besides those that submit fills in.
	spec map[string]any
	// program with its arguments, from the bundle's programs.
	program []string
	env     map[string]string
}

// submit submits a job by the command line, as people do. It returns the job's name.
func (w *world) submit(ctx context.Context, name string, j job) (string, error) {
	w.mu.Lock()
	w.jobs++
	name += "-" + strconv.Itoa(w.jobs)
	w.mu.Unlock()
	env := passed()
	maps.Copy(env, j.env)
	spec := map[string]any{
		"command": append([]string{w.machine.Python.Path, "./" + j.program[0]}, j.program[1:]...),
		"workdir": filepath.Join(w.bundle, "programs"), "env": env, "memory": asked(w.room()),
	}
	maps.Copy(spec, j.spec)
	if _, rigid := spec["rigid"]; !rigid {
		spec["startup"] = w.startup().String()
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "sluice.dev/v1alpha1", "kind": "Job", "metadata": map[string]any{"name": name}, "spec": spec,
	})
	if err != nil {
		return "", err
	}
	file := filepath.Join(w.dir, name+".yaml") // JSON is YAML
	if err = os.WriteFile(file, text, 0o644); err != nil {
		return "", err
	}
	_, err = w.sluice(ctx, "submit", file)
	return name, err
}

// sluice runs the command line, and returns what it printed.
func (w *world) sluice(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(w.dir, "bin", "sluice"), args...)
	cmd.Env = append(os.Environ(), "SLUICE_SERVER="+strings.TrimPrefix(w.d.Base, "http://"))
	out, err := cmd.Output()
	if err != nil {
		return nil, said("sluice "+strings.Join(args, " "), err)
	}
	return out, nil
}

// output reads one file of a job's output, which is JSON.
func (w *world) output(ctx context.Context, name, file string, into any) error {
	text, err := w.sluice(ctx, "output", name, "--cat", "--file", file)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("output %s of job %s: %w", file, name, err)
	}
	return nil
}

// until waits until a job is as wanted, which is said in what for people.
func (w *world) until(ctx context.Context, name, what string, ok func(*pb.Job) bool) (*pb.Job, error) {
	var j *pb.Job
	for {
		r, err := w.d.GetJob(ctx, connect.NewRequest(&pb.GetJobRequest{Name: name}))
		if err == nil {
			j = r.Msg.Job
			if ok(j) {
				return j, nil
			}
			if j.Final {
				return j, fmt.Errorf("job %s is over before it %s: %s%s", name, what, tale(j), w.last(ctx, name))
			}
			err = pause(ctx, 20*time.Millisecond)
		}
		if err != nil && j != nil {
			return nil, fmt.Errorf("job %s does not come so far that it %s: %s: %w", name, what, tale(j), err)
		}
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", name, err)
		}
	}
}

// tale is where a job stands, with its last subjobs, for people.
func tale(j *pb.Job) string {
	text := fmt.Sprintf("%s, %d/%d: %s", j.State, j.Progress, j.Total, j.Reason)
	for _, s := range j.History[max(0, len(j.History)-4):] {
		text += fmt.Sprintf("; [%d,%d) %s", s.Range.GetFrom(), s.Range.GetTo(), s.Outcome)
		if s.Start != nil && s.End != nil {
			text += fmt.Sprintf(" after %.1f s", s.End.AsTime().Sub(s.Start.AsTime()).Seconds())
		}
		if s.Detail != "" {
			text += " (" + s.Detail + ")"
		}
	}
	return text
}

// completed waits until a job has completed.
func (w *world) completed(ctx context.Context, name string) (*pb.Job, error) {
	return w.until(ctx, name, "has completed", func(j *pb.Job) bool { return j.State == pb.Job_COMPLETED })
}

// last is what a job's newest subjob wrote last, for people; empty if it wrote nothing.
func (w *world) last(ctx context.Context, name string) string {
	text, err := w.sluice(ctx, "logs", name)
	if err != nil || len(text) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return " (it wrote: " + strings.Join(lines[max(0, len(lines)-3):], " / ") + ")"
}

func (w *world) cancel(ctx context.Context, name string) error {
	_, err := w.d.Cancel(ctx, connect.NewRequest(&pb.CancelRequest{Name: name}))
	return err
}

// bare runs a program as a subjob's would be run, but without Sluice, and reads the file of its output that matches.
func (w *world) bare(ctx context.Context, units int64, env map[string]string, file string, into any, program ...string) (err error) {
	dir, err := os.MkdirTemp(w.dir, "bare-")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, w.machine.Python.Path, program...)
	cmd.Dir = filepath.Join(w.bundle, "programs")
	cmd.Env = append(os.Environ(), "SLUICE_JOB=bare", "SLUICE_SUBJOB=bare", "SLUICE_FROM=0", "SLUICE_TO="+strconv.FormatInt(units, 10),
		"SLUICE_DEADLINE="+time.Now().Add(time.Hour).UTC().Format(time.RFC3339), "SLUICE_PROGRESS_FILE="+filepath.Join(dir, "progress"),
		"SLUICE_OUTPUT_DIR="+dir, "SLUICE_CHECKPOINT_DIR="+dir,
		"CUDA_VISIBLE_DEVICES="+w.slice.Device)
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	if _, err = cmd.Output(); err != nil {
		return said(strings.Join(program, " "), err)
	}
	found, err := filepath.Glob(filepath.Join(dir, file))
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("%s left %d files %s, want one", program[0], len(found), file)
	}
	if err != nil {
		return err
	}
	text, err := os.ReadFile(found[0])
	return errors.Join(err, json.Unmarshal(text, into))
}

// pause waits; an error is that the time of the trial is over.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// startup is what a program is given from its start until the device works for it: half more than was seen.
func (w *world) startup() time.Duration {
	return (time.Second + time.Duration(1.5*w.slowest*float64(time.Second))).Round(100 * time.Millisecond)
}

// room is what a program takes on the device by being there, as jobs declare it: CUDA's context, PyTorch's kernels, the network.
func (w *world) room() int64 { return min(2<<30, w.slice.MemoryBytes/4) }

// asked is a size as a job file has it.
func asked(n int64) string { return strconv.FormatInt(n>>20, 10) + "Mi" }

func mebibytes(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }
