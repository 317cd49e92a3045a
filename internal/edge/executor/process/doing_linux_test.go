package process_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

// TestWhoseDoingTheDeathOfASupervisorIs: it counts as the program's failure if a running daemon sees it, as the node's if the machine or
// the daemon was down, and as a limit's if the subjob had hit that limit before, daemon or not. Progress that is on the disk counts.
func TestWhoseDoingTheDeathOfASupervisorIs(t *testing.T) {
	out := func(files ...string) string { // a control group as the kernel shows it
		dir := t.TempDir()
		for i := 0; i < len(files); i += 2 {
			must(os.WriteFile(filepath.Join(dir, files[i]), []byte(files[i+1]), 0o600))
		}
		return dir
	}
	const full = "low 0\noom 1\noom_kill 1\n"
	for name, c := range map[string]struct {
		away, restarted bool
		group           string
		want            job.Outcome
		progress        int64
		said            string
	}{
		"the daemon lives":         {want: job.Lost, progress: 5, said: "perhaps the program itself"},
		"no daemon is there":       {away: true, want: job.NodeFailed, progress: 5, said: "while no daemon was there"},
		"the machine is restarted": {away: true, restarted: true, want: job.NodeFailed, said: "the machine was restarted"},
		"out of memory, and the daemon lives": {
			group: out("memory.events", full),
			want:  job.MemoryKilled, progress: 5, said: "more than the memory of its slice",
		},
		"out of memory, and no daemon is there": {
			away: true, group: out("memory.events", full),
			want: job.MemoryKilled, progress: 5, said: "more than the memory of its slice",
		},
		"too many processes, and the same": {
			away: true, group: out("pids.events", "max 3\n"),
			want: job.LimitKilled, progress: 5, said: "more processes",
		},
		"memory is short on the machine": {
			away: true, group: out("memory.events", "oom 0\noom_kill 2\n"),
			want: job.NodeFailed, progress: 5, said: "no daemon",
		},
		"a limit, and the machine was restarted": {
			away: true, restarted: true, group: out("memory.events", full),
			want: job.NodeFailed, said: "the machine was restarted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(o *process.Options) { o.Isolation, o.BootID = treeOnly(), "the first" })
			supervisor := b.running()
			if c.group != "" { // the supervisor holds the lock, so the line is appended as if it had written it
				note, err := b.dir().ReadNote()
				if err != nil {
					t.Fatal(err)
				}
				note.Cgroup = c.group
				b.annotate(note)
			}
			if c.away {
				must(b.ex.Close())
			}
			kill(t, supervisor)
			var r job.Result
			if c.away {
				b.await("everything to end", func() bool { return len(living(b.o.DataDir)) == 0 })
				if c.restarted {
					b.o.BootID = "the next"
				}
				found := b.open()
				if len(found) != 1 || found[0].Result == nil {
					t.Fatalf("found %+v", found)
				}
				r = *found[0].Result
				if r.Outcome != c.want {
					t.Errorf("it ended %v, want %v", r.Outcome, c.want)
				}
			} else {
				r = b.exited(c.want)
			}
			if r.Progress != c.progress || r.Start == 0 || !strings.Contains(r.Detail, c.said) {
				t.Errorf("%+v, want progress %d, a start and %q", r, c.progress, c.said)
			}
			if c.want == job.MemoryKilled && r.Peak[trp.Memory] < 1<<30 {
				t.Errorf("its peak is %d, less than its limit", r.Peak[trp.Memory])
			}
		})
	}
}

// TestASupervisorThatNeverLooked: a supervisor that ends before it starts the command is its node's failure. One that can't even be started
// also makes the node report that it can start nothing.
func TestASupervisorThatNeverLooked(t *testing.T) {
	for name, c := range map[string]struct {
		then      string // what becomes of the supervisor's program once the executor is open
		said      string
		unhealthy bool
	}{
		"it ends at once": {
			then: "#!/bin/sh\n[ $1 = probe ] && exit 0\necho broken >&2\nexit 3\n",
			said: "the supervisor ended before the start",
		},
		"it is gone": {said: "no such file", unhealthy: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(o *process.Options) { o.ShimPath = slowShim(t) })
			if must(os.Remove(b.o.ShimPath)); c.then != "" {
				must(os.WriteFile(b.o.ShimPath, []byte(c.then), 0o700))
			}
			b.do(lease(time.Minute, "true"))
			said, exited := map[protocol.Kind]protocol.Message{}, protocol.Exited
			b.await("its end", func() bool {
				select {
				case m := <-b.said:
					said[m.Kind] = m
				default:
				}
				_, ended := said[exited]
				_, unhealthy := said[protocol.Unhealthy]
				return ended && (unhealthy || !c.unhealthy)
			})
			r := said[exited].Body.(*protocol.Conclusion).Result
			if r.Outcome != job.NodeFailed || r.Start != 0 || !strings.Contains(r.Detail, c.said) {
				t.Errorf("%+v, want that its node failed before a start, and %q", r, c.said)
			}
		})
	}
}

// annotate adds a line to the note of a supervisor that holds its lock.
func (b *bench) annotate(note shim.Note) {
	b.Helper()
	dir := shim.Dir(b.TempDir())
	lock, err := dir.TryLock()
	if err == nil {
		err = lock.WriteNote(&note)
	}
	must(err)
	must(lock.Close())
	line, err := os.ReadFile(dir.Note())
	must(err)
	f, err := os.OpenFile(b.dir().Note(), os.O_WRONLY|os.O_APPEND, 0)
	must(err)
	_, err = f.Write(line)
	must(err)
	must(f.Close())
}
