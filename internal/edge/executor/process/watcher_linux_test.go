package process_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
	shimtree "sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/survival"
	"sluice.dev/sluice/internal/edge/survival/cgroup"
	"sluice.dev/sluice/internal/edge/survival/tree"
	"sluice.dev/sluice/internal/edge/survival/watch"
)

// watchedMachine has 1000 MiB, of them in use as many as a file says, and space to move memory out to; all else of it is real. So
// a daemon and its watcher see the same.
type watchedMachine struct {
	survival.Survival
	file string
}

func (m *watchedMachine) Sense(_ time.Duration, s *survival.Memory) error {
	data, err := os.ReadFile(m.file)
	used, _ := strconv.Atoi(strings.TrimSpace(string(data)))
	*s = survival.Memory{Capacity: 1000 << 20, Used: quantity.Amount(used) << 20, Room: 500 << 20}
	return err
}

// Capability is that of a machine with swap, so that suspending helps.
func (m *watchedMachine) Capability() survival.Capability {
	c := m.Survival.Capability()
	c.Level = survival.Full
	return c
}

var kinds = map[string]func(string) (survival.Survival, error){tree.Name: tree.Open, cgroup.Name: cgroup.Open}

// stagedFor opens kinds on the machine of a region.
func stagedFor(region string) func(kind, base string) (survival.Survival, string, error) {
	return func(kind, base string) (survival.Survival, string, error) {
		k, err := kinds[kind](base)
		return &watchedMachine{k, region + ".used"}, "", err
	}
}

// has sets how much of the machine's memory is used, in MiB.
func has(t testing.TB, data string, used int) {
	t.Helper()
	path := watch.Path(data) + ".used"
	if err := os.WriteFile(path+".new", fmt.Append(nil, used), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// guarded are options for an executor with a watcher.
func guarded(data, kind string, iso *shim.Isolation, timer time.Duration) (o process.Options, err error) {
	self, err := os.Executable()
	if err != nil {
		return o, err
	}
	k, _, err := stagedFor(watch.Path(data))(kind, "")
	return process.Options{DataDir: data, ShimPath: self, Survival: k, Isolation: iso, Watch: true,
		Airlock: airlock.Config{Timer: timer, Yield: timer / 4, CoolDown: time.Millisecond}}, err
}

// watched runs a test over every kind that works here.
func watched(t *testing.T, test func(t *testing.T, kind string, iso *shim.Isolation)) {
	t.Run("tree, best", func(t *testing.T) { test(t, tree.Name, nil) })
	t.Run("tree only", func(t *testing.T) { test(t, tree.Name, treeOnly()) })
	if base, _, _ := shimtree.GroupBase(); base != "" {
		t.Run("cgroup", func(t *testing.T) { test(t, cgroup.Name, nil) })
	}
}

// newWatched is a bench with a watcher over a machine with plenty of memory.
func newWatched(t *testing.T, kind string, iso *shim.Isolation, timer time.Duration) *bench {
	t.Helper()
	t.Parallel()
	b := &bench{T: t}
	data := filepath.Join(t.TempDir(), "data")
	has(t, data, 100)
	var err error
	if b.o, err = guarded(data, kind, iso, timer); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if b.ex != nil {
			_ = b.ex.Close()
		}
		killAll(data)
		_ = os.Remove(watch.Path(data))
		_ = os.Remove(watch.Path(data) + ".used")
		_ = exec.Command("chmod", "-R", "u+rwx", data).Run()
	})
	return b
}

// daemonOf is a daemon of its own process: it starts one subjob, and lives until it is killed.
func daemonOf(args []string) {
	data, kind := args[0], args[1]
	var iso *shim.Isolation
	if args[2] == "only" {
		iso = treeOnly()
	}
	timer, err := time.ParseDuration(args[3])
	must(err)
	length, err := time.ParseDuration(args[4])
	must(err)
	o, err := guarded(data, kind, iso, timer)
	must(err)
	o.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	o.Deliver = func(m protocol.Message) {
		if m.Kind == protocol.Started {
			fmt.Println("started")
		}
	}
	ex, err := process.New(o)
	must(err)
	_, err = ex.Find(context.Background())
	must(err)
	ex.Do(ranked(lease(length, args[5:]...)), journal.Position{Seq: 9})
	select {}
}

// ranked can't leave a checkpoint to go on elsewhere, so nobody asks it to yield.
func ranked(m protocol.Message) protocol.Message {
	m.Body.(*protocol.Work).Spec.Launch.Grace = 100 * time.Millisecond
	return m
}

// daemon starts a daemon, and waits until its subjob runs, heeds signals, and is watched.
func (b *bench) daemon(kind string, iso *shim.Isolation, timer, length time.Duration, program ...string) *exec.Cmd {
	b.Helper()
	how := "best"
	if iso != nil {
		how = "only"
	}
	args := append([]string{"daemon", b.o.DataDir, kind, how, timer.String(), length.String()}, self(b, program...)...)
	cmd := exec.Command(b.o.ShimPath, args...)
	cmd.Stderr = b.Output()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	b.await("a subjob that is watched", func() bool {
		p, ok := b.dir().ReadProgress()
		w := watch.Witness{Path: watch.Path(b.o.DataDir)}
		defer w.Close()
		_, seen := w.Stand(token)
		return ok && p.Progress == 5 && seen
	})
	return cmd
}

// end kills a daemon.
func end(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

// stand is what the watcher says of the subjob.
func (b *bench) stand() watch.Stand {
	w := watch.Witness{Path: watch.Path(b.o.DataDir)}
	defer w.Close()
	s, _ := w.Stand(token)
	return s
}

// watcherPID finds the watcher's process.
func (b *bench) watcherPID() (pid int) {
	b.Helper()
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		args, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if n, err := strconv.Atoi(e.Name()); err == nil && strings.Contains(string(args), "\x00"+watch.Verb+"\x00"+watch.Path(b.o.DataDir)+
			"\x00") {
			pid = n
		}
	}
	return pid
}

// TestTheWatcherDecides and acts; the executor says what it does in the place of its own sensors, and the subjob's program is told.
func TestTheWatcherDecides(t *testing.T) {
	watched(t, func(t *testing.T, kind string, iso *shim.Isolation) {
		b := newWatched(t, kind, iso, time.Hour)
		b.open()
		b.begin(lease(time.Hour, self(t, "hogs")...))
		strain := func(what string, ok func(*protocol.Strain) bool) {
			t.Helper()
			for until := time.Now().Add(patience); ; {
				if s := b.word(protocol.Pressure).Body.(*protocol.Strain); ok(s) {
					return
				} else if time.Now().After(until) {
					t.Fatalf("%s: it says %+v", what, s)
				}
			}
		}
		one := func(s *protocol.Strain, st protocol.Stance) bool {
			return s.Watch != 0 && len(s.Uses) == 1 && s.Uses[0].Token == token && s.Uses[0].Stand.State == st
		}
		has(t, b.o.DataDir, 930)
		strain("over the line", func(s *protocol.Strain) bool {
			return one(s, protocol.IsSuspended) && s.Uses[0].Stand.Times == 1 && s.Uses[0].Resident >= 32<<20
		})
		b.await("it is suspended", b.suspended)
		b.await("it is told", func() bool {
			said, ok := readNotice(t, b.dir().Notice())
			return ok && said.Kind == executor.NoticeSuspended
		})
		if pid, last := b.ex.Watcher(); pid != b.watcherPID() || !strings.Contains(last, "suspend") {
			t.Errorf("shown are process %d and %q", pid, last)
		}
		// The node's word came late: another decides, and it is what that says.
		b.tell(protocol.Resume, nil)
		b.tell(protocol.Suspend, &protocol.Reason{})
		has(t, b.o.DataDir, 100)
		strain("calm", func(s *protocol.Strain) bool { return one(s, protocol.GoesOn) && s.Uses[0].Stand.Resumed != 0 })
		b.await("it goes on", func() bool { return !b.suspended() })
		b.await("it is told", func() bool {
			said, ok := readNotice(t, b.dir().Notice())
			return ok && said.Kind == executor.NoticeResumed
		})
		has(t, b.o.DataDir, 980) // and nothing cheaper is open
		r := *b.word2(protocol.Exited).Body.(*protocol.Conclusion).Result
		if r.Outcome != job.Stopped || r.Progress != 5 || !strings.Contains(r.Detail, "short of memory") {
			t.Errorf("it ended as %+v", r)
		}
	})
}

// word2 is the next message of a kind, whatever was said before.
func (b *bench) word2(k protocol.Kind) protocol.Message {
	b.Helper()
	for until := time.After(patience); ; {
		select {
		case m := <-b.said:
			if m.Kind == k {
				return m
			}
		case <-until:
			b.Fatalf("no message of kind %d", k)
		}
	}
}

// TestAWatcherIsKilled in mid-storm: the supervisor resumes its subjob, with its daemon there and without.
func TestAWatcherIsKilled(t *testing.T) {
	watched(t, func(t *testing.T, kind string, iso *shim.Isolation) {
		for _, alone := range []bool{false, true} {
			t.Run(fmt.Sprintf("its daemon dead %v", alone), func(t *testing.T) {
				b := newWatched(t, kind, iso, time.Hour)
				d := b.daemon(kind, iso, time.Hour, time.Hour, "hogs")
				pid := b.watcherPID()
				has(t, b.o.DataDir, 930)
				b.await("it is suspended", b.suspended)
				if alone {
					end(t, d)
					if !b.suspended() {
						t.Fatal("it goes on with its daemon dead")
					}
				}
				has(t, b.o.DataDir, 100)
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				b.await("it goes on", func() bool { return !b.suspended() })
				t.Logf("it goes on %v after its watcher was killed", time.Since(began).Round(time.Millisecond))
				if alone && b.watcherPID() != 0 {
					t.Error("there is another watcher")
				}
			})
		}
	})
}

// TestAGraceIsNoWantOfMemory: a program that ignores TERM in its grace was asked nothing by the watcher, and its node hears nothing of it.
func TestAGraceIsNoWantOfMemory(t *testing.T) {
	watched(t, func(t *testing.T, kind string, iso *shim.Isolation) {
		b := newWatched(t, kind, iso, time.Hour)
		b.open()
		m := lease(time.Hour, self(t, "stubborn")...)
		m.Body.(*protocol.Work).Spec.Launch.Grace = 30 * time.Minute
		b.begin(m)
		b.await("it is watched", func() bool { return b.stand().Token == token })
		has(t, b.o.DataDir, 870) // so that words come, and nothing is to be done
		b.tell(protocol.Deadline, &protocol.Shift{End: quantity.At(time.Now().Add(10 * time.Minute))})
		b.await("its grace", func() bool { return b.stand().State != airlock.Running })
		if s := b.stand(); s.State != airlock.Ending {
			t.Errorf("the watcher says %+v", s)
		}
		for m, words := b.word2(protocol.Pressure), 0; words < 3; m, words = b.word2(protocol.Pressure), words+1 {
			if s := m.Body.(*protocol.Strain); len(s.Uses) == 1 && s.Uses[0].Stand.State != protocol.GoesOn {
				t.Fatalf("its node hears %+v", s.Uses[0].Stand)
			}
		}
		b.tell(protocol.Stop, &protocol.Halt{Now: true})
	})
}

// TestAWatcherEndsASubjobAlone: its daemon is dead. The next one finds it ended by its node, not failed; and one that missed its deadline
// after it was suspended is excused, as it is where the node knows of it.
func TestAWatcherEndsASubjobAlone(t *testing.T) {
	watched(t, func(t *testing.T, kind string, iso *shim.Isolation) {
		t.Run("ended", func(t *testing.T) {
			b := newWatched(t, kind, iso, time.Hour)
			end(t, b.daemon(kind, iso, time.Hour, time.Hour, "hogs"))
			has(t, b.o.DataDir, 980)
			b.await("its result", func() bool { _, err := b.dir().ReadResult(); return err == nil })
			b.foundAs(job.Stopped)
		})
		t.Run("ended, and its supervisor killed before it knows", func(t *testing.T) {
			b := newWatched(t, kind, iso, time.Hour)
			end(t, b.daemon(kind, iso, time.Hour, time.Hour, "hogs"))
			note, err := b.dir().ReadNote()
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(note.PID, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			has(t, b.o.DataDir, 980)
			b.await("it to be ended", func() bool { return b.stand().State == airlock.Reclaiming })
			kill(t, note.PID)
			b.foundAs(job.Stopped)
		})
		t.Run("late", func(t *testing.T) {
			b := newWatched(t, kind, iso, time.Hour)
			end(t, b.daemon(kind, iso, time.Hour, 8*time.Second, "hogs", "stubborn"))
			has(t, b.o.DataDir, 930)
			b.await("it is suspended", b.suspended)
			has(t, b.o.DataDir, 100)
			b.await("it goes on", func() bool { return !b.suspended() })
			b.await("its result", func() bool { _, err := b.dir().ReadResult(); return err == nil })
			if r, _ := b.dir().ReadResult(); r.Outcome != job.DeadlineKilled {
				t.Fatalf("its supervisor says %+v", r)
			}
			b.foundAs(job.Stopped)
		})
		t.Run("late under the next daemon", func(t *testing.T) {
			b := newWatched(t, kind, iso, time.Hour)
			end(t, b.daemon(kind, iso, time.Hour, 10*time.Second, "hogs", "stubborn"))
			has(t, b.o.DataDir, 930)
			b.await("it is suspended", b.suspended)
			has(t, b.o.DataDir, 100)
			b.await("it goes on", func() bool { return !b.suspended() })
			found := b.open()
			if len(found) != 1 || found[0].Still {
				t.Fatalf("found %+v", found)
			}
			r := found[0].Result // a busy machine may take all of the lease to come here
			if found[0].Alive {
				r = b.word2(protocol.Exited).Body.(*protocol.Conclusion).Result
			}
			if r == nil || r.Outcome != job.Stopped || r.Progress != 5 {
				t.Errorf("%+v", r)
			}
		})
	})
}

// foundAs opens an executor over what is there, which finds the subjob ended so.
func (b *bench) foundAs(want job.Outcome) {
	b.Helper()
	b.await("its supervisor to be done", func() bool {
		lock, err := b.dir().TryLock()
		if err == nil {
			_ = lock.Close()
		}
		return err == nil
	})
	found := b.open()
	if len(found) != 1 || found[0].Result == nil || found[0].Result.Outcome != want || found[0].Result.Progress != 5 {
		b.Fatalf("found %+v, want it ended as %v", found, want)
	}
}

// TestADaemonThatComesBackWatchesOn what it finds, with the rank that it had.
func TestADaemonThatComesBackWatchesOn(t *testing.T) {
	watched(t, func(t *testing.T, kind string, iso *shim.Isolation) {
		b := newWatched(t, kind, iso, time.Hour)
		d := b.daemon(kind, iso, time.Hour, time.Hour, "hogs")
		pid := b.watcherPID()
		has(t, b.o.DataDir, 930)
		b.await("it is suspended", b.suspended)
		end(t, d)
		has(t, b.o.DataDir, 100)
		b.made = func() {
			b.await("the next watcher", func() bool {
				next, _ := b.ex.Watcher()
				return next != 0 && next != pid && b.stand().State == airlock.Running
			})
		}
		if found := b.open(); len(found) != 1 || !found[0].Alive {
			t.Fatalf("found %+v", found)
		}
		b.tell(protocol.Resume, nil)
		b.await("it goes on", func() bool { return !b.suspended() })
		b.await("the subjob is watched, and was suspended", func() bool { return b.stand().Entries == 1 })
		has(t, b.o.DataDir, 930)
		b.await("it is suspended again", b.suspended)
		has(t, b.o.DataDir, 100)
		b.await("it goes on", func() bool { return !b.suspended() })
		b.tell(protocol.Stop, &protocol.Halt{Text: "drained"})
		if r := *b.word2(protocol.Exited).Body.(*protocol.Conclusion).Result; r.Progress != 5 {
			t.Errorf("%+v", r)
		}
	})
}
