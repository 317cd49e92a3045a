package pod

import (
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
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
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
	told      *teller
	logs      [2]follower
}

// whole runs the subjob from fetching to storing.
func (p *process) whole() Said {
	p.order.End = p.run.End
	p.lease = p.makeLease()
	p.told = newTeller(p.store, p.run.Progress, p.run.Report)
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
		Token: r.Token, Job: r.Job, Generation: r.Generation, Slice: r.Slice, Kind: r.Kind, Range: r.Range, Member: r.Member,
		Members: r.Members, Total: r.Total, Grid: r.Grid,
		Start: r.Start, End: r.End, Anchor: shim.AnchorAt(quantity.At(time.Now())), BootID: shim.BootID(), Grace: r.Grace, Asked: r.Asked,
		WarnSignal: r.WarnSignal, WarnBefore: r.WarnBefore,
		Command: r.Command, WorkDir: filepath.Join(p.dir.Work(), r.Subdir), Umask: r.Umask, LogLimit: r.LogLimit,
		OutputLimit: r.OutputLimit,
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
