package adapter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/executor/shim/adapter/contract"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/lines"
)

const (
	// ahead is how many bytes of lines wait for the command at most: one page, the smallest pipe. What it has not answered when it is cut
	// is worked again.
	ahead = 4 << 10
	// reporting is how often progress is written, if there is some.
	reporting = 100 * time.Millisecond
	// lingering is how long what a command has left behind may hold its stdout open.
	lingering = time.Second
)

// feeder runs a command on the lines of a piece.
type feeder struct {
	piece
	s       *Settings
	input   *lines.File
	answers *os.File

	// offered are the lines that the command may have read, fed those that were written for it whole, answered those that it has written.
	// Invariant: fed <= offered.
	offered, fed, answered atomic.Int64
	// bytes that were written for the command.
	bytes atomic.Int64
	// stopped: no further line is begun. gone: the command has ended, and one that was begun isn't finished. closed: stdin is, and fed is
	// what it will ever be.
	stopped, gone, closed atomic.Bool
	// last is when the command last wrote an answer, counted from started.
	last    atomic.Int64
	started time.Time
	// stdin is the end of the command's that we write to. unread is the other one: it tells how much nobody has read.
	stdin, unread *os.File
	// lacking is why not all lines could be read. Written by the feeder alone, and read behind it.
	lacking error
	// partial: what the command wrote last is no whole line; failed: it can't be kept, and kept are the bytes before it. Written by the
	// reader alone, and read behind it.
	partial bool
	failed  error
	kept    int64
}

// open opens what a piece needs.
func open(s *Settings, p piece) (*feeder, error) {
	at := func(path string) string {
		if path == "" || filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(s.Root, path)
	}
	l := &s.Lines
	input, err := lines.Open(at(l.Input), at(l.Index), l.Format, l.Header)
	if err != nil {
		return nil, fmt.Errorf("the input: %w", err)
	}
	if filepath.IsAbs(l.Input) { // what came along with the job is what it was
		if err = input.Unchanged(); err != nil {
			return nil, fmt.Errorf("the input: %w", err)
		}
	}
	f := &feeder{piece: p, s: s, input: input}
	f.answers, err = os.OpenFile(filepath.Join(p.output, Answers), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	return f, err
}

// ending is how a command ended, and what was said between it and us.
type ending struct {
	// total lines of the piece, of which the command was given fed whole, and answered some.
	total, fed, answered int64
	// untouched: it has read nothing.
	untouched bool
	// stopped: it got no more lines since the piece is to end; told: it heard SIGTERM; left: it runs still.
	stopped, told, left bool
	// idle: it had answered all, and went on for longer than its grace; struck: and did not heed SIGTERM either.
	idle, struck bool
	// status of its exit; -1: by a signal.
	status int
	// header: its first line is one and no answer.
	header bool
}

// own is the status with which the command itself has ended.
const own = -1

// verdict says how many answers count, and with which status the piece ends, with the reason where that is our doing.
func (e *ending) verdict() (count int64, status int, why string) {
	switch {
	case e.untouched && !e.left && (e.status == 0 || e.answered > 0) && !e.stopped:
		return 0, Unready, "the command wrote or ended without reading a line: it gets them on stdin"
	case e.untouched && !e.left && !e.stopped:
		return 0, Unready, "the command ended before it read a line: what is wrong is not in the lines"
	case e.answered > e.fed:
		return 0, 1, e.miscounted()
	case e.left && e.answered == e.total:
		return e.answered, 0, ""
	case e.left || e.untouched:
		return e.answered, yield, ""
	case e.answered == e.total && e.idle:
		by := "SIGTERM"
		if e.struck {
			by = "SIGKILL"
		}
		return e.answered, 0, "the command went on after it had answered all lines, and was ended by " + by + ": they count, but it " +
			"should end when its input does"
	case e.answered == e.total && e.told:
		return e.answered, 0, ""
	case e.answered == e.total && e.status != 0:
		return e.answered, 0, "the command did not end well, after it had answered all lines: they count"
	case e.answered == e.total:
		return e.answered, 0, ""
	case e.status != 0 && !e.told:
		return e.answered, own, ""
	case e.stopped && (e.answered == e.fed || e.told):
		return e.answered, yield, ""
	}
	return 0, 1, e.miscounted()
}

// miscounted says that answers and lines do not fit: which answers which is not known then, so none counts.
func (e *ending) miscounted() string {
	given := e.total
	if e.stopped || e.answered > e.fed {
		given = e.fed
	}
	hint := ""
	if e.answered == given+1 && !e.header {
		hint = "; if the first is a header, say answersHeader: true (sluice map --answers-header)"
	}
	return fmt.Sprintf("the command wrote %d lines for %d that it read; want one for each, none counts%s", e.answered, given, hint)
}

// run runs the command and returns the exit status.
func (f *feeder) run(program string, argv []string) int {
	asked, others := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	signal.Notify(others, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT) // warnings, which the command hears itself
	c, stdout, err := f.start(program, argv)
	if err != nil {
		return unready(fmt.Errorf("command %q: %w", argv[0], err))
	}
	var feeding, reading sync.WaitGroup
	vain, over := make(chan struct{}, 1), make(chan struct{})
	feeding.Go(f.feed)
	reading.Go(func() { f.read(stdout, vain) })
	go func() { _ = c.Wait(); close(over) }() // how it ended its state says

	e := ending{total: f.to - f.from, header: f.s.Lines.AnswersHeader}
	again := time.NewTicker(reporting)
	defer again.Stop()
	var ask, strike, leave <-chan time.Time
	for ended := false; !ended && !e.left; {
		select {
		case <-asked:
			if !e.stopped {
				e.stopped = true
				f.stop()
				ask, leave = time.After(f.s.Grace*3/4), time.After(f.s.Grace*9/10)
				if f.complete() { // there is nothing to wait for
					ask = time.After(0)
				}
			}
		case <-ask:
			e.told, e.idle = true, e.idle || !e.stopped
			tree.Ask(tree.Below(os.Getpid()), syscall.SIGTERM)
		case <-strike:
			e.struck = true
			tree.Kill(tree.Processes(tree.Below(os.Getpid())))
		case <-leave:
			e.left = true
		case <-vain:
			_ = c.Process.Kill()
		case <-again.C:
			if f.tell(); ask == nil && f.complete() {
				ask, strike = time.After(f.s.Grace), time.After(2*f.s.Grace)
			}
		case <-over:
			ended = true
		}
	}
	if e.left {
		_ = stdout.SetReadDeadline(time.Now())
	} else {
		e.status = c.ProcessState.ExitCode()
		_ = stdout.SetReadDeadline(time.Now().Add(lingering))
		f.gone.Store(true)
		f.stop()
		feeding.Wait()
		e.untouched = f.untouched()
	}
	reading.Wait()
	return f.conclude(&e, c)
}

// conclude counts, now that nothing is read any more.
func (f *feeder) conclude(e *ending, c *exec.Cmd) int {
	if f.partial && !e.left && e.status == 0 && f.failed == nil { // the last line needs no end
		if _, f.failed = f.answers.Write([]byte{'\n'}); f.failed == nil {
			f.answered.Add(1)
		}
	}
	if f.failed != nil { // what it has begun to write may have room for the progress file
		_ = f.answers.Truncate(f.kept)
		if n := f.count(); n <= f.offered.Load() {
			_ = f.report(n, 0) // else what was reported before counts
		}
	}
	if err := errors.Join(f.failed, f.answers.Close()); err != nil {
		fmt.Fprintln(os.Stderr, "sluice: writing the answers:", err)
		return contract.Failed(err)
	}
	e.fed, e.answered = f.fed.Load(), f.count()
	if e.left { // the feeder may be about to write
		e.fed = f.offered.Load()
	}
	count, status, why := e.verdict()
	if !e.left && f.lacking != nil {
		count, status, why = min(e.fed, e.answered), Unready, f.lacking.Error()
	}
	if why != "" {
		fmt.Fprintln(os.Stderr, "sluice:", why)
	}
	if e.total == 1 && count == 0 && status != 0 && status != yield && status != Unready {
		f.name()
	}
	if err := f.report(count, f.idle(count)); err != nil {
		fmt.Fprintln(os.Stderr, "sluice: writing the progress file:", err)
		return contract.Failed(err)
	}
	if status == own {
		return contract.EndAs(c.ProcessState.Sys().(syscall.WaitStatus))
	}
	return status
}

// name says which line of its file the only one of the piece is: these are the last words of a line that fails alone, and where records are
// of several lines nobody else can tell where it is.
func (f *feeder) name() {
	if at, err := f.input.Number(f.from); err == nil {
		fmt.Fprintf(os.Stderr, "sluice: the command failed on line %d of %s\n", at, f.s.Lines.Input)
	}
}

// start starts the command.
func (f *feeder) start(program string, argv []string) (c *exec.Cmd, stdout *os.File, err error) {
	var out *os.File
	if f.unread, f.stdin, err = os.Pipe(); err != nil {
		return nil, nil, err
	}
	if stdout, out, err = os.Pipe(); err != nil {
		return nil, nil, err
	}
	if raw, failed := f.stdin.SyscallConn(); failed == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, ahead) }) // a larger one is only read ahead more
	}
	c = &exec.Cmd{Path: program, Args: argv, Stdin: f.unread, Stdout: out, Stderr: os.Stderr, Env: os.Environ()}
	if !slices.ContainsFunc(c.Env, func(e string) bool { return strings.HasPrefix(e, "PYTHONUNBUFFERED=") }) {
		c.Env = append(c.Env, "PYTHONUNBUFFERED=1") // an answer that waits in a buffer does not count when the piece is cut
	}
	f.started = time.Now()
	err = c.Start()
	_ = out.Close()
	return c, stdout, err
}

// feed writes the lines of the piece to the command until it is to stop, and ends with a whole one.
func (f *feeder) feed() {
	defer func() {
		_ = f.stdin.Close()
		f.closed.Store(true)
	}()
	header, err := f.input.Header()
	if err == nil {
		err = f.whole(header)
	}
	var s *lines.Scanner
	if err == nil {
		s, err = f.input.From(f.from)
	}
	var batch []byte
	var ends []int
	for next := f.from; err == nil && next < f.to && !f.stopped.Load(); {
		batch, ends = batch[:0], ends[:0]
		for ; next < f.to && len(batch) < ahead && err == nil; next++ {
			if batch, _, err = s.Next(batch); err == nil {
				ends = append(ends, len(batch))
			}
		}
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("%s has %d lines, and the job's total is more: make them equal", f.s.Lines.Input, next-1)
		}
		if failed := f.give(batch, ends); failed != nil {
			return // the command is gone
		}
	}
	if err != nil && !f.gone.Load() {
		f.lacking = fmt.Errorf("reading the input: %w", err)
	}
}

// give writes a batch of lines that end at ends. Where it is to stop it finishes the line that it has begun.
func (f *feeder) give(batch []byte, ends []int) error {
	before := f.offered.Add(int64(len(ends))) - int64(len(ends))
	n, err := f.stdin.Write(batch)
	f.bytes.Add(int64(n))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		i, between := slices.BinarySearch(ends, n)
		if err = nil; !between && n > 0 {
			if err = f.whole(batch[n:ends[i]]); err == nil {
				n = ends[i]
			}
		}
	}
	given, last := slices.BinarySearch(ends, n)
	if last {
		given++
	}
	f.fed.Store(before + int64(given))
	if err == nil {
		f.offered.Store(before + int64(given))
	}
	return err
}

// whole writes all of some bytes, also when it is to stop.
func (f *feeder) whole(text []byte) error {
	for len(text) > 0 {
		n, err := f.stdin.Write(text)
		f.bytes.Add(int64(n))
		if text = text[n:]; errors.Is(err, os.ErrDeadlineExceeded) && !f.gone.Load() {
			err = f.stdin.SetWriteDeadline(time.Time{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stop has feed begin no further line.
func (f *feeder) stop() {
	f.stopped.Store(true)
	_ = f.stdin.SetWriteDeadline(time.Now())
}

// untouched says whether all that was written for the command is still there to be read.
func (f *feeder) untouched() bool {
	left, err := unix.IoctlGetInt(int(f.unread.Fd()), unix.TIOCINQ)
	return err == nil && int64(left) == f.bytes.Load()
}

// read takes down what the command answers. It says vain once nothing that follows can count.
func (f *feeder) read(stdout *os.File, vain chan<- struct{}) {
	stop := func() {
		select {
		case vain <- struct{}{}:
		default:
		}
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := stdout.Read(buf)
		if n > 0 && f.failed == nil {
			if _, f.failed = f.answers.Write(buf[:n]); f.failed != nil {
				stop()
			}
		}
		if n > 0 && f.failed == nil { // counted when it is there
			f.kept += int64(n)
			f.partial = buf[n-1] != '\n'
			f.last.Store(int64(time.Since(f.started)))
			if f.answered.Add(int64(bytes.Count(buf[:n], []byte{'\n'}))); f.count() > f.offered.Load() {
				stop()
			}
		}
		if err != nil {
			return
		}
	}
}

// count is how many lines were answered.
func (f *feeder) count() int64 {
	n := f.answered.Load()
	if f.s.Lines.AnswersHeader {
		n = max(0, n-1)
	}
	return n
}

// complete says that the command has had all lines, and has answered each.
func (f *feeder) complete() bool { return f.closed.Load() && f.count() == f.to-f.from }

// idle is how long ago the last answer was, if done lines are all of the piece; else 0.
func (f *feeder) idle(done int64) time.Duration {
	if done < f.to-f.from {
		return 0
	}
	return time.Since(f.started) - time.Duration(f.last.Load())
}

// tell reports progress where there is some.
func (f *feeder) tell() {
	if n := min(f.count(), f.offered.Load()); n > 0 {
		_ = f.report(n, f.idle(n)) // the next one tries again
	}
}
