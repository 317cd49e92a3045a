package pod

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/store"
	storetree "sluice.dev/sluice/internal/edge/store/tree"
)

// Main is `sluice-shim pod`; args follow the verb. It returns the exit status: 0 if the subjob is done or has yielded.
func Main(args []string) int {
	if len(args) != 4 {
		fmt.Fprintln(os.Stderr, "sluice-shim pod is the first process of a Pod that Sluice makes. Usage: sluice-shim pod DIRECTORY "+
			"RUN-FILE ORDER-FILE END-FILE")
		return 2
	}
	p := &process{orders: args[2], asked: make(chan os.Signal, 1), store: clientOf(filepath.Join(filepath.Dir(args[1]), Bundle))}
	signal.Notify(p.asked, syscall.SIGTERM, syscall.SIGINT)
	data, err := os.ReadFile(args[1])
	if err == nil {
		err = errors.Join(json.Unmarshal(data, &p.run), os.Remove(args[1])) // keep the URLs from the job's program
	}
	if err == nil {
		// Orphans are reparented to this process, so that nothing is stored while one of them may still write to it.
		err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	if err != nil { // the message is then no Said, and is shown as it is
		err = errors.Join(fmt.Errorf("reading what is to run: %w", err),
			os.WriteFile(args[3], []byte("reading what is to run: "+err.Error()), 0o644)) //nolint:gosec // the kubelet reads it
		fmt.Fprintln(os.Stderr, "sluice-shim:", err)
		return 1
	}
	p.dir = shim.Dir(filepath.Join(args[0], p.run.Token.String()))
	said := p.whole()
	if err := os.WriteFile(args[3], said.Encode(), 0o644); err != nil { //nolint:gosec // the kubelet reads it
		fmt.Fprintln(os.Stderr, "sluice-shim: saying how it ended:", err)
		return 1
	}
	if said.Result.Outcome != job.Done && said.Result.Outcome != job.Yielded {
		fmt.Fprintf(os.Stderr, "sluice-shim: %v: %s\n", said.Result.Outcome, said.Result.Detail)
		return 1
	}
	return 0
}

// process is the state of a Pod's first process.
type process struct {
	run    Run
	dir    shim.Dir
	orders string
	lease  shim.Lease
	// store is the HTTP client for the store.
	store *http.Client
	// asked receives SIGTERM, when the Pod is to end.
	asked chan os.Signal

	order Order
	// signalled is when SIGTERM came; heeded is the last order that was passed to the supervisor, as text.
	signalled time.Time
	heeded    string
	owner     *owner
	// cut is when the lease ends since the operator is not heard any more; 0: it is, or nobody asks.
	cut  quantity.Instant
	told *teller
	logs [2]follower
}

// whole runs the subjob from fetching to storing.
func (p *process) whole() Said {
	p.order.End = p.run.End
	p.lease = p.makeLease()
	p.told = newTeller(p.store, p.run.Progress, p.run.Report)
	if p.run.Ownerless > 0 && p.run.Beat != "" {
		p.owner = newOwner(p.run.Ownerless,
			func(ctx context.Context) (string, error) { return readBeat(ctx, p.store, p.run.Beat) }, shim.Boottime)
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		go p.owner.listen(ctx)
	}
	p.logs = [2]follower{{path: p.dir.Stdout(), to: os.Stdout}, {path: p.dir.Stderr(), to: os.Stderr}}
	if err := p.furnish(); err != nil {
		outcome := job.NodeFailed
		if p.stopped() {
			outcome = job.Stopped
		} else if errkind.Of(err) == errkind.Invalid {
			outcome = job.StartFailed
		}
		return p.never(outcome, err.Error())
	}
	result, err := p.supervise()
	if err != nil {
		return p.never(job.NodeFailed, err.Error())
	}
	if (result.Outcome == job.Yielded || result.Outcome == job.Stopped) && result.Detail == "" && p.cut != 0 {
		result.Detail = p.unheard()
	}
	return p.putAway(result)
}

// never is the result of a subjob that did not begin.
func (p *process) never(o job.Outcome, why string) Said {
	return Said{Result: job.Result{Outcome: o, ExitCode: -1, Progress: p.run.Range.From, End: p.lease.Anchor.Now(), Detail: why}}
}

// makeLease is the lease file for the supervisor. Its anchor ties the wall clock to the kernel's boot-time clock here, once; later changes
// of the wall clock do not matter.
func (p *process) makeLease() shim.Lease {
	r := &p.run
	l := shim.Lease{
		Part: r.Part, Start: r.Start, End: r.End, Anchor: shim.AnchorAt(quantity.At(time.Now())), BootID: shim.BootID(), Grace: r.Grace,
		Asked: r.Asked, Program: executor.Program{WarnSignal: r.WarnSignal, WarnBefore: r.WarnBefore, Command: r.Command,
			Adapter: r.Adapter,
			WorkDir: filepath.Join(p.dir.Work(), r.Subdir), Umask: r.Umask},
		LogLimit: r.LogLimit, OutputLimit: r.OutputLimit,
	}
	if r.Resume != nil {
		l.Resume = filepath.Join(string(p.dir), "resume")
	}
	if r.Measured {
		l.Memory = r.Memory
	} else {
		l.DeviceMemory = r.Memory
	}
	l.Env = p.environment(&l)
	if r.Resident {
		l.Stay = &shim.Stay{First: r.Token, Memory: r.Memory}
		l.Env = shim.ResidentEnv(l.Env, "")
	}
	return l
}

// environment joins the container's, the job's and the contract's variables, the latter taking precedence. The container runtime has set
// those of devices.
func (p *process) environment(l *shim.Lease) []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, e := range append(os.Environ(), p.run.Env...) {
		if !strings.HasPrefix(e, "SLUICE_") {
			env = append(env, e)
		}
	}
	env = append(env,
		"HOME="+l.WorkDir, "TMPDIR="+p.dir.Tmp(),
		"SLUICE_JOB="+string(l.Job), "SLUICE_SUBJOB="+l.Token.String(),
		"SLUICE_FROM="+strconv.FormatInt(l.Range.From, 10), "SLUICE_TO="+strconv.FormatInt(l.Range.To, 10),
		"SLUICE_DEADLINE="+shim.Deadline(l.End), "SLUICE_MEMORY_BYTES="+strconv.FormatInt(int64(p.run.Memory), 10),
		"SLUICE_CHECKPOINT_DIR="+p.dir.Checkpoint(), "SLUICE_OUTPUT_DIR="+p.dir.Output(), "SLUICE_PROGRESS_FILE="+p.dir.Progress(),
		"SLUICE_LEASE_FILE="+p.dir.Terms(), "SLUICE_NOTICE_FILE="+p.dir.Notice(),
	)
	if l.Members > 0 {
		env = append(env, "SLUICE_MEMBER="+strconv.Itoa(l.Member), "SLUICE_MEMBERS="+strconv.Itoa(l.Members))
	}
	if l.Resume != "" {
		env = append(env, "SLUICE_RESUME_DIR="+l.Resume)
	}
	for _, e := range p.run.Env { // includes the option that it was sold with
		if strings.HasPrefix(e, "SLUICE_OPTION=") {
			env = append(env, e)
		}
	}
	return env
}

// tick is how often orders, progress and the supervisor are polled.
const tick = 50 * time.Millisecond

// supervise starts the supervisor, which runs the subjob, and accompanies it to its end.
func (p *process) supervise() (job.Result, error) {
	self, err := os.Executable()
	if err != nil {
		return job.Result{}, err
	}
	cmd := exec.Command(self, "supervise", string(p.dir)) //nolint:gosec // this very program
	cmd.Stderr = os.Stderr
	// The kernel kills it with the thread that starts it, hence the locked thread: nothing of a Pod runs without its first process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err = cmd.Start(); err != nil {
		return job.Result{}, fmt.Errorf("starting the supervisor: %w", err)
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	again := time.NewTicker(tick)
	defer again.Stop()
	for ended := false; !ended; {
		select {
		case <-p.asked:
			p.signalled = time.Now()
		case <-again.C:
		case err = <-over:
			ended = true
		}
		p.heed()
		if p.overdue() { // its program may have stopped it, as both have one user
			_ = cmd.Process.Kill()
		}
		p.tell(false)
		p.follow()
	}
	p.reap()
	if r, failed := p.dir.ReadResult(); failed == nil {
		return r, nil
	}
	return p.lost(err), nil
}

// late is how long after the end a working supervisor takes at most to end its subjob.
const late = 15 * time.Second

// overdue reports whether the supervisor should have ended the subjob by now.
func (p *process) overdue() bool {
	if !p.signalled.IsZero() && time.Since(p.signalled) > p.run.Grace+patience+late {
		return true
	}
	end := min(p.order.End, p.run.End)
	return end != quantity.Never && p.lease.Anchor.Until(end) < -late
}

// reap kills what has outlived the supervisor, and waits until nothing is left.
func (p *process) reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.ECHILD) {
			return
		}
		if pid <= 0 {
			tree.Kill(tree.Processes(tree.Below(os.Getpid())))
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// lost is the result of a subjob whose supervisor died, after reap.
func (p *process) lost(why error) job.Result {
	e := shim.Ending{ExitCode: -1, Cause: job.Lost, Forced: true, To: p.run.Range.To, FirstTo: p.run.Range.To}
	e.Unfit = p.dir.Unmount()
	e.Said, e.Spoke = p.dir.ReadProgress()
	r, err := p.dir.Conclude(&p.lease, e)
	refused := r.Outcome == job.LimitKilled
	if err != nil {
		r.Outcome, r.Progress, r.Checkpoint = job.Lost, p.run.Range.From, false
	}
	if note, err := p.dir.ReadNote(); err == nil {
		r.Start = note.At
	}
	died := fmt.Sprintf("the supervisor died (%v)", why)
	if refused {
		died = r.Detail + "; " + died
	}
	r.End, r.Detail = max(r.Start, p.lease.Anchor.Now()), died
	r.Prepare, r.Unpack = p.lease.Prepared(r.Start)
	if said := shim.Tail(p.dir.Stderr(), 20, 4<<10); said != "" {
		r.Detail += "\n" + said
	}
	return r
}

// follower copies what is appended to a file.
type follower struct {
	path string
	to   io.Writer
	at   int64
}

// follow copies the command's output to ours, where a Pod's logs are read.
func (p *process) follow() {
	for i := range p.logs {
		l := &p.logs[i]
		f, err := os.Open(l.path)
		if err != nil {
			continue // nothing written yet
		}
		n, _ := io.Copy(l.to, io.NewSectionReader(f, l.at, 1<<62-l.at))
		l.at += n
		_ = f.Close()
	}
}

// patience is how long after SIGTERM to wait for the order that says why: the annotation is written before the deletion, but the kubelet
// may update the file after the signal.
const patience = time.Second

// heed reads the order file and passes news to the supervisor. Failures are retried with the next tick.
func (p *process) heed() {
	p.read()
	p.abandoned()
	o := p.order
	if !o.Stop && !p.signalled.IsZero() {
		if time.Since(p.signalled) < min(patience, p.run.Grace/2) {
			return
		}
		o.Stop, o.Why = true, "its Pod is being deleted"
	}
	said := fmt.Sprint(o)
	if said == p.heeded || o == (Order{End: p.run.End}) {
		return
	}
	c := shim.Control{End: min(o.End, p.run.End), Range: p.run.Range, Anchor: p.lease.Anchor, Stop: o.Stop, Now: o.Now, Cut: o.Cut,
		Cause: o.Why}
	if err := p.dir.WriteControl(&c); err != nil {
		fmt.Fprintln(os.Stderr, "sluice-shim: handing on what is asked of the subjob:", err)
		return
	}
	p.heeded = said
}

// abandoned ends the subjob if its operator is not heard any more, as that would for somebody who waits: it is told at once, has until the
// new end, and is asked to end its grace before. It is nobody's fault, hence a stop and no deadline.
func (p *process) abandoned() bool {
	if p.owner.silent() == 0 {
		return false
	}
	now, why := p.lease.Anchor.Now(), p.unheard()
	if p.cut == 0 {
		p.cut = now.Add(max(p.run.Notice, p.run.Grace))
		fmt.Fprintf(os.Stderr, "sluice-shim: %s: it yields\n", why)
	}
	o := &p.order
	if p.cut < min(o.End, p.run.End) {
		o.End, o.Cut, o.Why = p.cut, true, why
	}
	if !o.Stop && now >= p.cut.Add(-p.run.Grace) {
		o.Stop, o.Why = true, why
	}
	return true
}

// unheard is why a subjob ends whose operator is not heard any more.
func (p *process) unheard() string {
	return fmt.Sprintf("nothing was heard of the operator for %v", p.owner.silent().Round(time.Second))
}

// read reads the order file. A missing, empty or partial one says nothing.
func (p *process) read() {
	data, err := os.ReadFile(p.orders)
	if err != nil || len(bytes.TrimSpace(data)) == 0 {
		return
	}
	o := Order{End: p.run.End}
	if json.Unmarshal(data, &o) == nil {
		p.order = o
	}
}

// stopped reports whether the subjob is to end before its begin.
func (p *process) stopped() bool {
	select {
	case <-p.asked:
		p.signalled = time.Now()
	default:
	}
	p.read()
	return p.order.Stop || !p.signalled.IsZero() || p.abandoned()
}

// putAway stores what counts, and only then returns how the subjob ended.
func (p *process) putAway(r job.Result) Said {
	s := Said{Result: r}
	if r.Progress <= p.run.Range.From && !r.Checkpoint {
		return s
	}
	defer p.saysStoring()()
	ctx, done := p.within(p.killed)
	defer done()
	until := p.ended(max(r.End, min(p.order.End, p.run.End)))
	var err error
	if s.Output, err = p.leave(ctx, "output", p.dir.Output(), p.run.Output, until); err == nil && r.Checkpoint && p.run.Member == 0 {
		s.Checkpoint, err = p.leave(ctx, "checkpoint", p.dir.Checkpoint(), p.run.Checkpoint, until)
	}
	if err == nil {
		return s
	}
	outcome := job.LimitKilled
	if k := errkind.Of(err); k == errkind.Unavailable || k == errkind.Denied {
		outcome = job.NodeFailed
	}
	s.Result.Outcome, s.Result.Progress, s.Result.Checkpoint, s.Output, s.Checkpoint = outcome, p.run.Range.From, false, nil, nil
	s.Result.Detail = "what it has left can't be stored, and does not count: " + strings.ToValidUTF8(err.Error(), "?") + "\n" + r.Detail
	return s
}

// saysStoring puts the word that the subjob is storing, with retries until it is stored or the returned function is called: its home then
// waits beyond the lease's end.
func (p *process) saysStoring() (stop func()) {
	done := make(chan struct{})
	var saying sync.WaitGroup
	saying.Go(func() {
		again := time.NewTicker(tick)
		defer again.Stop()
		for {
			p.tell(true)
			select {
			case <-again.C:
			case <-done:
				return
			}
		}
	})
	return func() { close(done); saying.Wait() }
}

// leave uploads a directory to a place, unless it is empty, with retries until the Pod is ended.
func (p *process) leave(ctx context.Context, what, dir, url string, until quantity.Instant) (*Left, error) {
	if list, err := os.ReadDir(dir); err != nil || len(list) == 0 {
		return nil, err
	}
	t, err := storetree.Scan(dir)
	if err != nil {
		return nil, fmt.Errorf("the %s: %w", what, err)
	}
	defer func() { _ = t.Close() }()
	for _, left := range t.Left {
		fmt.Fprintf(os.Stderr, "sluice-shim: the %s is not stored whole: %s\n", what, left)
	}
	sum, err := store.Sum(ctx, t)
	for pause := firstPause; err == nil; pause = min(2*pause, lastPause) {
		if err = put(ctx, p.store, url, t, t.Size()); err == nil {
			return &Left{Digest: sum, Size: t.Size()}, nil
		}
		err = fmt.Errorf("storing the %s: %w", what, err)
		if errkind.Of(err) != errkind.Unavailable || ctx.Err() != nil || p.lease.Anchor.Until(until) <= pause {
			break
		}
		fmt.Fprintln(os.Stderr, "sluice-shim:", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done(): // reported by the next try
		}
		err = nil
	}
	return nil, err
}

// spare is how long before the kubelet's SIGKILL the first process gives up storing, so that it can still say so.
const spare = 2 * time.Second

// killed reports whether the Pod's grace period is nearly over after SIGTERM.
func (p *process) killed() bool {
	grace := p.run.Linger
	if p.stopped(); !p.order.Now {
		grace += p.run.Grace
	}
	return !p.signalled.IsZero() && time.Since(p.signalled) > grace-min(spare, grace/2)
}

// tell uploads the subjob's progress if it has changed.
func (p *process) tell(storing bool) {
	w := Word{At: p.lease.Anchor.Now(), Progress: p.run.Range.From, Storing: storing}
	if note, err := p.dir.ReadNote(); err == nil {
		w.Started = note.At
	}
	if said, ok := p.dir.ReadProgress(); ok && said.Progress > w.Progress && said.Progress <= p.run.Range.To {
		w.Progress = said.Progress
	}
	if w.Started != 0 || storing {
		p.told.say(w)
	}
}

// Pauses between tries to reach the store.
const (
	firstPause = 200 * time.Millisecond
	lastPause  = 10 * time.Second
)

// furnish makes the run directory with everything that the subjob starts from. Errors of kind Invalid are the job's.
func (p *process) furnish() error {
	if !filepath.IsLocal(filepath.Join(".", p.run.Subdir)) {
		return errkind.Errorf(errkind.Invalid, "subdirectory %q leads out of the work directory", p.run.Subdir)
	}
	for _, dir := range []string{string(p.dir), p.dir.Work(), p.dir.Output(), p.dir.Checkpoint(), p.dir.ProgressDir(), p.dir.Tmp()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := p.fetch("work directory", p.run.Work, p.dir.Work(), true); err != nil {
		return err
	}
	if p.run.Work != nil {
		p.lease.Unpacked = p.lease.Anchor.Now()
	}
	if err := p.fetch("checkpoint to start from", p.run.Resume, p.lease.Resume, false); err != nil {
		return err
	}
	return p.dir.Begin(&p.lease)
}

// fetch unpacks an object into a directory. It retries when the store is away or the data damaged, until the subjob is to end or only its
// grace is left.
func (p *process) fetch(what string, s *Source, into string, writable bool) error {
	if s == nil {
		return nil
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		ctx, done := p.within(p.hurried)
		err := fetchOnce(ctx, p.store, s, into, writable)
		done()
		if err == nil {
			return nil
		}
		err = fmt.Errorf("fetching the %s: %w", what, err)
		k := errkind.Of(err)
		if k != errkind.Unavailable && k != errkind.Corrupt {
			return err
		}
		fmt.Fprintln(os.Stderr, "sluice-shim:", err)
		if !p.pause(pause) {
			return err
		}
	}
}

// pause waits, and reports whether there is time for another try.
func (p *process) pause(d time.Duration) bool {
	for until := time.Now().Add(d); time.Now().Before(until); time.Sleep(tick) {
		if p.hurried() {
			return false
		}
	}
	return true
}

// hurried reports whether the subjob is to end before its begin, or has no time left to begin.
func (p *process) hurried() bool {
	return p.stopped() || p.lease.Anchor.Until(min(p.order.End, p.run.End)) <= p.run.Grace
}

// within is a context that ends once a condition holds, which it polls until done is called. Nobody else may evaluate the condition
// meanwhile.
func (p *process) within(over func() bool) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var looking sync.WaitGroup
	looking.Go(func() {
		again := time.NewTicker(tick)
		defer again.Stop()
		for ctx.Err() == nil {
			select {
			case <-again.C:
				if over() {
					cancel()
				}
			case <-ctx.Done():
			}
		}
	})
	return ctx, func() { cancel(); looking.Wait() }
}

// ended is when the Pod ends even if its output is not stored.
func (p *process) ended(end quantity.Instant) quantity.Instant {
	if end == quantity.Never {
		return end
	}
	return end.Add(p.run.Linger)
}
