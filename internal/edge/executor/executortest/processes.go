package executortest

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// crowds are subjobs whose processes do what they can to outlive their lease. Each is a script of sh, in which up says that half of the
// range is complete, and ignores SIGTERM from its first line on. done: it ends by itself, and leaves others behind.
var crowds = []struct {
	name, script string
	done         bool
}{
	{"ignores signals", `trap '' HUP INT QUIT USR1; up; while :; do sleep 0.05; done`, false},
	{"double forks and sessions of their own", `
		for i in 1 2 3; do (setsid sh -c '(setsid sleep 1000 & setsid sleep 1001 &); sleep 1002' &); done
		up; sleep 1003`, false},
	{"a parent that ends and leaves them", `(setsid sh -c 'sleep 1000 & sleep 1001' &); (sleep 1002 &); up; exit 0`, true},
	{"processes that are stopped", `for i in 1 2 3 4 5; do sh -c 'kill -STOP $$; sleep 1000' & done; up; kill -STOP $$; sleep 1000`, false},
	{"processes that are traced and stopped", `
		command -v python3 >/dev/null || { up; sleep 1000; }
		python3 -c '
import ctypes, os, signal, time
for i in range(3):
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).ptrace(0, 0, 0, 0) # PTRACE_TRACEME
        os.kill(os.getpid(), signal.SIGSTOP)
        while True: time.sleep(1)
    os.waitpid(pid, os.WUNTRACED)
print("up", flush=True)
time.sleep(1000)' | { read line; up; cat; }`, false},
	{"zombies", `for i in $(seq 100); do true & done; up; exec sleep 1000`, false},
	{"forks all the time", `r() { sleep 0.05; r & }; for i in 1 2 3 4 5 6; do r & done; up; while :; do sleep 0.05; done`, false},
	{"hundreds", `for i in $(seq 300); do sleep 1000 & done; up; wait`, false},
}

const crowdPrelude = `trap '' TERM
up() { printf '{"progress":5}' > "$SLUICE_PROGRESS_FILE.new"; mv "$SLUICE_PROGRESS_FILE.new" "$SLUICE_PROGRESS_FILE"; }
`

// mostLate is how long after its lease's end the last process of any subjob is gone, on a machine on which everything else wants to run
// too.
const mostLate = 30 * time.Second

// Crowds runs subjobs of hostile processes to their deadline: whatever they do, they end, what was complete counts, and nothing of them is
// left.
func Crowds(t *testing.T, open func(t *testing.T) Harness) {
	for _, c := range crowds {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, open(t))
			length := time.Second
			if b.h.Fixed {
				length = 15 * time.Second // all there is to start in
			}
			m := b.lease(Stubborn, length)
			l := &m.Body.(*protocol.Work).Spec.Launch
			*l = b.h.Script(crowdPrelude + c.script)
			l.Grace = Grace
			b.do(m)
			end := b.prolong(m, patience)
			b.next(protocol.Started)
			want := job.Done
			if !c.done {
				b.settleDown()
				end, want = b.prolong(m, time.Second), job.DeadlineKilled
			}
			r := b.gone()
			if r.Outcome != want || !c.done && r.Progress != 5 {
				b.Errorf("it ended %v, complete up to %d (%s), want %v and 5", r.Outcome, r.Progress, r.Detail, want)
			}
			if late := r.End.Sub(end); late > mostLate {
				b.Errorf("its last process was gone %v after its lease", late)
			}
			if left := b.h.Living(token); left != 0 {
				b.Errorf("%d processes of it are there after its end", left)
			}
			b.settle(true)
		})
	}
}

// gone waits for the end, with a while in which processes remain, as there may be.
func (b *bench) gone() job.Result {
	b.Helper()
	for until := quantity.At(time.Now()).Add(2 * patience); quantity.At(time.Now()) < until; {
		select {
		case m := <-b.said:
			switch body := m.Body.(type) {
			case *protocol.Conclusion:
				return *body.Result
			case *protocol.Reason: // Stuck
			default:
				b.Fatalf("got message kind %d: %+v, want the end", m.Kind, m)
			}
		case <-time.After(time.Second):
		}
	}
	b.Fatalf("no end within %v", 2*patience)
	panic("unreachable")
}
