// Package survivaltest is the conformance suite of the kinds of survival. It works on real processes: the program of the test that runs it
// must call Main first thing.
package survivaltest

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/survival"
)

// play is the variable that makes this program a subjob's.
const play = "SLUICE_SURVIVALTEST"

// Main makes the program a subjob's process if it was started as one, and does not return then.
func Main() {
	switch what := os.Getenv(play); what {
	case "":
		return
	case "init": // a reaper above the program, as the supervisor's init is
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
		cmd := exec.Command("/proc/self/exe") //nolint:gosec // itself
		cmd.Env = append(os.Environ(), play+"="+os.Getenv(play+"_PROGRAM"))
		cmd.Stdout = os.Stdout
		if cmd.Start() == nil {
			var status syscall.WaitStatus
			for {
				if pid, err := syscall.Wait4(-1, &status, 0, nil); err == syscall.ECHILD || pid == cmd.Process.Pid &&
					os.Getenv(play+"_STAYS") == "" {
					break
				}
			}
		}
		os.Exit(0)
	default:
		program(what)
		os.Exit(0)
	}
}

// program runs until it is killed, and says a line once it is what it is to be.
func program(what string) {
	name, arg, _ := strings.Cut(what, " ")
	n, _ := strconv.Atoi(arg)
	switch name {
	case "holds": // so many MiB
		block := make([]byte, n<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = byte(i >> 12)
		}
		say()
		for { // and counts, so that it is seen to run
			time.Sleep(time.Millisecond)
			block[0]++
		}
	case "forks": // without end, each of its children ending soon
		say()
		for {
			cmd := exec.Command("/bin/sleep", "0.02")
			if cmd.Start() == nil {
				go func() { _ = cmd.Wait() }()
			}
		}
	case "ends": // soon after the signal
		say()
		time.Sleep(time.Duration(n) * time.Millisecond)
	}
}

func say() { _, _ = os.Stdout.WriteString("ready\n") }

// Bench is a kind under test.
type Bench struct {
	// Open opens it.
	Open func(t *testing.T) survival.Survival
	// Group makes a control group for a subjob to be started in, and returns it open; nil: there is none.
	Group func(t *testing.T) (dir string, fd *os.File)
	// Swap: what is suspended can be moved out.
	Swap bool
}

// subjob is one that runs.
type subjob struct {
	survival.Subjob
	t   *testing.T
	cmd *exec.Cmd
}

// start starts a program below an init, and waits until it says that it is ready.
func (b *Bench) start(t *testing.T, what string) *subjob {
	t.Helper()
	s := &subjob{Subjob: survival.Subjob{Token: job.Token{Epoch: 1, Seq: 7}}, t: t}
	s.cmd = exec.Command("/proc/self/exe")
	s.cmd.Env = append(os.Environ(), play+"=init", play+"_PROGRAM="+what, "GOGC=off")
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if b.Group != nil {
		dir, fd := b.Group(t)
		s.Group, s.cmd.SysProcAttr.UseCgroupFD, s.cmd.SysProcAttr.CgroupFD = dir, true, int(fd.Fd())
	}
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the program says %q (%v)", line, err)
	}
	p, ok := tree.Look(s.cmd.Process.Pid)
	if !ok {
		t.Fatal("the init is gone")
	}
	s.Init, s.InitStarted = p.PID, p.Started
	return s
}

// kill ends all of it.
func (s *subjob) kill() {
	_ = tree.Group(s.Group).Kill()
	left := tree.End(func() []tree.Process { return tree.Processes(tree.Below(s.Init)) }, 5*time.Second)
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	if len(left) > 0 {
		s.t.Errorf("processes remain: %v", left)
	}
	for until := time.Now().Add(5 * time.Second); s.Group != ""; time.Sleep(time.Millisecond) {
		if err := tree.Group(s.Group).Remove(); err == nil || time.Now().After(until) {
			break
		}
	}
}

// spent is the processor time of its processes so far, in clock ticks.
func (s *subjob) spent() (ticks int) {
	for _, m := range tree.Below(s.Init) {
		data, _ := os.ReadFile("/proc/" + strconv.Itoa(m.PID) + "/stat")
		if f := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:])); len(f) > 12 {
			user, _ := strconv.Atoi(f[11])
			system, _ := strconv.Atoi(f[12])
			ticks += user + system
		}
	}
	return ticks
}

// switches is how often its processes have waited so far: one that is suspended does not.
func (s *subjob) switches() (n int) {
	for _, m := range tree.Below(s.Init) {
		data, _ := os.ReadFile("/proc/" + strconv.Itoa(m.PID) + "/status")
		for line := range strings.Lines(string(data)) {
			if rest, ok := strings.CutPrefix(line, "voluntary_ctxt_switches:"); ok {
				v, _ := strconv.Atoi(strings.TrimSpace(rest))
				n += v
			}
		}
	}
	return n
}

// moves waits until it is seen to go on.
func (s *subjob) moves() {
	s.t.Helper()
	from := s.switches() + s.spent()
	for until := time.Now().Add(20 * time.Second); s.switches()+s.spent() <= from; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			s.t.Fatal("it does not go on")
		}
	}
}

// stands checks that it does not.
func (s *subjob) stands() {
	s.t.Helper()
	from := s.spent()
	time.Sleep(50 * time.Millisecond) // what goes on may not have been given the processor, and then this sees nothing
	if now := s.spent(); now != from {
		s.t.Errorf("it is frozen and has used %d ticks more", now-from)
	}
}

func (b *Bench) take(t *testing.T, k survival.Survival, s *subjob) survival.Hold {
	t.Helper()
	h, err := k.Take(s.Subjob)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = h.Close()
		if err := h.Close(); err != nil {
			t.Errorf("closed twice: %v", err)
		}
	})
	return h
}

const patience = 20 * time.Second

// suspend suspends it, and waits until it is frozen.
func suspend(t *testing.T, h survival.Hold) {
	t.Helper()
	if err := h.Suspend(); err != nil {
		t.Fatal(err)
	}
	if still, err := h.Settle(patience); err != nil || !still {
		t.Fatalf("it is not frozen (%v)", err)
	}
}

// Run runs the suite.
func (b *Bench) Run(t *testing.T) {
	for _, c := range []struct {
		name string
		test func(*testing.T, survival.Survival)
	}{
		{"senses the machine", b.senses}, {"waits and is woken", b.waits}, {"measures", b.measures},
		{"is frozen and goes on, twice is once", b.twice},
		{"forks while it is stopped", b.forks}, {"ends while it is frozen", b.ends}, {"another sees what is frozen", b.another},
		{"gives memory back", b.gives},
		{"what is gone", b.gone},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := b.Open(t)
			t.Cleanup(func() {
				_ = k.Close()
				if err := k.Close(); err != nil {
					t.Errorf("closed twice: %v", err)
				}
			})
			c.test(t, k)
		})
	}
}

func (b *Bench) senses(t *testing.T, k survival.Survival) {
	if c := k.Capability(); c.Kind == "" || c.Why == "" {
		t.Errorf("it says %q of itself", c)
	}
	var m survival.Memory
	if err := k.Sense(time.Second, &m); err != nil {
		t.Fatal(err)
	}
	if m.Capacity <= 0 || m.Used <= 0 || m.Used > m.Capacity || m.Growth != 0 || m.Least <= 0 || m.Least > m.Capacity {
		t.Errorf("%+v", m)
	}
	at := time.Second
	if n := testing.AllocsPerRun(100, func() {
		at += 10 * time.Millisecond
		_ = k.Sense(at, &m)
	}); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
}

func (b *Bench) waits(t *testing.T, k survival.Survival) {
	k.Wake()
	began := time.Now()
	k.Await(patience)
	if waited := time.Since(began); waited > patience/2 {
		t.Errorf("it was woken before, and waited %v", waited)
	}
	began = time.Now()
	go k.Wake()
	k.Await(patience)
	if waited := time.Since(began); waited > patience/2 {
		t.Errorf("it was woken, and waited %v", waited)
	}
}

func (b *Bench) measures(t *testing.T, k survival.Survival) {
	const mib = 40
	s := b.start(t, "holds "+strconv.Itoa(mib))
	h := b.take(t, k, s)
	var u survival.Use
	if err := h.Measure(time.Second, &u); err != nil {
		t.Fatal(err)
	}
	if all := u.Resident + u.Parked; all < mib<<20 || all > 4*mib<<20 {
		t.Errorf("it has %d MiB, want %d and what a program of Go has besides", all>>20, mib)
	}
	at := time.Second
	if n := testing.AllocsPerRun(50, func() {
		at += 10 * time.Millisecond
		_ = h.Measure(at, &u)
	}); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
	for range 5 { // so that its buffers are large enough
		_, _ = h.Suspend(), h.Resume()
	}
	if n := testing.AllocsPerRun(20, func() {
		_ = h.Suspend()
		_, _ = h.Still()
		_ = h.Resume()
	}); n != 0 {
		t.Errorf("to act allocates %v times", n)
	}
}

func (b *Bench) twice(t *testing.T, k survival.Survival) {
	s := b.start(t, "holds 1")
	h := b.take(t, k, s)
	s.moves()
	for range 3 {
		suspend(t, h)
		suspend(t, h)
		s.stands()
		for range 2 {
			if err := h.Resume(); err != nil {
				t.Fatal(err)
			}
		}
		for until := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
			still, err := h.Still()
			if err != nil {
				t.Fatal(err)
			}
			if !still {
				break
			}
			if time.Now().After(until) {
				t.Fatal("it is frozen though it was resumed")
			}
		}
		s.moves()
	}
}

func (b *Bench) forks(t *testing.T, k survival.Survival) {
	s := b.start(t, "forks")
	h := b.take(t, k, s)
	for range 5 {
		suspend(t, h)
		s.stands()
		if err := h.Resume(); err != nil {
			t.Fatal(err)
		}
		s.moves()
	}
}

func (b *Bench) ends(t *testing.T, k survival.Survival) {
	s := b.start(t, "holds 1")
	h := b.take(t, k, s)
	suspend(t, h)
	s.kill()
	if still, err := h.Still(); still || err != nil {
		t.Errorf("what is gone is frozen: %v, %v", still, err)
	}
	if err := h.Resume(); err != nil {
		t.Errorf("what is gone was resumed: %v", err)
	}
	if err := h.Suspend(); errkind.Of(err) != errkind.NotFound {
		t.Errorf("what is gone was suspended: %v", err)
	}
	var u survival.Use
	if err := h.Measure(time.Second, &u); err != nil || u != (survival.Use{}) {
		t.Errorf("what is gone has %+v (%v)", u, err)
	}
	if n, err := h.Reclaim(1 << 20); n != 0 || err != nil {
		t.Errorf("what is gone gave %d (%v)", n, err)
	}
}

// another one, of a daemon that came back, finds it suspended, and resumes it.
func (b *Bench) another(t *testing.T, k survival.Survival) {
	s := b.start(t, "holds 1")
	suspend(t, b.take(t, k, s))
	_ = k.Close()
	later := b.Open(t)
	defer func() { _ = later.Close() }()
	h := b.take(t, later, s)
	if still, err := h.Still(); err != nil || !still {
		t.Fatalf("it is not seen to be frozen (%v)", err)
	}
	if err := h.Resume(); err != nil {
		t.Fatal(err)
	}
	s.moves()
}

func (b *Bench) gives(t *testing.T, k survival.Survival) {
	s := b.start(t, "holds 40")
	h := b.take(t, k, s)
	suspend(t, h)
	var moved quantity.Amount
	for range 20 {
		n, err := h.Reclaim(8 << 20)
		if err != nil {
			t.Fatal(err)
		}
		moved += n
	}
	var u survival.Use
	if err := h.Measure(time.Second, &u); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d MiB moved out; it has %d MiB, and %d outside", moved>>20, u.Resident>>20, u.Parked>>20)
	if b.Swap && (moved < 20<<20 || u.Parked < 20<<20) {
		t.Errorf("%d MiB moved, %d MiB outside: want most of 40", moved>>20, u.Parked>>20)
	}
	if err := h.Resume(); err != nil {
		t.Fatal(err)
	}
	s.moves()
}

func (b *Bench) gone(t *testing.T, k survival.Survival) {
	if h, err := k.Take(survival.Subjob{Init: 1<<22 - 1, InitStarted: 1, Group: "/sys/fs/cgroup/nowhere"}); errkind.Of(
		err) != errkind.NotFound {
		t.Errorf("taken: %v, %v", h, err)
	}
}
