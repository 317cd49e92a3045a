package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"sluice.dev/sluice/bench/program"
)

// machine is what the trials stand on.
type machine struct {
	Version   string `json:"version"`
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`
	Kernel    string `json:"kernel"`
	// GVisor: the kernel is gVisor's.
	GVisor bool `json:"gvisor"`
	Root   bool `json:"root"`
	// Driver and GPUs as NVML has them, asked without Sluice. The first GPU is the one that is worked on.
	Driver string   `json:"driver"`
	GPUs   []device `json:"gpus"`
	Python python   `json:"python"`
}

type device struct {
	UUID  string `json:"uuid"`
	Name  string `json:"name"`
	Total int64  `json:"total"`
	Used  int64  `json:"used"`
	// MIG is unset where the GPU knows no such thing.
	MIG *bool `json:"mig"`
}

// python is an interpreter, and what of the GPU its PyTorch sees.
type python struct {
	Path       string  `json:"path"`
	Version    string  `json:"python"`
	Torch      string  `json:"torch"`
	CUDA       string  `json:"cuda"`
	Capability string  `json:"capability"`
	Seconds    float64 `json:"seconds"`
	Trouble    string  `json:"trouble"`
}

// errNoGPU: there is nothing to try. Every other trouble is a failure.
var errNoGPU = errors.New("there is nothing to try")

func (m *machine) gpu() device { return m.GPUs[0] }

// line is the machine in one line, for people.
func (m *machine) line() string {
	where, who, torch := "kernel "+m.Kernel, "not root", "no PyTorch"
	if m.GVisor {
		where += " (gVisor)"
	}
	if m.Root {
		who = "root"
	}
	if m.Python.Torch != "" {
		torch = "PyTorch " + m.Python.Torch
	}
	if m.Python.CUDA != "" {
		torch += " with CUDA " + m.Python.CUDA
	}
	return fmt.Sprintf("%d x %s with %.1f GiB, driver %s; %s, Python %s; %d cores of %s, %s, %s", len(m.GPUs), m.gpu().Name,
		float64(m.gpu().Total)/(1<<30), m.Driver, torch, m.Python.Version, m.Cores, m.Processor, where, who)
}

// probe looks at the machine. Without a GPU the error is errNoGPU.
func probe(ctx context.Context, s *settings) (*machine, error) {
	m := &machine{Version: version, Root: os.Geteuid() == 0}
	m.Processor, m.Cores = program.Processor()
	if m.Cores == 0 {
		m.Cores = runtime.NumCPU()
	}
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease") // where there is none it stays empty
	m.Kernel = strings.TrimSpace(string(release))
	built, _ := os.ReadFile("/proc/version")
	m.GVisor = strings.Contains(string(built), "4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016") // a constant of gVisor's
	if err := m.findGPUs(ctx, s); err != nil {
		return nil, err
	}
	return m, m.findPython(ctx, s)
}

// pythons are the interpreters that may do.
func pythons(s *settings) (all []string) {
	for _, name := range []string{s.python, "python3", "/usr/bin/python3"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			all = append(all, path)
		}
		if s.python != "" {
			break
		}
	}
	return all
}

// findGPUs asks NVML, by way of Python.
func (m *machine) findGPUs(ctx context.Context, s *settings) error {
	candidates := pythons(s)
	if len(candidates) == 0 {
		if _, err := os.Stat("/dev/nvidiactl"); err != nil {
			return fmt.Errorf("%w: there is no /dev/nvidiactl", errNoGPU)
		}
		return errors.New("there is a driver, but no python3: the trials are Python programs; install it, or name it (-python)")
	}
	list := exec.CommandContext(ctx, candidates[0], "witness.py", "--list")
	list.Dir = filepath.Join(s.bundle, "programs")
	out, err := list.Output()
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.ExitCode() == noGPU {
		return fmt.Errorf("%w: %s", errNoGPU, strings.TrimSpace(string(ended.Stderr)))
	}
	if err != nil {
		return said("witness.py --list", err)
	}
	if err = json.Unmarshal(out, m); err != nil {
		return fmt.Errorf("witness.py --list: %w", err)
	}
	return nil
}

// findPython takes the first interpreter whose PyTorch sees the GPU. In a rehearsal any does.
func (m *machine) findPython(ctx context.Context, s *settings) error {
	var errs []error
	for _, path := range pythons(s) {
		p, err := ask(ctx, s, path)
		if err == nil && (p.Trouble == "" || s.pretended != "") {
			// Again: the first time it was read from disk, which what follows is not.
			m.Python, err = ask(ctx, s, path)
			return err
		}
		if err == nil {
			err = fmt.Errorf("%s: %s", p.Path, p.Trouble)
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("there is a GPU, but no Python whose PyTorch sees it: name it (-python):\n%w", errors.Join(errs...))
}

// ask asks an interpreter what it has.
func ask(ctx context.Context, s *settings, path string) (p python, err error) {
	look := exec.CommandContext(ctx, path, "probe.py")
	look.Dir = filepath.Join(s.bundle, "programs")
	out, err := look.Output()
	if err != nil {
		return p, said(path+" probe.py", err)
	}
	if err = json.Unmarshal(out, &p); err != nil {
		return p, fmt.Errorf("%s probe.py: %w", path, err)
	}
	return p, nil
}

// said is the error of a program with what it wrote last.
func said(what string, err error) error {
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		lines := strings.Split(strings.TrimSpace(string(ended.Stderr)), "\n")
		return fmt.Errorf("%s: %w: %s", what, err, strings.Join(lines[max(0, len(lines)-3):], " / "))
	}
	return fmt.Errorf("%s: %w", what, err)
}

// pretend has every process that is started from here find the pretended driver in a folder: lib/libnvidia-ml.so.1, bin/nvidia-smi, and
// claims, with the size of its memory in the file total.
func pretend(dir string) error {
	for name, value := range map[string]string{
		"LD_LIBRARY_PATH":  filepath.Join(dir, "lib"),
		"PATH":             filepath.Join(dir, "bin") + string(os.PathListSeparator) + os.Getenv("PATH"),
		"GPU_TRIAL_CLAIMS": filepath.Join(dir, "claims"),
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	_, err := os.Stat(filepath.Join(dir, "claims", "total"))
	return err
}

// passed are the variables by which programs find the driver and PyTorch: subjobs get none but those that their job names.
func passed() map[string]string {
	env := map[string]string{"PYTHONDONTWRITEBYTECODE": "1"}
	for _, name := range []string{"LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CUDA_HOME", "GPU_TRIAL_CLAIMS"} {
		if v := os.Getenv(name); v != "" {
			env[name] = v
		}
	}
	return env
}
