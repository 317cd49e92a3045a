package process_test

import (
	"encoding/json"
	"os"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/process"
	shimtree "sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/survival/cgroup"
	"sluice.dev/sluice/internal/edge/survival/tree"
)

// freeze suspends the subjob without telling anybody, as a daemon does that is killed just then.
func (b *bench) freeze() {
	b.Helper()
	note, err := b.dir().ReadNote()
	if err != nil {
		b.Fatal(err)
	}
	if note.Cgroup != "" {
		if err := os.WriteFile(note.Cgroup+"/cgroup.freeze", []byte("1"), 0); err != nil {
			b.Fatal(err)
		}
		return
	}
	for _, m := range shimtree.Below(note.Init) {
		if err := m.Signal(syscall.SIGSTOP); err != nil {
			b.Fatal(err)
		}
	}
}

// TestASuspendedSubjobWithoutAWatcherResumes: its supervisor resumes it, unless a daemon has noted that it suspended it.
func TestASuspendedSubjobWithoutAWatcherResumes(t *testing.T) {
	frozen(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		b.begin(lease(time.Hour, self(t, "polite")...))
		b.freeze()
		b.await("it is suspended", b.suspended)
		b.await("it goes on", func() bool { return !b.suspended() })
		b.suspend()
		for until := time.Now().Add(5 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
			if !b.suspended() {
				t.Fatal("its supervisor has it go on, and it was noted that it is to be suspended")
			}
		}
	})
}

// TestAnotherKindThawsWhatTheFirstHadFrozen, whichever of the two comes first.
func TestAnotherKindThawsWhatTheFirstHadFrozen(t *testing.T) {
	base, _, _ := shimtree.GroupBase()
	if base == "" {
		t.Skip("no control group of version 2 can be made here: there is one kind alone")
	}
	groups := func(o *process.Options) { o.Survival = stage(t, cgroup.Open, base) }
	signals := func(o *process.Options) { o.Survival = stage(t, tree.Open, "") }
	for name, c := range map[string][2]func(*process.Options){"groups, then signals": {groups, signals},
		"signals, then groups": {signals, groups}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c[0])
			b.begin(lease(time.Hour, self(t, "polite")...))
			b.suspend()
			if found := b.again(c[1]); len(found) != 1 || !found[0].Alive || !found[0].Still {
				t.Fatalf("found %+v", found)
			}
			b.tell(protocol.Resume, nil)
			if s := b.word(protocol.Suspended).Body.(*protocol.Stillness); s.Still {
				t.Errorf("it says %+v", s)
			}
			if b.suspended() {
				t.Error("it is said to go on, and is suspended")
			}
			b.suspend()
			b.tell(protocol.Resume, nil)
			b.word(protocol.Suspended)
			b.await("it goes on", func() bool { return !b.suspended() })
		})
	}
}

// TestASupervisorThatWouldNotThawHasNothingSuspended: it is of an older version, and says nothing of it in its note.
func TestASupervisorThatWouldNotThawHasNothingSuspended(t *testing.T) {
	frozen(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		b.begin(lease(time.Hour, self(t, "polite")...))
		note, err := b.dir().ReadNote()
		if err != nil || !note.Thaws {
			t.Fatalf("%+v, %v", note, err)
		}
		note.Thaws = false
		line, err := json.Marshal(note)
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(b.dir().Note(), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(append(line, '\n')); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		b.again(change)
		b.tell(protocol.Suspend, &protocol.Reason{})
		if s := b.word(protocol.Suspended).Body.(*protocol.Stillness); !s.Refused || s.Still {
			t.Errorf("it says %+v", s)
		}
		if b.suspended() {
			t.Error("it is suspended")
		}
	})
}
