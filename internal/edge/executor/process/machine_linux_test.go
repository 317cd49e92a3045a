package process_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/process/folders"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/volume"
)

// left is what a machine keeps of jobs: entries of its folders, and files of run directories, of which empty ones wait for the next subjob.
func (b *bench) left() (all []string) {
	b.Helper()
	for _, kind := range []string{"output", "checkpoints", "logs", "kept", "trash"} {
		entries, err := os.ReadDir(filepath.Join(b.o.DataDir, kind))
		must(err)
		for _, e := range entries {
			all = append(all, filepath.Join(kind, e.Name()))
		}
	}
	_ = filepath.WalkDir(filepath.Join(b.o.DataDir, "runs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, strings.TrimPrefix(path, b.o.DataDir+"/"))
		}
		return nil
	})
	return all
}

// wantLeft waits until a machine keeps just these files: run directories are removed beside the rest.
func (b *bench) wantLeft(want ...string) {
	b.Helper()
	b.await(fmt.Sprintf("just %v, and not %v, to be left", want, b.left()), func() bool { return slices.Equal(b.left(), want) })
}

// TestAMachineKeepsTheNewestCheckpointAlone: what its subjobs left is in the head's store. A checkpoint goes once the store has it no
// longer, unless a running subjob began from it; and one that the store has comes back from there.
func TestAMachineKeepsTheNewestCheckpointAlone(t *testing.T) {
	s := newStore(t)
	b := machine(t, s)
	first, second := numbered(1<<16, 1), numbered(1<<16, 2)
	m := chained(first, 0, 10, "echo words; "+leaves)
	b.run(m, job.Done)
	b.commit(m)
	b.wantLeft("checkpoints/j")
	if got := rolesOf(t, s, first); !slices.Equal(got, []string{"checkpoint", "logs", "output"}) {
		t.Errorf("the store has %v", got)
	}

	running := chained(second, 10, 20, `while ! [ -e "$SLUICE_OUTPUT_DIR/../go" ]; do sleep .05; done; cat "$SLUICE_RESUME_DIR/at"; `+
		strings.ReplaceAll(leaves, "10", "20"))
	running.Body.(*protocol.Work).Plan.Resume = first
	b.do(running)
	b.next(protocol.Started)
	must(s.Unname(t.Context(), "jobs/cluster/j/"+first.String()))
	b.again(func(*process.Options) {}) // each start looks
	path := folders.Layout(b.o.DataDir).Checkpoint("j", first)
	if _, err := os.Stat(path); err != nil {
		t.Errorf("what a running subjob began from: %v", err)
	}
	must(os.WriteFile(filepath.Join(string(b.at(second)), "go"), nil, 0o600))
	b.exited(job.Done)
	b.commit(running)
	b.wantLeft("checkpoints/j")
	if list, err := os.ReadDir(filepath.Dir(path)); err != nil || len(list) != 1 || list[0].Name() != second.String() {
		t.Errorf("checkpoints %v, %v", list, err)
	}

	// The job went on elsewhere: its head needs this one no longer.
	must(s.Unname(t.Context(), "jobs/cluster/j/"+second.String()))
	b.again(func(*process.Options) {})
	b.wantLeft()
}

// TestAMachineForgetsWhatOlderBuildsKept: copies of outputs go once the head's store has answered, and stay while it is away.
func TestAMachineForgetsWhatOlderBuildsKept(t *testing.T) {
	s := newStore(t)
	b := machine(t, s)
	must(b.ex.Close())
	old := folders.Layout(b.o.DataDir).Output("j", job.Range{From: 0, To: 10})
	must(os.MkdirAll(old, 0o700))
	must(os.WriteFile(filepath.Join(old, "x"), []byte("done"), 0o600))
	must(os.MkdirAll(filepath.Dir(folders.TokenFile(old)), 0o700))
	must(os.WriteFile(folders.TokenFile(old), []byte(numbered(1<<16, 1).String()), 0o600))
	var asked atomic.Int64
	b.o.Store = &awayStore{headStore: headStore{s, 1 << 16}, asked: &asked}
	b.open()
	b.await("the store to be asked", func() bool { return asked.Load() > 0 })
	if _, err := os.Stat(filepath.Join(old, "x")); err != nil {
		t.Errorf("while the store is away: %v", err)
	}
	b.again(func(o *process.Options) { o.Store = &headStore{s, 1 << 16} })
	b.wantLeft()
}

// TestAMachineIsKilledAtEachStep: of what a subjob leaves, from its end until nothing of it is on the machine. Its head's store has all of
// it before its result is told, and from then on whatever the machine does.
func TestAMachineIsKilledAtEachStep(t *testing.T) {
	var dead atomic.Bool
	var steps, until atomic.Int64
	s := newStore(t, func(step, _ string) error {
		if dead.Load() || steps.Add(1) == until.Load() {
			dead.Store(true)
			return errkind.Errorf(errkind.Unavailable, "the machine is dead")
		}
		return nil
	})
	b := machine(t, s)
	n := int64(1)
	for ; ; n++ {
		m := chained(numbered(1<<16, uint64(n)), 0, 10, "echo words; "+leaves)
		dead.Store(false)
		steps.Store(0)
		until.Store(n)
		b.do(m)
		b.next(protocol.Started)
		cut := b.cutOrTold(&dead)
		until.Store(0)
		dead.Store(false)
		if cut {
			if found := b.again(func(*process.Options) {}); len(found) != 1 {
				t.Fatalf("step %d: found %+v", n, found)
			} else if found[0].Result == nil {
				b.exited(job.Done)
			}
		}
		whole := func(when string) {
			t.Helper()
			got := result(t, s, m.Token)
			if got["output:sub/said"] != "done\n" || got["checkpoint:at"] != "ten\n" {
				t.Fatalf("step %d: %s the store has %v", n, when, got)
			}
		}
		whole("once the result is told")
		for _, step := range settling {
			killed := t.TempDir()
			must(b.ex.Close())
			if out, err := exec.Command("cp", "-a", b.o.DataDir+"/.", killed).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			was := b.o.DataDir
			b.o.DataDir = killed
			step.done(folders.Layout(killed), m.Token)
			b.open()
			b.commit(m)
			b.wantLeft("checkpoints/j")
			whole("after a kill when " + step.what)
			if data, err := os.ReadFile(filepath.Join(folders.Layout(killed).Checkpoint("j", m.Token), "at")); string(data) != "ten\n" {
				t.Errorf("the checkpoint after a kill when %s: %q, %v", step.what, data, err)
			}
			must(b.ex.Close())
			b.o.DataDir = was
			b.open()
		}
		b.commit(m)
		if !cut {
			break
		}
	}
	if n < 5 {
		t.Errorf("the machine was killed at %d steps of the store: the test is broken", n-1)
	}
}

// cutOrTold waits until the store is cut off from the machine, or the result of its subjob is told, and reports which.
func (b *bench) cutOrTold(cut *atomic.Bool) bool {
	b.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); {
		select {
		case m := <-b.said:
			if m.Kind == protocol.Exited {
				return false
			}
		case <-time.After(10 * time.Millisecond):
			if cut.Load() {
				return true
			}
		}
	}
	b.Fatal("nothing is told, and the store was not cut off")
	return false
}

// settling are the states that a machine may be killed in while it settles a subjob, as made by hand.
var settling = []struct {
	what string
	done func(l folders.Layout, t job.Token)
}{
	{"nothing was moved", func(folders.Layout, job.Token) {}},
	{"the checkpoint was in its place", func(l folders.Layout, t job.Token) {
		must(os.MkdirAll(l.Checkpoints("j"), 0o711))
		must(os.Rename(l.Run(t).Checkpoint(), l.Checkpoint("j", t)))
	}},
	{"the run directory was put away", func(l folders.Layout, t job.Token) {
		must(os.MkdirAll(l.Checkpoints("j"), 0o711))
		must(os.Rename(l.Run(t).Checkpoint(), l.Checkpoint("j", t)))
		must(os.Rename(string(l.Run(t)), l.In("runs", ".old-"+t.String())))
	}},
	{"a part of the run directory was removed", func(l folders.Layout, t job.Token) {
		must(os.MkdirAll(l.Checkpoints("j"), 0o711))
		must(os.Rename(l.Run(t).Checkpoint(), l.Checkpoint("j", t)))
		must(os.RemoveAll(l.Run(t).Output()))
		must(os.Rename(string(l.Run(t)), l.In("runs", ".old-"+t.String())))
	}},
}

// TestAMachineThatIsShortOfRoom starts nothing, evicts what the head has, and goes on by itself once there is room.
func TestAMachineThatIsShortOfRoom(t *testing.T) {
	s := newStore(t)
	small := onSmallDisk(t)
	b := newBench(t, func(o *process.Options) {
		small(o)
		o.Store, o.Keep, o.Joined.Owner = &headStore{s, 1 << 16}, true, "cluster"
	})
	first := chained(numbered(1<<16, 1), 0, 10, leaves+`; head -c 4000000 /dev/zero > "$SLUICE_CHECKPOINT_DIR/state"`)
	b.run(first, job.Done)
	b.commit(first)
	b.wantLeft("checkpoints/j")
	filler := filepath.Join(b.o.DataDir, "filler")
	fill := func(but int64) {
		state, err := volume.Look(b.o.DataDir)
		must(err)
		f, err := os.OpenFile(filler, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		must(err)
		_, err = f.Write(make([]byte, state.Free-but))
		must(errors.Join(err, f.Close()))
	}
	fill(100 << 10)
	b.wantLeft() // the checkpoint made room: 4 MB are enough
	fill(100 << 10)
	if c := b.next(protocol.Unhealthy).Body.(*protocol.Condition); !c.Unhealthy || !strings.Contains(c.Text, "short of room") ||
		!strings.Contains(c.Text, "of 24Mi are free") {
		t.Errorf("it says %+v", c)
	}
	must(os.Remove(filler))
	if c := b.next(protocol.Unhealthy).Body.(*protocol.Condition); c.Unhealthy {
		t.Errorf("with room again it says %+v", c)
	}
	second := chained(numbered(1<<16, 2), 10, 20, `cat "$SLUICE_RESUME_DIR/at"; `+strings.ReplaceAll(leaves, "10", "20"))
	second.Body.(*protocol.Work).Plan.Resume = first.Token
	b.run(second, job.Done) // its checkpoint comes from the store
}

// TestWhoFillsAMachineOfManyIsNotToBlame: others have room for it.
func TestWhoFillsAMachineOfManyIsNotToBlame(t *testing.T) {
	s := newStore(t)
	small := onSmallDisk(t)
	b := newBench(t, func(o *process.Options) {
		small(o)
		o.Store, o.Keep, o.Joined.Owner = &headStore{s, 1 << 16}, true, "cluster"
	})
	m := chained(numbered(1<<16, 1), 0, 10, `head -c 60000000 /dev/zero > "$SLUICE_OUTPUT_DIR/x"; sleep 1000`)
	b.do(m)
	r := b.ended(m.Token)
	if r.Outcome != job.NodeFailed || r.Progress != 0 || !strings.Contains(r.Detail, "this machine's data directory") {
		t.Errorf("%v: %+v", r.Outcome, r)
	}
	b.wantDiskFreed()
}

// awayStore is a head's store that does not answer.
type awayStore struct {
	headStore
	asked *atomic.Int64
}

func (s *awayStore) ReadName(context.Context, string) (store.Named, error) {
	s.asked.Add(1)
	return store.Named{}, errkind.Errorf(errkind.Unavailable, "it is away")
}

// TestAMachineByAnotherClock: its leases are by its head's clock, and end when that says so; programs read the machine's own.
func TestAMachineByAnotherClock(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			b := newBench(t, func(o *process.Options) { o.Now = func() time.Time { return time.Now().Add(ahead) } })
			m := lease(time.Minute, "sh", "-c", `echo $SLUICE_DEADLINE; cat $SLUICE_LEASE_FILE; sleep 1000`)
			w := m.Body.(*protocol.Work)
			w.Start, w.End = w.Start.Add(ahead), w.End.Add(ahead)
			b.do(m)
			b.next(protocol.Started)
			want := shim.Deadline(w.End.Add(-ahead))[:19] // but for milliseconds
			said := func() string { return shim.Tail(b.dir().Stdout(), 10, 1000) }
			b.await("the program to say its deadline", func() bool { return strings.Contains(said(), "\n") })
			if out := said(); strings.Count(out, want) != 2 {
				t.Errorf("ahead by %v: the program reads %s, want %s", ahead, out, want)
			}
			now := quantity.At(b.o.Now())
			b.do(protocol.Message{Kind: protocol.Deadline, Token: m.Token, Body: &protocol.Shift{End: now.Add(time.Second)}})
			r := b.exited(job.Stopped) // its time was cut
			if late := r.End.Sub(now.Add(time.Second)); late < -time.Second || late > patience {
				t.Errorf("ahead by %v: it ended at %v, %v after its end", ahead, r.End, late)
			}
		})
	}
}
