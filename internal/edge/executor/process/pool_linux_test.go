package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/supervisor"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// nth is a lease with a token of its own.
func nth(n int, command ...string) protocol.Message {
	m := lease(time.Minute, command...)
	m.Token.Seq = uint64(n)
	return m
}

// at is the run directory of a subjob.
func (b *bench) at(t job.Token) shim.Dir {
	return shim.Dir(filepath.Join(b.o.DataDir, "runs", t.String()))
}

// supervisors are the processes that supervise subjobs of a data directory, or wait for one; inits are none.
func supervisors(dataDir string) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		args, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		name, _ := os.ReadFile("/proc/" + e.Name() + "/comm")
		if strings.Contains(string(args), "\x00"+supervisor.Await+"\x00"+dataDir) && string(name) != "sluice-init\n" {
			var pid int
			_, _ = fmt.Sscan(e.Name(), &pid)
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestASupervisorTakesTheNext: one process looks after many subjobs, one after another, and none of them leaves anything in it: no
// descriptor, no process, no thread more than the first few needed.
func TestASupervisorTakesTheNext(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		var note shim.Note
		files, threads := 0, 0
		for i := range 40 {
			m := nth(i+1, "sh", "-c", "echo x; echo y >&2; (sleep 100 &); exit 0")
			b.run(m, job.Done)
			now, err := b.at(m.Token).ReadNote()
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 && now.PID != note.PID {
				t.Fatalf("subjob %d has supervisor %d, the one before %d", i+1, now.PID, note.PID)
			}
			note = now
			if left := living(b.o.DataDir); len(left) != 0 {
				t.Fatalf("processes %v remain of subjob %d", left, i+1)
			}
			fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", note.PID))
			tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", note.PID))
			if i == 20 {
				files, threads = len(fds), len(tasks)
			}
			if i > 20 && (len(fds) > files || len(tasks) > threads+2) {
				t.Fatalf("after subjob %d the supervisor has %d files and %d threads, after 20 it had %d and %d", i+1, len(fds), len(tasks),
					files, threads)
			}
			b.commit(m)
		}
	})
}

// TestASupervisorHandsNothingOn: what a subjob is, and what it does to itself, is not to be seen in the next one of its supervisor.
func TestASupervisorHandsNothingOn(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		const is = `env | grep -v -e ^SLUICE_ -e ^TMPDIR= -e ^PWD= -e ^HOME= -e ^_= | sort; umask; grep -v -i pending /proc/self/limits; grep -e ^SigBlk -e ^SigIgn -e ^SigCgt -e ^Cap -e ^Groups /proc/self/status
			cat /proc/self/oom_score_adj; nice; ls /proc/self/fd | wc -l; ls -A . ; `
		does := is + `umask 0; ulimit -n 17; ulimit -f 3; trap "" USR1 HUP; renice -n 5 $$; cd /; exit 0`
		said := map[int]string{}
		for i, command := range []string{is, does, is} {
			m := nth(i+1, "sh", "-c", command)
			if i == 1 {
				m.Body.(*protocol.Work).Spec.Launch.Env = []string{"FORMER=1"}
			}
			b.run(m, job.Done)
			said[i] = shim.Tail(b.at(m.Token).Stdout(), 1000, 100_000)
			b.commit(m)
		}
		if !strings.Contains(said[1], "FORMER=1") || said[0] == "" {
			t.Fatalf("the second subjob was %q, want one with a variable of its own", said[1])
		}
		if said[2] != said[0] {
			t.Errorf("behind another subjob the next one is\n%s\nwithout it\n%s", said[2], said[0])
		}
		if all := supervisors(b.o.DataDir); len(all) != 1 {
			t.Errorf("supervisors %v, want one for all", all)
		}
	})
}

// TestASupervisorThatIsKilledWhileItWaits is no subjob's failure, whether it is gone or hears of the subjob just before.
func TestASupervisorThatIsKilledWhileItWaits(t *testing.T) {
	b := newBench(t, nil)
	b.run(nth(1, "true"), job.Done)
	idle := supervisors(b.o.DataDir)
	if len(idle) != 1 {
		t.Fatalf("supervisors %v, want one that waits", idle)
	}
	kill(t, idle[0])
	b.run(nth(2, "true"), job.Done)
	// Now one that gets its order, and is killed before it reads it.
	idle = supervisors(b.o.DataDir)
	if len(idle) != 1 {
		t.Fatalf("supervisors %v, want one that waits", idle)
	}
	if err := syscall.Kill(idle[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	m := nth(3, "sh", "-c", "echo once >>$SLUICE_OUTPUT_DIR/runs")
	b.do(m)
	b.await("the run directory", func() bool { _, err := b.at(m.Token).ReadLease(); return err == nil })
	time.Sleep(50 * time.Millisecond)
	kill(t, idle[0])
	b.next(protocol.Started)
	b.exited(job.Done)
	if got, _ := os.ReadFile(filepath.Join(b.at(m.Token).Output(), "runs")); string(got) != "once\n" {
		t.Errorf("the command ran as often as %q says", got)
	}
}

// TestSupervisorsEndWithTheirDaemon: those that wait at once, and who has a subjob when that is over.
func TestSupervisorsEndWithTheirDaemon(t *testing.T) {
	b := newBench(t, nil)
	waits := func(n int) (m protocol.Message, end func()) {
		m = nth(n, "sh", "-c", "until [ -e $TMPDIR/go ]; do sleep 0.02; done")
		return m, func() { must(os.WriteFile(filepath.Join(b.at(m.Token).Tmp(), "go"), nil, 0o600)) }
	}
	first, endFirst := waits(1)
	second, endSecond := waits(2)
	b.do(first)
	b.do(second)
	for range 2 { // both run at once, however slow the machine is
		b.next(protocol.Started)
	}
	endFirst()
	endSecond()
	for range 2 {
		b.exited(job.Done)
	}
	busy, endBusy := waits(3)
	b.do(busy)
	b.next(protocol.Started)
	if all := supervisors(b.o.DataDir); len(all) != 2 {
		t.Fatalf("supervisors %v, want one that waits and one that does not", all)
	}
	if err := b.ex.Close(); err != nil {
		t.Fatal(err)
	}
	b.await("the idle one to end", func() bool { return len(supervisors(b.o.DataDir)) == 1 })
	time.Sleep(100 * time.Millisecond)
	if all := supervisors(b.o.DataDir); len(all) != 1 || len(tree.Below(all[0])) == 0 {
		t.Fatalf("supervisors %v, want the one that has a subjob", all)
	}
	endBusy()
	b.await("the other one to end", func() bool { return len(supervisors(b.o.DataDir)) == 0 })
	found := b.open()
	if len(found) != 3 || found[2].Result == nil || found[2].Result.Outcome != job.Done {
		t.Errorf("found %+v, want three that ended", found)
	}
}

// TestASupervisorIsKilledAtAnyMoment of a subjob's life, in which most of it is start and end. Its command is started at most once, what is
// said of it is said once, and when its end is known nothing of it lives.
func TestASupervisorIsKilledAtAnyMoment(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		outcomes := map[job.Outcome]int{}
		const lives = 60
		// On a busy machine the first kills come before anything is there: then later ones are tried too.
		for i := 0; i < lives || i < 10*lives && len(outcomes) < 2; i++ {
			ran := filepath.Join(b.o.DataDir, "ran")
			_ = os.Remove(ran)
			m := nth(i+1, "sh", "-c", "echo x >>"+ran+"; setsid sleep 100 & exit 0")
			at := time.Now().Add(time.Duration(i) * 500 * time.Microsecond)
			b.do(m)
			for time.Now().Before(at) {
				time.Sleep(50 * time.Microsecond)
			}
			for _, pid := range supervisors(b.o.DataDir) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			var r *job.Result
			for r == nil {
				select {
				case said := <-b.said:
					if end, ok := said.Body.(*protocol.Conclusion); ok {
						r = end.Result
					}
				case <-time.After(patience):
					t.Fatalf("subjob %d, killed after %v: no end; supervisor says: %s", i+1, time.Duration(i)*500*time.Microsecond,
						shim.Tail(b.at(m.Token).Log(), 20, 4096))
				}
			}
			outcomes[r.Outcome]++
			if left := living(b.o.DataDir); len(left) != 0 {
				t.Errorf("subjob %d ended as %v, but these live:%s", i+1, r.Outcome, described(left))
			}
			if data, _ := os.ReadFile(ran); string(data) != "" && string(data) != "x\n" || string(data) == "" && r.Outcome == job.Done {
				t.Errorf("subjob %d ended as %v, and its command wrote %q", i+1, r.Outcome, data)
			}
			b.commit(m)
		}
		t.Logf("%v", outcomes)
		if len(outcomes) < 2 {
			t.Errorf("all ended as %v: no moment was hit", outcomes)
		}
	})
}

// TestASupervisorDiesBeforeItNotesTheGroup: what hides from a look at environments is found by the group all the same, whose name
// needs no note.
func TestASupervisorDiesBeforeItNotesTheGroup(t *testing.T) {
	base, _, _ := tree.GroupBase()
	if base == "" {
		t.Skip("no control group can be made here")
	}
	b := newBench(t, func(o *process.Options) { o.Isolation = &shim.Isolation{Cgroup: base} })
	pid := filepath.Join(b.o.DataDir, "pid")
	m := nth(1, "sh", "-c", "env -i setsid sh -c 'echo $$ >"+pid+"; exec sleep 1000' & sleep 1000")
	b.do(m)
	b.next(protocol.Started)
	var hidden tree.Process
	b.await("the hidden process", func() bool {
		var n int
		data, _ := os.ReadFile(pid)
		_, _ = fmt.Sscan(string(data), &n)
		p, ok := tree.Look(n)
		hidden = p
		return n > 0 && ok
	})
	dir := b.at(m.Token)
	note, err := dir.ReadNote()
	if err != nil || note.Cgroup == "" {
		t.Fatalf("note %+v, error %v; want one with a group", note, err)
	}
	lines, err := os.ReadFile(dir.Note())
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(lines), "\n")
	if err := os.WriteFile(dir.Note(), []byte(first+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	kill(t, note.PID)
	b.exited(job.Lost)
	if hidden.Alive() {
		t.Errorf("process %d lives", hidden.PID)
		_ = hidden.Signal(syscall.SIGKILL)
	}
}
