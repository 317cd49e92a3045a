package process_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/process/folders"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/supervisor"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/journal"
)

// bench is one executor over a data directory of its own.
type bench struct {
	*testing.T
	o    process.Options
	ex   *process.Executor
	said chan protocol.Message
	// made is called once the executor is made, and before it finds what is there.
	made func()
	// reported is the memory of the newest report, in bytes.
	reported atomic.Int64
	// storing: it has said that it stores what a subjob has left; vacant: that its slice is free.
	storing, vacant atomic.Bool
}

// treeOnly is the weakest isolation.
func treeOnly() *shim.Isolation { return &shim.Isolation{} }

// patience bounds a wait for what must come, on a machine on which everything else wants to run too.
const patience = time.Minute

func newBench(t *testing.T, change func(*process.Options)) *bench {
	t.Helper()
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, o: process.Options{DataDir: t.TempDir(), ShimPath: self}}
	if change != nil {
		change(&b.o)
	}
	t.Cleanup(func() {
		_ = b.ex.Close()
		killAll(b.o.DataDir)
		_ = exec.Command("chmod", "-R", "u+rwx", b.o.DataDir).Run() // checkpoints are read-only, and the kernel closes a part of an overlay
	})
	b.open()
	return b
}

func (b *bench) open() []executor.Found {
	b.Helper()
	said := make(chan protocol.Message, 256)
	b.said = said
	b.o.Deliver = func(m protocol.Message) {
		if m.Kind == protocol.Report {
			o := m.Body.(*protocol.Observation)
			if o.Storing {
				b.vacant.Store(o.Vacant)
				b.storing.Store(true)
				return
			}
			b.reported.Store(int64(o.Demand[trp.Memory]))
			return
		}
		said <- m
	}
	var err error
	if b.ex, err = process.New(b.o); err != nil {
		b.Fatal(err)
	}
	if b.made != nil {
		b.made()
	}
	found, err := b.ex.Find(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return found
}

var token = job.Token{Epoch: 1, Seq: 1}

// lease makes a Start of ten items for a command.
func lease(length time.Duration, command ...string) protocol.Message {
	now := quantity.At(time.Now())
	return protocol.Message{
		Kind: protocol.Start, From: protocol.Address{Role: protocol.Node, ID: "n"}, To: protocol.Address{Role: protocol.Executor, ID: "n"},
		Token: token, Job: "j", Body: &protocol.Work{Placement: protocol.Placement{Slice: "n/sim/0", Range: job.Range{From: 0, To: 10},
			Start: now, End: now.Add(length), Demand: trp.Vector{1 << 30}}, Spec: &job.Spec{Name: "j", Kind: job.Items, Total: 10, Grid: 1,
			Launch: job.Launch{Command: command, Grace: 300 * time.Millisecond}}},
	}
}

// polite makes a lease for a command that ends when it is asked to: on a busy machine too it has time for that.
func polite(m protocol.Message) protocol.Message {
	m.Body.(*protocol.Work).Spec.Launch.Grace = 10 * time.Second
	return m
}

// self is a command that runs one of the programs of main_test.go.
func self(t testing.TB, args ...string) []string {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{path, "program"}, args...)
}

func (b *bench) do(m protocol.Message) { b.ex.Do(m, journal.Position{Seq: 9}) }

// next is the next message, which is to be of a kind. That a program is gone may be said twice, by its end and by who asked for that.
func (b *bench) next(k protocol.Kind) protocol.Message {
	b.Helper()
	for over := time.After(patience); ; {
		select {
		case m := <-b.said:
			switch {
			case m.Kind == k:
				return m
			case m.Kind != protocol.Dismissed:
				b.Fatalf("message kind %d (%+v, body %+v), want kind %d", m.Kind, m, m.Body, k)
			}
		case <-over:
			b.Fatalf("no message of kind %d; supervisor says: %s", k, shim.Tail(b.dir().Log(), 20, 4096))
		}
	}
}

// run runs a subjob to its end.
func (b *bench) run(m protocol.Message, want job.Outcome) job.Result {
	b.Helper()
	b.do(m)
	b.next(protocol.Started)
	return b.exited(want)
}

func (b *bench) exited(want job.Outcome) job.Result {
	b.Helper()
	r := *b.next(protocol.Exited).Body.(*protocol.Conclusion).Result
	if r.Outcome != want {
		b.Fatalf("outcome %v (%+v), want %v", r.Outcome, r, want)
	}
	return r
}

func (b *bench) settle(committed bool, r job.Range) {
	b.Helper()
	b.do(protocol.Message{Kind: protocol.Settle, Token: token, Job: "j", Body: &protocol.Settlement{Range: r, Committed: committed}})
	b.next(protocol.Settled)
}

// commit settles a subjob that ended: all of its range counts.
func (b *bench) commit(m protocol.Message) {
	b.Helper()
	b.do(protocol.Message{Kind: protocol.Settle, Token: m.Token, Job: "j", Body: &protocol.Settlement{Range: m.Body.(*protocol.Work).Range,
		Committed: true}})
	b.next(protocol.Settled)
}

func (b *bench) dir() shim.Dir { return shim.Dir(filepath.Join(b.o.DataDir, "runs", token.String())) }

// await waits until ok says so.
func (b *bench) await(what string, ok func() bool) {
	b.Helper()
	for until := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			b.Fatalf("timed out waiting for %s; supervisor says: %s", what, shim.Tail(b.dir().Log(), 20, 4096))
		}
	}
}

// events reads the events file.
func (b *bench) events() (all []shim.Event) {
	b.Helper()
	data, err := os.ReadFile(folders.Events(b.o.DataDir))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var e shim.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			b.Fatalf("line %q: %v", line, err)
		}
		all = append(all, e)
	}
	return all
}

// idle reports whether a process is a supervisor that waits for its next subjob.
func idle(pid int, args string) bool {
	return strings.Contains(args, "\x00"+supervisor.Await+"\x00") && len(tree.Below(pid)) == 0
}

// living returns the processes that mention a data directory in their environment or arguments, without idle supervisors.
func living(dataDir string) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + e.Name() + "/stat")
		if i := strings.LastIndexByte(string(stat), ')'); i < 0 || strings.HasPrefix(string(stat[i:]), ") Z") {
			continue
		}
		env, _ := os.ReadFile("/proc/" + e.Name() + "/environ")
		args, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if strings.Contains(string(env)+string(args), dataDir) && !idle(pid, string(args)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func killAll(dataDir string) {
	for range 50 {
		pids := living(dataDir)
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// kill ends a process and waits until it is gone, or a corpse.
func kill(t testing.TB, pid int) {
	t.Helper()
	p, ok := tree.Look(pid)
	if !ok {
		t.Fatalf("process %d is not there", pid)
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(10 * time.Second); p.Alive(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("process %d does not end", pid)
		}
	}
}

// described tells what processes are, for a test that did not want them.
func described(pids []int) string {
	var b strings.Builder
	for _, pid := range pids {
		read := func(name string) string {
			data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
			return strings.Join(strings.Fields(strings.ReplaceAll(string(data), "\x00", " ")), " ")
		}
		fmt.Fprintf(&b, "\n\tprocess %d: %q, stat %s, waits in %s, groups %s", pid, read("cmdline"), read("stat"), read("wchan"),
			read("cgroup"))
	}
	return b.String()
}
