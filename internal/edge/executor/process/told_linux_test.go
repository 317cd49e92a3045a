package process_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/process/folders"
)

// told is what the events file says of the subjob, in its order: "start", or "end" with the outcome.
func (b *bench) told() (all []string) {
	b.Helper()
	for _, e := range b.events() {
		if e.Token == token.String() {
			all = append(all, strings.TrimSuffix(e.What+" "+e.Outcome, " "))
		}
	}
	return all
}

func (b *bench) wantTold(want ...string) {
	b.Helper()
	if got := b.told(); !slices.Equal(got, want) {
		b.Errorf("the events file was told %q, want %q", got, want)
	}
}

// running starts a subjob that ends when it is asked to, and says which process supervises it.
func (b *bench) running() (supervisor int) {
	b.Helper()
	b.do(polite(lease(time.Minute, self(b, "polite")...)))
	b.next(protocol.Started)
	b.await("it heeds signals", func() bool { // before that SIGTERM ends it
		p, ok := b.dir().ReadProgress()
		return ok && p.Progress == 5
	})
	note, err := b.dir().ReadNote()
	if err != nil {
		b.Fatal(err)
	}
	return note.PID
}

func (b *bench) stop() {
	b.do(protocol.Message{Kind: protocol.Stop, Token: token, Body: &protocol.Halt{}})
}

// TestASupervisorIsKilledBeforeItsResult: what it would have said of the end is not what the executor says of it.
func TestASupervisorIsKilledBeforeItsResult(t *testing.T) {
	b := newBench(t, nil)
	supervisor := b.running()
	stored := filepath.Join(b.o.DataDir, "stored")
	must(os.WriteFile(filepath.Join(b.dir().Output(), lingers), []byte(stored), 0o600))
	b.stop()
	b.await("the supervisor to store what is left", func() bool {
		note, err := b.dir().ReadNote()
		return err == nil && note.Gone != 0
	})
	kill(t, supervisor)
	must(os.WriteFile(stored, nil, 0o600))
	b.exited(job.NodeFailed) // nothing of its program was there to kill it
	b.wantTold("start", "end node-failed")
}

// fill makes a pipe that takes no more, at a path where nothing is.
func fill(t *testing.T, path string) {
	t.Helper()
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	for err == nil {
		_, err = unix.Write(fd, make([]byte, 4096))
	}
	if !errors.Is(err, unix.EAGAIN) {
		t.Fatal(err)
	}
}

// TestASupervisorIsKilledBehindItsResult, before it has told the events file, which for as long is a pipe that is full.
func TestASupervisorIsKilledBehindItsResult(t *testing.T) {
	b := newBench(t, nil)
	supervisor := b.running()
	events := folders.Events(b.o.DataDir)
	if err := os.Rename(events, events+".aside"); err != nil {
		t.Fatal(err)
	}
	fill(t, events)
	b.stop()
	b.await("the result", func() bool { _, err := b.dir().ReadResult(); return err == nil })
	if err := b.ex.Close(); err != nil {
		t.Fatal(err)
	}
	kill(t, supervisor)
	if err := os.Rename(events+".aside", events); err != nil {
		t.Fatal(err)
	}
	b.wantTold("start")
	for range 2 { // what is told once is not told again
		if found := b.open(); len(found) != 1 || found[0].Result == nil || found[0].Result.Outcome != job.Yielded {
			t.Fatalf("found %+v, want the result that the supervisor wrote", found)
		}
		b.wantTold("start", "end yielded")
		if err := b.ex.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestASupervisorIsKilledBehindTheStart, before it has noted it: what was told to have started is told to have ended.
func TestASupervisorIsKilledBehindTheStart(t *testing.T) {
	b := newBench(t, nil)
	supervisor := b.running()
	if err := b.ex.Close(); err != nil {
		t.Fatal(err)
	}
	kill(t, supervisor)
	note, err := os.ReadFile(b.dir().Note())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.dir().Note(), note[:bytes.IndexByte(note, '\n')+1], 0o600); err != nil {
		t.Fatal(err)
	}
	if found := b.open(); len(found) != 1 || found[0].Result == nil || found[0].Result.Outcome != job.NodeFailed {
		t.Fatalf("found %+v, want that its node failed", found)
	}
	b.wantTold("start", "end node-failed")
}

// TestTheEndIsToldBehindARotation: the start is in the file of before, and there is no other yet.
func TestTheEndIsToldBehindARotation(t *testing.T) {
	b := newBench(t, nil)
	supervisor := b.running()
	old := folders.OldEvents(b.o.DataDir)
	if err := os.Rename(folders.Events(b.o.DataDir), old); err != nil {
		t.Fatal(err)
	}
	kill(t, supervisor)
	b.exited(job.Lost)
	b.wantTold("end lost")
	if err := os.Rename(folders.Events(b.o.DataDir), old); err != nil { // it stands in the file of before now
		t.Fatal(err)
	}
	if err := b.ex.Close(); err != nil {
		t.Fatal(err)
	}
	b.open()
	if _, err := os.Stat(folders.Events(b.o.DataDir)); err == nil {
		t.Errorf("%s was told anew: %q", filepath.Base(folders.Events(b.o.DataDir)), b.told())
	}
}

// TestTheEndIsToldOfWhatTheNoteSaysHasStarted, where the file that had its start is gone; and with the units that the subjob was given
// later. What neither of them says has started is not told to have ended.
func TestTheEndIsToldOfWhatTheNoteSaysHasStarted(t *testing.T) {
	for name, started := range map[string]bool{"started": true, "not started": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			supervisor := b.running()
			b.do(protocol.Message{Kind: protocol.Deadline, Token: token, Body: &protocol.Shift{End: quantity.At(time.Now().Add(time.Hour)),
				Range: job.Range{From: 0, To: 20}}})
			b.await("the new end", func() bool { c, err := b.dir().ReadControl(); return err == nil && c.Range.To == 20 })
			if err := b.ex.Close(); err != nil {
				t.Fatal(err)
			}
			kill(t, supervisor)
			if !started {
				note, err := os.ReadFile(b.dir().Note())
				if err == nil {
					err = os.WriteFile(b.dir().Note(), note[:bytes.IndexByte(note, '\n')+1], 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Remove(folders.Events(b.o.DataDir)); err != nil {
				t.Fatal(err)
			}
			if found := b.open(); len(found) != 1 || found[0].Result == nil || found[0].Result.Outcome != job.NodeFailed {
				t.Fatalf("found %+v, want that its node failed", found)
			}
			if !started {
				if _, err := os.Stat(folders.Events(b.o.DataDir)); err == nil {
					t.Errorf("it was told %q", b.told())
				}
				return
			}
			b.wantTold("end node-failed")
			if e := b.events()[0]; e.From != 0 || e.To != 20 {
				t.Errorf("it is told of units %d to %d, want 0 to 20", e.From, e.To)
			}
		})
	}
}

// TestASupervisorCanNotTellTheEnd: there is no room for the line when the subjob ends, and none when the executor finds the result. It
// tells the end before the run directory is put away.
func TestASupervisorCanNotTellTheEnd(t *testing.T) {
	b := newBench(t, nil)
	b.running()
	events := folders.Events(b.o.DataDir)
	if err := os.Rename(events, events+".aside"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(events, 0o700); err != nil { // where no line can be appended
		t.Fatal(err)
	}
	b.stop()
	b.exited(job.Yielded)
	if err := errors.Join(os.Remove(events), os.Rename(events+".aside", events)); err != nil {
		t.Fatal(err)
	}
	b.wantTold("start")
	b.settle(false, job.Range{})
	b.wantTold("start", "end yielded")
}

// TestTheHostEndsTheMachine: a host that ends a machine tells each process, the supervisor too. What ends of that has not failed, and is
// not done unless it says so; what ends on a machine that goes on is judged as ever.
func TestTheHostEndsTheMachine(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		for _, c := range []struct {
			name, command string
			told          bool
			want          job.Outcome
		}{
			{"died of it", "kill -TERM $$", true, job.Stopped},
			{"handled it", "exit 143", true, job.Stopped},
			{"went on without its child", "exit 0", true, job.Stopped},
			{"was done", `echo '{"progress": 10}' >$SLUICE_PROGRESS_FILE; exit 0`, true, job.Done},
			{"yielded", "exit 85", true, job.Yielded},
			{"died of itself", "kill -TERM $$", false, job.ExitFailed},
			{"is done by itself", "exit 0", false, job.Done},
		} {
			t.Run(c.name, func(t *testing.T) {
				b := newBench(t, change)
				b.do(lease(time.Minute, "sh", "-c", "until [ -e $SLUICE_OUTPUT_DIR/go ]; do sleep 0.02; done; "+c.command))
				b.next(protocol.Started)
				note, err := b.dir().ReadNote()
				if err != nil {
					t.Fatal(err)
				}
				if c.told {
					must(syscall.Kill(note.PID, syscall.SIGTERM))
				}
				must(os.WriteFile(filepath.Join(b.dir().Output(), "go"), nil, 0o600))
				if r := b.next(protocol.Exited).Body.(*protocol.Conclusion).Result; r.Outcome != c.want {
					t.Errorf("it is %v, want %v: %+v", r.Outcome, c.want, r)
				}
			})
		}
	})
}
