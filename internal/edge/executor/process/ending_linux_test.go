package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// both runs a test with the best isolation of this machine, and with the weaker ones alone.
func both(t *testing.T, test func(t *testing.T, change func(*process.Options))) {
	t.Helper()
	t.Parallel()
	t.Run("best", func(t *testing.T) { test(t, func(*process.Options) {}) })
	t.Run("tree only", func(t *testing.T) { test(t, func(o *process.Options) { o.Isolation = treeOnly() }) })
	t.Run("control group only", func(t *testing.T) {
		base, _, _ := tree.GroupBase()
		if base == "" {
			t.Skip("no control group can be made here")
		}
		test(t, func(o *process.Options) { o.Isolation = &shim.Isolation{Cgroup: base} })
	})
}

// escape is a shell program whose children get into sessions of their own, leave their parents, and ignore SIGTERM.
const escape = `
trap '' TERM
for i in 1 2 3; do
	(setsid sh -c 'trap "" TERM; (setsid sleep 1000 & setsid sleep 1001 &) ; sleep 1002' &)
done
echo up >&2
sleep 1003
`

func (b *bench) escaped() {
	b.Helper()
	b.await("the children to get away", func() bool {
		n := 0
		for _, pid := range living(b.o.DataDir) {
			if args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.HasPrefix(string(args), "sleep") {
				n++
			}
		}
		return n == 10
	})
}

// prolong has a lease that was given out end after d from now, but never before the end that it came with, and says when that is. So a
// subjob can have all the time it needs to come where a test wants it before its end.
func (b *bench) prolong(m protocol.Message, d time.Duration) (end quantity.Instant) {
	b.Helper()
	end = max(m.Body.(*protocol.Work).End, quantity.At(time.Now()).Add(d))
	b.do(protocol.Message{Kind: protocol.Deadline, Token: m.Token, Body: &protocol.Shift{End: end}})
	return end
}

// letGo waits until a supervisor is done with the run directory: when nothing of its subjob lives it still writes the result.
func (b *bench) letGo() {
	b.Helper()
	b.await("the supervisor to let go", func() bool {
		lock, err := b.dir().TryLock()
		return err == nil && lock.Close() == nil
	})
}

func TestNothingOutlivesTheDeadline(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		m := lease(2*time.Second, "sh", "-c", escape)
		b.do(m)
		b.prolong(m, patience)
		b.next(protocol.Started)
		b.escaped()
		end := b.prolong(m, time.Second)
		// The daemon is away: the supervisor alone holds the deadline.
		if err := b.ex.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(end.Time()))
		b.await("everything to end", func() bool { return len(living(b.o.DataDir)) == 0 })
		b.letGo()
		found := b.open()
		if len(found) != 1 || found[0].Result == nil || found[0].Result.Outcome != job.DeadlineKilled {
			t.Fatalf("found %+v, want the deadline's kill", found)
		}
		if late := found[0].Result.End.Sub(end); late < 0 || late > time.Second {
			t.Errorf("ended %v after the lease", late)
		}
		if e := b.events(); len(e) != 2 || e[0].What != "start" || e[1].What != "end" || e[1].Outcome != "deadline" ||
			e[0].Token != "1-1" || e[0].Boot >= e[1].Boot {
			t.Errorf("events %+v, want one start and one end", e)
		}
	})
}

func TestSupervisorKilled(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		b.do(lease(time.Minute, "sh", "-c", escape))
		b.next(protocol.Started)
		b.escaped()
		note, err := b.dir().ReadNote()
		if err != nil {
			t.Fatal(err)
		}
		kill(t, note.PID)
		r := b.exited(job.Lost)
		if left := living(b.o.DataDir); len(left) != 0 {
			t.Errorf("processes %v remain although the end was said", left)
		}
		if !strings.Contains(r.Detail, "supervisor died") || !strings.Contains(r.Detail, "up") {
			t.Errorf("detail %q, want what happened and the last words", r.Detail)
		}
		if e := b.events(); len(e) != 2 || e[1].Outcome != "lost" {
			t.Errorf("events %+v, want the loss told", e)
		}
	})
}

func TestKernelEndsTheTreeWithItsSupervisor(t *testing.T) {
	b := newBench(t, nil)
	if !strings.Contains(b.ex.Isolation(), "pid namespace") {
		t.Skipf("no pid namespace here: %s", b.ex.Isolation())
	}
	b.do(lease(time.Minute, "sh", "-c", escape))
	b.next(protocol.Started)
	b.escaped()
	note, err := b.dir().ReadNote()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.ex.Close(); err != nil { // nobody but the kernel is left to do it
		t.Fatal(err)
	}
	kill(t, note.PID)
	b.await("the kernel to end the tree", func() bool { return len(living(b.o.DataDir)) == 0 })
	if found := b.open(); len(found) != 1 || found[0].Result == nil || found[0].Result.Outcome != job.NodeFailed {
		t.Errorf("found %+v, want that its node failed", found)
	}
}

func TestMemoryOfTheWholeTree(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		hog := strings.Join(self(t, "hog", "60"), " ")
		m := lease(time.Minute, "sh", "-c", `echo '{"progress":3}' >$SLUICE_PROGRESS_FILE; `+hog+" & "+hog+" & wait")
		m.Body.(*protocol.Work).Demand[trp.Memory] = 100 << 20
		r := b.run(m, job.MemoryKilled)
		if peak := r.Peak[trp.Memory]; peak < 100<<20 || peak > 300<<20 {
			t.Errorf("peak %d, want above the limit of %d and not far", peak, 100<<20)
		}
		if r.Progress != 3 {
			t.Errorf("progress %d, want 3: what was complete counts", r.Progress)
		}
	})
}

func TestMemoryOfARealGPUIsNotTheHosts(t *testing.T) {
	b := newBench(t, func(o *process.Options) {
		o.Slice = func(id job.SliceID) (protocol.Slice, bool) {
			return protocol.Slice{ID: id, Device: "MIG-7", Capacity: trp.Vector{1 << 20}}, true
		}
	})
	r := b.run(lease(time.Minute, "sh", "-c", `sleep 0.3; echo "$CUDA_VISIBLE_DEVICES $SLUICE_MEMORY_BYTES" >$SLUICE_OUTPUT_DIR/env`),
		job.Done)
	if r.Peak != (trp.Vector{}) {
		t.Errorf("peak %v of a slice whose memory can't be seen", r.Peak)
	}
	if got, _ := os.ReadFile(filepath.Join(b.dir().Output(), "env")); string(got) != "MIG-7 1048576\n" {
		t.Errorf("the program saw %q", got)
	}
}

// TestTheOptionReachesTheProgram: its name, and its variables over those of the job; without one there is no trace of any.
func TestTheOptionReachesTheProgram(t *testing.T) {
	for _, c := range []struct{ option, want string }{{"bf16", "bf16 16 bf 1\n"}, {"", "none 32 none 1\n"}} {
		t.Run("option="+c.option, func(t *testing.T) {
			b := newBench(t, nil)
			m := lease(time.Minute, "sh", "-c", `echo "${SLUICE_OPTION-none} $BATCH ${PRECISION-none} $SEED" >$SLUICE_OUTPUT_DIR/env`)
			m.Body.(*protocol.Work).Spec.Launch.Env = []string{"BATCH=32", "SEED=1"}
			m.Body.(*protocol.Work).Spec.Options = []job.Option{{Name: "other", Env: []string{"SEED=2"}},
				{Name: "bf16", Env: []string{"BATCH=16", "PRECISION=bf", "SLUICE_OPTION=forged"}}}
			m.Body.(*protocol.Work).Plan.Option = c.option
			b.run(m, job.Done)
			if got, _ := os.ReadFile(filepath.Join(b.dir().Output(), "env")); string(got) != c.want {
				t.Errorf("the program saw %q, want %q", got, c.want)
			}
		})
	}
}

func TestLogLimitNeverBlocks(t *testing.T) {
	b := newBench(t, nil)
	m := lease(time.Minute, "sh", "-c", "head -c 5000000 /dev/zero; head -c 3000000 /dev/zero >&2")
	m.Body.(*protocol.Work).Spec.Launch.LogLimit = 100_000
	b.run(m, job.Done)
	size := func(path string) int64 {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	if n := size(b.dir().Stdout()) + size(b.dir().Stderr()); n < 100_000 || n > 101_000 {
		t.Errorf("logs hold %d bytes, want the limit of 100000 and the lines that say so", n)
	}
	if said := shim.Tail(b.dir().Stdout(), 1, 1000); !strings.Contains(said, "dropped") {
		t.Errorf("last line %q, want how much was dropped", said)
	}
}

func TestOutputLimit(t *testing.T) {
	b := newBench(t, nil)
	m := lease(time.Minute, "sh", "-c", "head -c 3000000 /dev/zero >$SLUICE_OUTPUT_DIR/big; sleep 1000")
	m.Body.(*protocol.Work).Spec.Launch.OutputLimit = 1 << 20
	if r := b.run(m, job.LimitKilled); !strings.Contains(r.Detail, "1048576") {
		t.Errorf("detail %q, want the limit", r.Detail)
	}
}

func TestWarningAndWrapper(t *testing.T) {
	b := newBench(t, nil)
	// The outer shell has no handlers: neither the warning nor SIGTERM may end it before the inner one has had its say.
	inner := `trap 'echo warned' USR1; trap 'echo asked; exit 85' TERM; echo up; while :; do sleep 0.05; done`
	m := lease(patience, "sh", "-c", "sh -c \"$INNER\"; code=$?; exit $code")
	launch := &m.Body.(*protocol.Work).Spec.Launch
	launch.Env = []string{"INNER=" + inner}
	launch.WarnSignal, launch.WarnBefore, launch.Grace = 10, 6*time.Second, 4*time.Second
	b.do(m)
	b.next(protocol.Started)
	b.await("the program to hear signals", func() bool { return shim.Tail(b.dir().Stdout(), 10, 1000) == "up" })
	b.prolong(m, 7*time.Second)
	b.exited(job.Yielded)
	if out := shim.Tail(b.dir().Stdout(), 10, 1000); out != "up\nwarned\nasked" {
		t.Errorf("the program saw %q, want a warning and then SIGTERM", out)
	}
}

func TestStartFailures(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	script := filepath.Join(dir, "script")
	must(os.WriteFile(plain, []byte("x"), 0o600))
	must(os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o700))
	for name, c := range map[string]struct {
		command []string
		change  func(*protocol.Message)
		want    string
	}{
		"missing":        {command: []string{"no-such-command"}, want: "not found in PATH"},
		"missing path":   {command: []string{"./x"}, want: "no file"},
		"not executable": {command: []string{plain}, want: "permission"},
		"interpreter":    {command: []string{script}, want: "interpreter"},
		"empty":          {want: "no command"},
		"snapshot": {command: []string{"true"},
			change: func(m *protocol.Message) { m.Body.(*protocol.Work).Spec.Launch.Workdir = strings.Repeat("0", 64) },
			want:   "no snapshot"},
		"subdirectory": {command: []string{"true"},
			change: func(m *protocol.Message) { m.Body.(*protocol.Work).Spec.Launch.Subdir = "../.." }, want: "leads out"},
		"checkpoint": {command: []string{"true"},
			change: func(m *protocol.Message) { m.Body.(*protocol.Work).Plan.Resume = job.Token{Epoch: 1} }, want: "checkpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			m := lease(time.Minute, c.command...)
			if c.change != nil {
				c.change(&m)
			}
			b.do(m)
			if r := b.exited(job.StartFailed); !strings.Contains(r.Detail, c.want) || r.Start != 0 {
				t.Errorf("result %+v, want no start and %q", r, c.want)
			}
			b.settle(false, job.Range{})
			if found := b.open(); len(found) != 0 {
				t.Errorf("found %+v after settling", found)
			}
		})
	}
}
