package tasks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/adapter/contract"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

const (
	yielded = shim.YieldCode
	// unfinished is the folder of the output directory with what a task leaves until it has ended. What is in it does not count.
	unfinished = ".unfinished"
	// askedFor is how long a task that runs too long has after SIGTERM.
	askedFor = 5 * time.Second
	// lingering is how long what a task said is waited for once it has ended, where others hold its pipe.
	lingering = 2 * time.Second
	// tailBytes of what a failed task said last go to the subjob's own stderr.
	tailBytes = 2 << 10
	// resting is how long a task that was killed is left alone before its second run. Where all of the subjob is being killed, this process
	// is gone by then.
	resting = time.Second
	// again is the status of a task that was killed and is to be run once more. It is no exit status.
	again = -1
)

// Main runs the tasks of this subjob, as its environment has it, and is its exit status: unready if no task is to blame.
func Main(s Settings, unready int, command []string) int {
	r := runner{s: s, unready: unready, out: os.Getenv("SLUICE_OUTPUT_DIR"), progress: os.Getenv("SLUICE_PROGRESS_FILE"), stdout: os.Stdout,
		stderr: os.Stderr}
	r.listen()
	from, err := strconv.ParseInt(os.Getenv("SLUICE_FROM"), 10, 64)
	to, err2 := strconv.ParseInt(os.Getenv("SLUICE_TO"), 10, 64)
	if err = errors.Join(err, err2); err != nil {
		return r.failed(&unstarted{fmt.Errorf("SLUICE_FROM and SLUICE_TO: %w", err)})
	}
	list, err := s.plan(os.Getenv("SLUICE_JOB"), from, to, command)
	if err != nil {
		return r.failed(&unstarted{err})
	}
	return r.all(list)
}

// runner runs tasks one after another.
type runner struct {
	s              Settings
	unready        int
	out, progress  string
	stdout, stderr io.Writer
	// stop is closed once the supervisor has asked to end.
	stop chan struct{}
	// rested is how long it has run for no task.
	rested time.Duration
	// known is what trials that have ended here were worth, tried what is told of it.
	known job.Scores
	tried job.Tried
}

// listen notes SIGTERM, and survives the other signals that a job may ask for as a warning: they are for the command, which gets them from
// the supervisor too. To ignore them would make the command ignore them.
func (r *runner) listen() {
	r.stop = make(chan struct{})
	term, others := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	signal.Notify(others, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM)
	go func() {
		<-term
		close(r.stop)
	}()
}

func (r *runner) stopped() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// unstarted is the error of a command that could not be started.
type unstarted struct{ error }

// failed says an error, and is the status for it.
func (r *runner) failed(err error) int {
	fmt.Fprintln(r.stderr, "sluice:", err)
	if errors.As(err, new(*unstarted)) {
		return r.unready
	}
	return contract.Failed(err)
}

// all runs the tasks, with progress after each.
func (r *runner) all(list []task) int {
	status := 0
	for i := range list {
		t := &list[i]
		if r.stopped() {
			status = yielded
			break
		}
		rec, ends, err := r.settle(t, i == 0)
		if err == nil && rec != nil {
			if err = r.keep(rec); err == nil { // what has no record does not count
				err = r.report(t.unit + 1)
			}
		}
		if err != nil {
			return r.failed(fmt.Errorf("%s: %w", t.label, err))
		}
		if rec == nil {
			status = ends
			break
		}
	}
	if err := os.RemoveAll(filepath.Join(r.out, unfinished)); err != nil { //sluice:trusted it runs as the subjob itself
		return r.failed(err)
	}
	return status
}

// fate is what a SIGKILL that came from outside means to a task.
type fate int

const (
	// takesAll: the subjob ends by it too, since it says nothing about the task. Another subjob runs the task again.
	takesAll fate = iota
	// takesOne: the task is run once more.
	takesOne
	// isEnd: it is the task's end, as an exit status is.
	isEnd
)

// settle runs a task until it has ended or is given back, as the result of one says. A task that is killed behind others runs again as the
// first of another subjob. There it is run once more, and if it is killed again that is its end: a task that is killed wherever it runs
// would keep those behind it for ever.
func (r *runner) settle(t *task, first bool) (rec *Record, status int, err error) {
	f := takesAll
	if first && r.s.Keep {
		f = takesOne
	}
	if rec, status, err = r.one(t, f); status != again {
		return rec, status, err
	}
	fmt.Fprintf(r.stderr, "sluice: %s is run once more\n", t.label)
	select {
	case <-r.stop:
		return nil, yielded, nil
	case <-time.After(resting):
		r.rested += resting
		return r.one(t, isEnd)
	}
}

// one runs a task once. Without a record it does not count, and status is what the subjob ends with, or again.
func (r *runner) one(t *task, f fate) (rec *Record, status int, err error) {
	stage := filepath.Join(r.out, unfinished, strconv.FormatInt(t.unit, 10))
	own := filepath.Join(stage, "output")
	if err = errors.Join(os.RemoveAll(stage), os.MkdirAll(own, 0o777)); err != nil { //sluice:trusted it runs as the subjob itself
		return nil, 0, err
	}
	said, err := os.Create(filepath.Join(stage, "out"))
	if err != nil {
		return nil, 0, err
	}
	defer said.Close()
	out := &tee{file: said, log: r.stdout}
	failing := out
	if t.err != "" {
		var wrong *os.File
		if wrong, err = os.Create(filepath.Join(stage, "err")); err != nil {
			return nil, 0, err
		}
		defer wrong.Close()
		failing = &tee{file: wrong, log: r.stderr}
	}
	fmt.Fprintf(r.stdout, "sluice: %s begins\n", t.label)
	var way *climb
	if s := r.s.Trials; s != nil && s.Stop.Reduction > 0 {
		way = &climb{t: s, path: filepath.Join(stage, "metrics"), rung: -1}
	}
	end, err := r.run(t, stage, own, way, out, failing)
	if err != nil {
		return nil, 0, err
	}
	if err = errors.Join(out.err, failing.err); err != nil {
		return nil, 0, fmt.Errorf("keeping what it said: %w", err)
	}
	rec = &Record{Unit: t.unit, Task: t.index, Params: t.params, Exit: end.code, Signal: end.signal, Timeout: end.timeout,
		Seconds: float64(end.took.Milliseconds()) / 1000, Output: t.out}
	if end.hopeless {
		rec.Hopeless = way.hopeless
	}
	fmt.Fprintf(r.stdout, "sluice: %s ended after %s: %s\n", t.label, end.took.Round(time.Millisecond), rec.Said())
	if end.asked && !end.hopeless {
		// Another subjob runs it again, whatever its exit status: many programs end with 0 when they are told to, and are not done.
		return nil, yielded, nil
	}
	killed := rec.killed()
	if rec.Failed() && (!r.s.Keep || killed) {
		fmt.Fprintf(r.stderr, "%s\nsluice: %s: %s\n", strings.TrimRight(failing.tail(), "\n"), t.label, rec.Said())
	}
	switch {
	case killed && f == takesOne:
		return nil, again, nil
	case rec.Failed() && !r.s.Keep || killed && f == takesAll:
		return nil, max(1, contract.EndAs(end.status)), nil // one that took too long may have ended with 0
	}
	if t.metrics != "" {
		if rec.Metrics, err = sumFile(filepath.Join(stage, "metrics")); err != nil {
			return nil, 0, fmt.Errorf("reading its metrics: %w", err)
		}
	}
	r.tell(way)
	return rec, 0, r.place(t, stage, own)
}

// ending is how a command ended.
type ending struct {
	code, signal int
	status       syscall.WaitStatus
	// timeout: it had run for as long as it may. asked: it was told to end, with the subjob.
	// hopeless: it was stopped for what its metric was.
	timeout, asked, hopeless bool
	took                     time.Duration
}

// run runs the command of a task in a process group of its own, of which nothing is left when it returns.
// way is that of a trial that may be hopeless.
func (r *runner) run(t *task, stage, own string, way *climb, out, failing io.Writer) (e ending, err error) {
	c := exec.Command(t.argv[0], t.argv[1:]...)
	c.Stdout, c.Stderr = out, failing
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.WaitDelay = lingering
	c.Env = append(os.Environ(), append([]string{"SLUICE_FROM=" + strconv.FormatInt(t.unit, 10), "SLUICE_TO=" +
		strconv.FormatInt(t.unit+1, 10), "SLUICE_OUTPUT_DIR=" + own, "SLUICE_PROGRESS_FILE=" + filepath.Join(stage, "progress"),
		"SLUICE_METRICS_FILE=" + filepath.Join(stage, "metrics")}, t.env...)...)
	began := time.Now()
	if err = c.Start(); err != nil {
		return e, &unstarted{err}
	}
	group := -c.Process.Pid
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	limit := r.limit()
	stop, asked := r.stop, (<-chan time.Time)(nil)
	var look <-chan time.Time
	if way != nil {
		tick := time.NewTicker(looking)
		defer tick.Stop()
		look = tick.C
	}
wait:
	for {
		select {
		case err = <-ended:
			break wait
		case <-stop: // the supervisor has asked this process alone
			e.asked, stop, asked = true, nil, time.After(r.s.Grace*9/10)
			tree.Ask(tree.Below(os.Getpid()), syscall.SIGTERM)
		case <-limit:
			e.timeout, limit, asked = true, nil, time.After(askedFor)
			_ = syscall.Kill(group, syscall.SIGTERM)
		case <-look:
			if bad := way.look(r.known); bad != nil {
				fmt.Fprintf(r.stderr, "sluice: %s: its metrics can't be read, so it is not stopped for them: %v\n", t.label, bad)
				look = nil
			} else if way.hopeless != nil && !e.asked && len(ended) == 0 {
				e.hopeless, look, limit, asked = true, nil, nil, time.After(r.s.Grace)
				_ = syscall.Kill(group, syscall.SIGTERM)
			}
		case <-asked:
			asked = nil
			_ = syscall.Kill(group, syscall.SIGKILL)
		}
	}
	_ = syscall.Kill(group, syscall.SIGKILL) // what it left running must not disturb the next task
	e.took = time.Since(began)
	if way != nil && !e.hopeless {
		_ = way.look(r.known) // what could be read counts
		way.hopeless = nil    // it came to its end before anybody looked
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return e, err
	}
	e.status = c.ProcessState.Sys().(syscall.WaitStatus)
	e.code = e.status.ExitStatus()
	if e.status.Signaled() {
		e.signal = int(e.status.Signal())
	}
	return e, nil
}

// limit fires when a task has run for as long as it may; nil: it never does.
func (r *runner) limit() <-chan time.Time {
	if r.s.Array == nil || r.s.Array.Limit <= 0 {
		return nil
	}
	return time.After(r.s.Array.Limit)
}

// place puts what a task has left where it belongs.
func (r *runner) place(t *task, stage, own string) error {
	err := os.Remove(own) // fails where it has something in it
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		err = os.Rename(own, filepath.Join(r.out, t.folder))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("what it left: %w", err)
	}
	for _, f := range []struct{ from, to string }{{"out", t.out}, {"err", t.err}, {"metrics", t.metrics}} {
		if f.to == "" {
			continue
		}
		to := filepath.Join(r.out, f.to)
		err := os.MkdirAll(filepath.Dir(to), 0o777)
		if err == nil {
			err = os.Rename(filepath.Join(stage, f.from), to)
		}
		if err != nil && !(f.from == "metrics" && errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return os.RemoveAll(stage) //sluice:trusted it runs as the subjob itself
}

// keep adds a record.
func (r *runner) keep(rec *Record) error {
	line, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(r.out, RecordFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// report says that all units before one are done, and which time none has cost.
func (r *runner) report(unit int64) error {
	return contract.Report(r.progress, shim.Progress{Progress: unit, Idle: r.rested, Tried: r.found()})
}

// tell notes what a trial that has ended was worth, for those behind it and for the home.
func (r *runner) tell(c *climb) {
	if c == nil {
		return
	}
	r.known = r.known.Add(&job.Tried{Scores: c.scores})
	r.tried.Scores = append(r.tried.Scores, c.scores...)
	r.tried.Scores = r.tried.Scores[:min(len(r.tried.Scores), shim.MostScores)]
	if c.hopeless != nil {
		r.tried.Hopeless++
	}
}

// found is what the progress file says of trials.
func (r *runner) found() *job.Tried {
	if len(r.tried.Scores) == 0 {
		return nil
	}
	return &r.tried
}

// tee writes to a file, whose error counts, and to the subjob's log, whose does not: that has a limit of its own.
type tee struct {
	file io.Writer
	log  io.Writer
	err  error
	last []byte
}

func (w *tee) Write(p []byte) (int, error) {
	if w.err == nil {
		_, w.err = w.file.Write(p)
	}
	_, _ = w.log.Write(p)
	if w.last = append(w.last, p...); len(w.last) > 2*tailBytes {
		w.last = append(w.last[:0], w.last[len(w.last)-tailBytes:]...)
	}
	return len(p), nil
}

// tail is the end of what was written.
func (w *tee) tail() string { return string(w.last[max(0, len(w.last)-tailBytes):]) }
