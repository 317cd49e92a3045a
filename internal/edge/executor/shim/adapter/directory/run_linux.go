package directory

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// Settings are what the adapter is told beside the contract's variables.
type Settings struct {
	job.Directory
	// Grace is the time between SIGTERM and SIGKILL, Total how many units the job has.
	Grace time.Duration
	Total int64
}

const (
	// kept is the folder of a subjob's checkpoint with what the program's directory had in it, mileage the file that says how far that is,
	// which may be further than what counts.
	kept, mileage = "directory", "reached"
	// looking is how often the program's directory is looked at.
	looking = 200 * time.Millisecond
	// quiet is how long nothing in the directory has changed if a program that was killed did not write to it.
	quiet = 2 * time.Second
	// longLine bounds what is looked at of a line of output, in bytes.
	longLine = 64 << 10
	// lingering is how long what a program has left behind may hold its output open.
	lingering = time.Second
)

// runner runs a program from its directory.
type runner struct {
	Settings
	by *regexp.Regexp
	// dir is the program's directory.
	dir                                     string
	from, to                                int64
	resume, checkpoint, output, progressing string

	// before is how far the directory was at first, and began when it had last changed then.
	before int64
	began  time.Time

	mu   sync.Mutex
	said marks
}

// Main runs a program on this subjob's part, as its environment has it, and is the exit status: unready if the program is not to blame.
func Main(s Settings, unready int, path string, argv []string) int {
	r, err := newRunner(s)
	if err == nil {
		err = r.restore()
	}
	if err == nil {
		r.began, _, err = lastChange(r.dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sluice:", err)
		return unready
	}
	if r.before >= r.to && r.to < r.Total { // the program was ahead of its part
		if err = errors.Join(r.keep(r.before), r.report(r.to)); err != nil {
			return failed(err)
		}
		return 0
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGALRM) // warnings, which the program hears itself
	c, outputs, err := r.start(path, argv)
	if err != nil {
		fmt.Fprintf(os.Stderr, "sluice: command %q: %v\n", argv[0], err)
		return unready
	}
	told := r.wait(c, asked)
	outputs()
	status, err := r.conclude(c.ProcessState, told)
	if err != nil {
		return failed(err)
	}
	return status
}

// failed says why the checkpoint can't be kept, and is the status for that.
func failed(err error) int {
	fmt.Fprintln(os.Stderr, "sluice: keeping the checkpoint directory:", err)
	return 1
}

func newRunner(s Settings) (*runner, error) {
	r := &runner{Settings: s, resume: os.Getenv("SLUICE_RESUME_DIR"), checkpoint: os.Getenv("SLUICE_CHECKPOINT_DIR"),
		output: os.Getenv("SLUICE_OUTPUT_DIR"), progressing: os.Getenv("SLUICE_PROGRESS_FILE")}
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

// restore puts what the subjob before has left into the program's directory, in the place of what came along with the work directory.
func (r *runner) restore() error {
	if r.resume == "" {
		return os.MkdirAll(r.dir, 0o777)
	}
	text, err := os.ReadFile(filepath.Join(r.resume, mileage))
	if err == nil {
		r.before, err = strconv.ParseInt(string(text), 10, 64)
	}
	if err != nil {
		return fmt.Errorf("the checkpoint of the subjob before: %w", err)
	}
	r.said = r.said.say(time.Time{}, r.before)
	if err := os.RemoveAll(r.dir); err != nil { //sluice:trusted it runs as the subjob itself
		return fmt.Errorf("the program's checkpoint directory: %w", err)
	}
	if err := copyTree(filepath.Join(r.resume, kept), r.dir); err != nil {
		return fmt.Errorf("putting the checkpoint into %s: %w", r.Path, err)
	}
	return nil
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

// read passes on what the program says, and takes down how far it says it is.
func (r *runner) read(out *os.File, own io.Writer) {
	lines := bufio.NewReaderSize(io.TeeReader(out, own), longLine)
	for {
		line, err := lines.ReadSlice('\n')
		for _, part := range bytes.FieldsFunc(line, func(c rune) bool { return c == '\n' || c == '\r' }) { // bars of progress return
			if n, ok := numberIn(string(part), r.by); ok {
				r.mu.Lock()
				r.said = r.said.say(time.Now(), n)
				r.mu.Unlock()
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// wait has the program run until it ends, or has done its part, or its time is over; then nothing of it is left. told: it was asked to
// stop.
func (r *runner) wait(c *exec.Cmd, asked <-chan os.Signal) (told bool) {
	over := make(chan struct{})
	go func() { _ = c.Wait(); close(over) }() // how it ended its state says
	look := time.NewTicker(looking)
	defer look.Stop()
	var leave <-chan time.Time
	tell := func() {
		if !told {
			told = true
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
	tree.End(func() []tree.Process { return tree.Processes(tree.Below(os.Getpid())) }, time.Second)
	return told
}

// near is how far the program is about, whether or not that is in its directory.
func (r *runner) near() int64 {
	if r.by == nil {
		n, _ := newest(r.dir)
		return n
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.said); n > 0 {
		return r.said[n-1].number
	}
	return 0
}

// reached is how far the directory is that last changed at a time.
func (r *runner) reached(changed time.Time) (n int64, known bool) {
	if r.by == nil {
		return newest(r.dir)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.said.by(changed)
}

// conclude makes the program's directory this subjob's checkpoint, and its output if the program is done, and says what counts.
func (r *runner) conclude(s *os.ProcessState, told bool) (status int, err error) {
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
	if why != "" {
		fmt.Fprintln(os.Stderr, "sluice:", why)
	}
	if upTo > r.from {
		if done && holds {
			err = copyTree(r.dir, filepath.Join(r.output, filepath.Base(r.dir)))
		}
		if err == nil {
			err = r.keep(max(upTo, e.reached))
		}
		if err == nil {
			err = r.report(upTo)
		}
		if err != nil {
			return 0, err
		}
	}
	if status == own {
		return endAs(w), nil
	}
	return status, nil
}

// keep makes the directory the subjob's checkpoint. Nothing counts before report.
func (r *runner) keep(reached int64) error {
	to := filepath.Join(r.checkpoint, kept)
	if os.Rename(r.dir, to) != nil { // it is on another file system
		if err := copyTree(r.dir, to); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(r.checkpoint, mileage), strconv.AppendInt(nil, reached, 10), 0o644)
}

// report replaces the progress file. It is not synced: what the subjob has written is, before it counts.
func (r *runner) report(upTo int64) error {
	temp := filepath.Join(filepath.Dir(r.progressing), ".progress.adapter")
	if err := os.WriteFile(temp, fmt.Appendf(nil, "{\"progress\":%d,\"checkpoint\":true}\n", upTo), 0o644); err != nil {
		return err
	}
	return os.Rename(temp, r.progressing)
}

// endAs ends this process as the program ended: by the SIGKILL that ended it, or with a status that says how.
func endAs(w syscall.WaitStatus) int {
	switch {
	case w.Signaled() && w.Signal() == syscall.SIGKILL:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case w.Signaled():
		return 128 + int(w.Signal())
	case w.ExitStatus() == shim.YieldCode: // a word of the contract's, which the program does not know
		return 1
	}
	return w.ExitStatus()
}

// newest is the number in the name of what changed last in a directory, of what has one.
func newest(dir string) (number int64, found bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, false
	}
	var last time.Time
	for _, e := range entries {
		n, ok := numberOf(e.Name())
		info, err := e.Info()
		if !ok || err != nil || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if at := info.ModTime(); !found || at.After(last) || at.Equal(last) && n > number {
			number, found, last = n, true, at
		}
	}
	return number, found
}

// lastChange is when anything in a directory changed last, and whether there is a file in it.
func lastChange(dir string) (at time.Time, holds bool, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error { //sluice:trusted it runs as the subjob itself
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		holds = holds || !e.IsDir()
		if m := info.ModTime(); m.After(at) {
			at = m
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, false, nil
	}
	return at, holds, err
}

// copyTree copies a directory to a place where there is none: files, directories and symbolic links, with their modes and times.
func copyTree(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	type stamp struct {
		path string
		at   time.Time
		mode fs.FileMode
	}
	var dirs []stamp
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error { //sluice:trusted it runs as the subjob itself
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if rel == "." {
			info, err = os.Stat(path)
		}
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch mode := info.Mode(); {
		case mode.IsDir():
			dirs = append(dirs, stamp{target, info.ModTime(), mode.Perm()})
			return os.Mkdir(target, 0o700)
		case mode.Type() == fs.ModeSymlink:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case mode.IsRegular():
			return copyFile(path, target, info)
		}
		return nil // a socket or a pipe is nothing that lasts
	})
	for i := len(dirs) - 1; i >= 0 && err == nil; i-- {
		d := &dirs[i]
		err = errors.Join(os.Chmod(d.path, d.mode|0o700), os.Chtimes(d.path, d.at, d.at)) //sluice:trusted it runs as the subjob itself
	}
	return err
}

// copyFile copies one file; file systems that can let both share what they hold.
func copyFile(from, to string, info fs.FileInfo) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) != nil {
		_, err = io.Copy(out, in)
	}
	return errors.Join(err, out.Close(), os.Chtimes(to, info.ModTime(), info.ModTime()))
}
