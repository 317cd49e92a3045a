package directory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/adapter/contract"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// Settings are what the adapter is told beside the contract's variables.
type Settings struct {
	job.Directory
	// Grace is the time between SIGTERM and SIGKILL, Total how many units the job has.
	Grace time.Duration
	Total int64
	// Room is how many bytes the subjob may leave, 0: any number; Every how far apart copies on the way are at least, 0: apart.
	Room  int64
	Every time.Duration
}

// lingering is how long what a program has left behind may hold its output open.
const lingering = time.Second

// runner runs a program from its directory.
type runner struct {
	Settings
	gauge
	from, to int64

	// before is how far the directory was at first, and began when it had last changed then.
	before int64
	began  time.Time
}

// Main runs a program on this subjob's part, as its environment has it, and is the exit status: unready if the program is not to blame.
func Main(settings Settings, unready int, path string, argv []string) int {
	r, err := newRunner(settings)
	if err == nil {
		r.before, err = r.restore(r.Path)
	}
	if r.resume != "" {
		r.said = r.said.say(time.Time{}, r.before)
	}
	if err == nil {
		r.began, _, err = lastChange(r.dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sluice:", err)
		return unready
	}
	if r.before >= r.to && r.to < r.Total { // the program was ahead of its part
		if err = errors.Join(r.keep(r.before), r.report(r.to, true)); err != nil {
			return failed(err)
		}
		return 0
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGALRM) // warnings, which the program hears itself
	if r.timed = r.Total == job.OpenTotal && r.by == nil; r.timed {
		r.zero, r.base = time.Now(), r.from
	}
	c, outputs, err := r.start(path, argv)
	if err != nil {
		fmt.Fprintf(os.Stderr, "sluice: command %q: %v\n", argv[0], err)
		return unready
	}
	s := &saver{gauge: &r.gauge, from: r.from, to: r.to, total: r.Total, room: r.Room, every: cmp.Or(r.Every, apart)}
	stop := s.start()
	told := r.wait(c, asked, stop)
	outputs()
	status, err := r.conclude(c.ProcessState, told, s)
	if err != nil {
		return failed(err)
	}
	return status
}

// failed says why the checkpoint can't be kept, and is the status for that.
func failed(err error) int {
	fmt.Fprintln(os.Stderr, "sluice: keeping the checkpoint directory:", err)
	return contract.Failed(err)
}

func newRunner(s Settings) (*runner, error) {
	r := &runner{Settings: s, gauge: gauge{place: place{resume: os.Getenv("SLUICE_RESUME_DIR"),
		checkpoint: os.Getenv("SLUICE_CHECKPOINT_DIR"), output: os.Getenv("SLUICE_OUTPUT_DIR"),
		progressing: os.Getenv("SLUICE_PROGRESS_FILE")}}}
	var err error
	number := func(name string) int64 {
		n, failed := strconv.ParseInt(os.Getenv(name), 10, 64)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s is %q; want a number", name, os.Getenv(name)))
		}
		return n
	}
	r.from, r.to = number("SLUICE_FROM"), number("SLUICE_TO")
	if r.checkpoint == "" || r.output == "" || r.progressing == "" {
		err = errors.Join(err, errors.New("SLUICE_CHECKPOINT_DIR, SLUICE_OUTPUT_DIR or SLUICE_PROGRESS_FILE is not set"))
	}
	if s.Progress != "" {
		var failed error
		if r.by, failed = regexp.Compile(s.Progress); failed != nil {
			err = errors.Join(err, fmt.Errorf("the expression of progress: %w", failed))
		}
	}
	here, failed := os.Getwd()
	r.dir = filepath.Join(here, s.Path)
	return r, errors.Join(err, failed)
}

// start starts the program. The function returned waits until all that it has said is read.
func (r *runner) start(path string, argv []string) (c *exec.Cmd, outputs func(), err error) {
	c = &exec.Cmd{Path: path, Args: argv, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.Environ()}
	outputs = func() {}
	if r.by != nil {
		if os.Getenv("PYTHONUNBUFFERED") == "" {
			c.Env = append(c.Env, "PYTHONUNBUFFERED=1") // else it is said long after
		}
		var reading sync.WaitGroup
		var ends []*os.File
		for to, own := range map[*io.Writer]*os.File{&c.Stdout: os.Stdout, &c.Stderr: os.Stderr} {
			out, in, err := os.Pipe()
			if err != nil {
				return nil, nil, err
			}
			*to = in
			defer func() { _ = in.Close() }()
			ends = append(ends, out)
			reading.Go(func() { r.read(out, own) })
		}
		outputs = func() {
			for _, out := range ends {
				_ = out.SetReadDeadline(time.Now().Add(lingering))
			}
			reading.Wait()
		}
	}
	return c, outputs, c.Start()
}

// wait has the program run until it ends, or has done its part, or its time is over; then nothing of it is left. told: it was asked to
// stop. It calls still before anything is told to end, and in any case: nothing is copied any more then.
func (r *runner) wait(c *exec.Cmd, asked <-chan os.Signal, still func()) (told bool) {
	over := make(chan struct{})
	go func() { _ = c.Wait(); close(over) }() // how it ended its state says
	look := time.NewTicker(looking)
	defer look.Stop()
	var leave <-chan time.Time
	tell := func() {
		if !told {
			told = true
			still()
			tree.Ask(tree.Below(os.Getpid()), syscall.SIGTERM)
		}
	}
	for ended := false; !ended; {
		select {
		case <-asked:
			tell()
			leave = time.After(r.Grace * 9 / 10)
		case <-leave:
			_ = c.Process.Kill()
		case <-look.C:
			if r.to < r.Total && r.near() >= r.to {
				tell()
			}
		case <-over:
			ended = true
		}
	}
	still()
	tree.End(func() []tree.Process { return tree.Processes(tree.Below(os.Getpid())) }, time.Second)
	return told
}

// conclude makes the program's directory this subjob's checkpoint, and its output if the program is done, and says what counts.
func (r *runner) conclude(s *os.ProcessState, told bool, saved *saver) (status int, err error) {
	ended := time.Now()
	changed, holds, err := lastChange(r.dir)
	if err != nil {
		return 0, err
	}
	w, _ := s.Sys().(syscall.WaitStatus)
	e := ending{path: r.Path, from: r.from, to: r.to, total: r.Total, told: told, status: s.ExitCode(), signaled: w.Signaled(),
		holds: holds, saved: !changed.Equal(r.began)}
	e.torn = e.signaled && ended.Sub(changed) < quiet
	e.reached, e.known = r.reached(changed)
	upTo, done, status, why := e.verdict(shim.YieldCode)
	if why != "" && saved.upTo > r.from {
		why += fmt.Sprintf(" (what it had saved up to %d counts)", saved.upTo)
	}
	if why != "" {
		fmt.Fprintln(os.Stderr, "sluice:", why)
	}
	if upTo > r.from {
		if done && holds {
			err = copyTree(context.Background(), r.dir, filepath.Join(r.output, filepath.Base(r.dir)))
		}
		if err == nil {
			err = r.keep(max(upTo, e.reached))
		}
		if err == nil {
			tell := func() error { return r.report(upTo, true) }
			if done && r.Total == job.OpenTotal {
				tell = func() error { return r.end(upTo) }
			}
			err = errors.Join(tell(), saved.forget(saved.folder))
		}
		if err != nil {
			return 0, err
		}
	}
	if status == own {
		return contract.EndAs(w), nil
	}
	return status, nil
}
