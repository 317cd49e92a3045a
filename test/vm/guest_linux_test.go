package vm

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/journal"
)

// limit is what a slice has, in bytes, crowd how many processes and threads a subjob may have.
const limit, crowd = 64 << 20, 100

// held are the two ways in which the guest can hold a subjob: the best, and the control group alone.
var held = map[string]*shim.Isolation{"best": nil, "group alone": {Cgroup: service, KernelMemory: true, KernelProcesses: true}}

func both(t *testing.T, test func(t *testing.T, iso *shim.Isolation)) {
	guest(t)
	for name, iso := range held {
		t.Run(name, func(t *testing.T) { test(t, iso) })
	}
}

func guest(t *testing.T) {
	if os.Getpid() != 1 {
		t.Skip("runs inside the virtual machine alone: make vmtest")
	}
}

var token = job.Token{Epoch: 1, Seq: 1}

// bench is an executor over a data directory of its own.
type bench struct {
	*testing.T
	ex   *process.Executor
	said chan protocol.Message
	dir  shim.Dir
}

func newBench(t *testing.T, iso *shim.Isolation) *bench {
	t.Helper()
	b := &bench{T: t, said: make(chan protocol.Message, 64)}
	data := t.TempDir()
	b.dir = shim.Dir(filepath.Join(data, "runs", token.String()))
	var err error
	b.ex, err = process.New(process.Options{DataDir: data, ShimPath: "/init", Isolation: iso, Limits: shim.Limits{Processes: crowd},
		Deliver: func(m protocol.Message) {
			if m.Kind != protocol.Report {
				b.said <- m
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.ex.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := b.ex.Find(context.Background()); err != nil {
		t.Fatal(err)
	}
	return b
}

// start starts one of the programs with a lease of some length and waits until it runs.
func (b *bench) start(length time.Duration, program ...string) (end quantity.Instant) {
	b.Helper()
	end = b.launch(length, program...)
	b.next(protocol.Started)
	return end
}

// tell has the executor do something to the subjob.
func (b *bench) tell(k protocol.Kind, body protocol.Body) {
	b.ex.Do(protocol.Message{Kind: k, Token: token, Job: "j", Body: body}, journal.Position{Seq: 1})
}

// launch has one of the programs started.
func (b *bench) launch(length time.Duration, program ...string) (end quantity.Instant) {
	now := quantity.At(time.Now())
	m := protocol.Message{
		Kind: protocol.Start, Token: token, Job: "j",
		Body: &protocol.Work{Placement: protocol.Placement{Slice: "s", Range: job.Range{To: 10}, Start: now, End: now.Add(length)},
			Spec: &job.Spec{Name: "j", Kind: job.Items, Total: 10, Grid: 1, Launch: job.Launch{
				Command: append([]string{"/init", "program"}, program...), Grace: 300 * time.Millisecond,
			}}},
	}
	m.Body.(*protocol.Work).Demand[trp.Memory] = limit
	b.ex.Do(m, journal.Position{Seq: 1})
	return m.Body.(*protocol.Work).End
}

func (b *bench) next(k protocol.Kind) protocol.Message {
	b.Helper()
	select {
	case m := <-b.said:
		if m.Kind != k {
			b.Fatalf("message kind %d (%+v, result %+v), want kind %d", m.Kind, m, m.Body.(*protocol.Conclusion).Result, k)
		}
		return m
	case <-time.After(30 * time.Second):
		b.Fatalf("no message of kind %d; supervisor says: %s", k, shim.Tail(b.dir.Log(), 20, 4096))
	}
	panic("unreachable")
}

// ended waits for the result; nothing may be left then, no process and no group.
func (b *bench) ended(want job.Outcome) job.Result {
	b.Helper()
	r := *b.next(protocol.Exited).Body.(*protocol.Conclusion).Result
	if r.Outcome != want {
		b.Fatalf("outcome %v (%+v), want %v", r.Outcome, r, want)
	}
	if pids := programs(); len(pids) != 0 {
		b.Errorf("processes %v remain although the end was said", pids)
	}
	if left := groups(); len(left) != 0 {
		b.Errorf("control groups %v remain", left)
	}
	return r
}

// programs are the processes that run one of the programs.
func programs() (pids []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		if data, _ := os.ReadFile(path); strings.Contains(string(data), "\x00program\x00") {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

// groups are the control groups of subjobs.
func groups() []string {
	all, _ := filepath.Glob(filepath.Join(service, "sluice-*-*"))
	return all
}

// family starts the program with children that got away and returns its group.
func (b *bench) family(length time.Duration) (group string, end quantity.Instant) {
	b.Helper()
	end = b.start(length, "family")
	for until := time.Now().Add(20 * time.Second); len(programs()) != 6; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			b.Fatalf("%d processes, want 6", len(programs()))
		}
	}
	all := groups()
	if len(all) != 1 {
		b.Fatalf("control groups %v, want one", all)
	}
	return all[0], end
}

func (b *bench) killSupervisor() {
	b.Helper()
	note, err := b.dir.ReadNote()
	if err != nil {
		b.Fatal(err)
	}
	if err := syscall.Kill(note.PID, syscall.SIGKILL); err != nil {
		b.Fatal(err)
	}
}

func freeze(t *testing.T, group string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(group, "cgroup.freeze"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if data, _ := os.ReadFile(filepath.Join(group, "cgroup.events")); strings.Contains(string(data), "frozen 1") {
			return
		}
		if time.Now().After(until) {
			t.Fatal("the group does not freeze")
		}
	}
}

func TestGuestLevel(t *testing.T) {
	guest(t)
	b := newBench(t, nil)
	if got, want := b.ex.Isolation(), "pid namespace, control group, memory held by the kernel, processes held by the kernel, /tmp and "+
		"/dev/shm of its own, work directory by copy"; got != want {
		t.Errorf("isolation %q, want %q", got, want)
	}
}

func TestGuestMemory(t *testing.T) {
	both(t, func(t *testing.T, iso *shim.Isolation) {
		b := newBench(t, iso)
		began := time.Now()
		b.start(time.Minute, "anonymous")
		r := b.ended(job.MemoryKilled)
		if peak := r.Peak[trp.Memory]; peak < limit || peak > limit+16<<20 {
			t.Errorf("peak %d, want the limit of %d and little more", peak, limit)
		}
		t.Logf("ended after %v with a peak of %.1f MiB: %s", time.Since(began).Round(time.Millisecond), float64(r.Peak[trp.Memory])/(1<<20),
			r.Detail)
	})
}

func TestGuestMemoryThatIsNoProcesss(t *testing.T) {
	both(t, func(t *testing.T, iso *shim.Isolation) {
		b := newBench(t, iso)
		b.start(time.Minute, "tmpfs")
		r := b.ended(job.MemoryKilled)
		said := strings.Contains(r.Detail, "the kernel ended it") || iso == nil && strings.Contains(r.Detail, "in its /tmp and /dev/shm")
		if !said || r.Peak[trp.Memory] < limit {
			t.Errorf("detail %q, peak %d; want the kernel's word and at least the limit", r.Detail, r.Peak[trp.Memory])
		}
	})
}

func TestGuestTooManyProcesses(t *testing.T) {
	both(t, func(t *testing.T, iso *shim.Isolation) {
		b := newBench(t, iso)
		b.start(time.Minute, "crowd", "1000")
		r := b.ended(job.LimitKilled)
		if !strings.Contains(r.Detail, "more than the limit of 100") {
			t.Errorf("detail %q, want the limit", r.Detail)
		}
		t.Log(r.Detail)
	})
}

func TestGuestMemoryWithinLimit(t *testing.T) {
	both(t, func(t *testing.T, iso *shim.Isolation) {
		b := newBench(t, iso)
		b.start(time.Minute, "modest", "40")
		if peak := b.ended(job.Done).Peak[trp.Memory]; peak < 40<<20 || peak > limit {
			t.Errorf("peak %d, want at least 40 MiB and less than the limit", peak)
		}
	})
}

func TestGuestSupervisorKilled(t *testing.T) {
	both(t, func(t *testing.T, iso *shim.Isolation) {
		b := newBench(t, iso)
		b.family(time.Minute)
		b.killSupervisor()
		b.ended(job.Lost)
	})
}

func TestGuestFrozenAtTheDeadline(t *testing.T) {
	both(t, func(t *testing.T, iso *shim.Isolation) {
		b := newBench(t, iso)
		group, end := b.family(4 * time.Second)
		freeze(t, group)
		r := b.ended(job.DeadlineKilled)
		if late := r.End.Sub(end); late < 0 || late > time.Second {
			t.Errorf("ended %v after the lease", late)
		}
	})
}

func TestGuestFrozenWithoutSupervisor(t *testing.T) {
	both(t, func(t *testing.T, iso *shim.Isolation) {
		b := newBench(t, iso)
		group, _ := b.family(time.Minute)
		freeze(t, group)
		b.killSupervisor()
		b.ended(job.Lost)
	})
}
