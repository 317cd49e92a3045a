package process_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
	shimtree "sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/survival"
	"sluice.dev/sluice/internal/edge/survival/cgroup"
	"sluice.dev/sluice/internal/edge/survival/sense"
	"sluice.dev/sluice/internal/edge/survival/tree"
)

// staged is a kind of survival on a machine whose memory is as the test has it.
type staged struct {
	survival.Survival
	mu     sync.Mutex
	memory survival.Memory
	refuse error
}

func (s *staged) Sense(_ time.Duration, m *survival.Memory) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	*m = s.memory
	return nil
}

// has sets what is used of 1000 MiB.
func (s *staged) has(used quantity.Amount) {
	s.mu.Lock()
	s.memory = survival.Memory{Capacity: 1000 << 20, Used: used << 20}
	s.mu.Unlock()
	s.Wake()
}

func (s *staged) Take(j survival.Subjob) (survival.Hold, error) {
	h, err := s.Survival.Take(j)
	if err == nil && s.refuse != nil {
		h = &refusing{h, s.refuse}
	}
	return h, err
}

// refusing can't suspend a subjob.
type refusing struct {
	survival.Hold
	why error
}

func (r *refusing) Suspend() error { return r.why }

// stage opens a kind; base is the control group of subjobs.
func stage(t *testing.T, open func(string) (survival.Survival, error), base string) *staged {
	t.Helper()
	k, err := open(base)
	if err != nil {
		t.Fatal(err)
	}
	s := &staged{Survival: k}
	s.has(100)
	return s
}

// frozen runs a test over every kind that works here. open makes another executor's.
func frozen(t *testing.T, test func(t *testing.T, change func(*process.Options))) {
	kinds := map[string]func(*process.Options){
		"tree, best": func(o *process.Options) { o.Survival = stage(t, tree.Open, "") },
		"tree only":  func(o *process.Options) { o.Survival, o.Isolation = stage(t, tree.Open, ""), treeOnly() },
	}
	if base, _, _ := shimtree.GroupBase(); base != "" {
		kinds["cgroup"] = func(o *process.Options) { o.Survival = stage(t, cgroup.Open, base) }
	}
	for name, change := range kinds {
		t.Run(name, func(t *testing.T) { test(t, change) })
	}
}

// again opens another executor over the same data directory, which is closed with the test.
func (b *bench) again(change func(*process.Options)) []executor.Found {
	b.Helper()
	if err := b.ex.Close(); err != nil {
		b.Fatal(err)
	}
	change(&b.o)
	return b.open()
}

// word is the next message of a kind; what was said of the memory before is passed over.
func (b *bench) word(k protocol.Kind) protocol.Message {
	b.Helper()
	for until := time.After(patience); ; {
		select {
		case m := <-b.said:
			if m.Kind == k {
				return m
			}
			if m.Kind != protocol.Pressure {
				b.Fatalf("message kind %d (%+v), want kind %d", m.Kind, m, k)
			}
		case <-until:
			b.Fatalf("no message of kind %d; supervisor says: %s", k, shim.Tail(b.dir().Log(), 20, 4096))
		}
	}
}

func (b *bench) tell(k protocol.Kind, body protocol.Body) {
	b.do(protocol.Message{Kind: k, Token: token, Job: "j", Body: body})
}

// suspend suspends the subjob.
func (b *bench) suspend() {
	b.Helper()
	b.tell(protocol.Suspend, &protocol.Reason{Text: "short"})
	if s := b.word(protocol.Suspended).Body.(*protocol.Stillness); !s.Still || s.Refused {
		b.Fatalf("told to suspend, it says %+v", s)
	}
}

// suspended reports whether the subjob's processes are: each was stopped, or waits in the kernel and stops on its way back.
func (b *bench) suspended() bool {
	b.Helper()
	note, err := b.dir().ReadNote()
	if err != nil {
		b.Fatal(err)
	}
	if shimtree.Group(note.Cgroup).Frozen() {
		return true
	}
	w := sense.NewWalker(0)
	all := slices.Clone(w.Below(note.Init))
	for i := range all {
		if !w.Stopped(&all[i]) {
			return false
		}
	}
	return slices.ContainsFunc(all, func(p sense.Process) bool { return p.Stopped() })
}

// begin starts the program that yields when it is asked to, and waits until it heeds that.
func (b *bench) begin(m protocol.Message) {
	b.Helper()
	b.do(m)
	b.word(protocol.Started)
	b.await("it heeds signals", func() bool {
		p, ok := b.dir().ReadProgress()
		return ok && p.Progress == 5
	})
}

// TestASubjobIsSuspendedAndResumed, and is told so; an order that comes twice is carried out once.
func TestASubjobIsSuspendedAndResumed(t *testing.T) {
	frozen(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		b.begin(polite(lease(time.Hour, self(t, "polite")...)))
		for n := range int64(2) {
			for range 2 {
				b.suspend()
				b.await("it is suspended", b.suspended)
			}
			b.await("it is told", func() bool {
				said, ok := readNotice(t, b.dir().Notice())
				return ok && said.Kind == executor.NoticeSuspended && said.Why == "short" && said.Sequence == 2*n+1
			})
			for range 2 {
				b.tell(protocol.Resume, nil)
				if s := b.word(protocol.Suspended).Body.(*protocol.Stillness); *s != (protocol.Stillness{}) {
					t.Fatalf("told to go on it says %+v", s)
				}
				b.await("it goes on", func() bool { return !b.suspended() })
			}
			b.await("it is told", func() bool {
				said, ok := readNotice(t, b.dir().Notice())
				return ok && said.Kind == executor.NoticeResumed && said.Sequence == 2*n+2
			})
		}
		b.tell(protocol.Stop, &protocol.Halt{Text: "drained"})
		if r := *b.word(protocol.Exited).Body.(*protocol.Conclusion).Result; r.Outcome != job.Yielded || r.Progress != 5 {
			t.Errorf("%+v", r)
		}
		b.tell(protocol.Resume, nil)
		b.settle(true, job.Range{To: 5})
	})
}

// TestASuspendedSubjobEndsInOrder: asked to end it goes on, and leaves what it has; its deadline is no other thing; and where there is no
// grace there is none.
func TestASuspendedSubjobEndsInOrder(t *testing.T) {
	for _, c := range []struct {
		name string
		word protocol.Kind
		body protocol.Body
		want job.Outcome
	}{
		{"asked", protocol.Stop, &protocol.Halt{Text: "short", Short: true}, job.Yielded},
		{"at once", protocol.Stop, &protocol.Halt{Text: "short", Short: true, Now: true}, job.Stopped},
		{"at its deadline", protocol.Deadline, &protocol.Shift{End: quantity.At(time.Now()).Add(time.Hour), Range: job.Range{To: 10}},
			job.Yielded},
	} {
		t.Run(c.name, func(t *testing.T) {
			frozen(t, func(t *testing.T, change func(*process.Options)) {
				b := newBench(t, change)
				m := lease(3*time.Hour, self(t, "polite")...)
				m.Body.(*protocol.Work).Spec.Launch.Grace = time.Hour
				b.begin(m)
				b.suspend()
				b.tell(c.word, c.body)
				r := *b.word(protocol.Exited).Body.(*protocol.Conclusion).Result
				if r.Outcome != c.want || r.Progress != 5 {
					t.Errorf("%+v, want outcome %v", r, c.want)
				}
			})
		})
	}
}

// TestASubjobEndsWhileSuspended is over like any other, and nothing asks after it.
func TestASubjobEndsWhileSuspended(t *testing.T) {
	frozen(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		b.begin(lease(time.Hour, self(t, "polite")...))
		b.suspend()
		note, err := b.dir().ReadNote()
		if err != nil {
			t.Fatal(err)
		}
		kill(t, note.PID)
		if r := *b.word(protocol.Exited).Body.(*protocol.Conclusion).Result; r.Outcome != job.Lost {
			t.Errorf("%+v", r)
		}
		b.tell(protocol.Resume, nil)
		b.tell(protocol.Suspend, &protocol.Reason{})
		b.settle(false, job.Range{})
	})
}

// TestARestartedDaemonFindsSuspendedSubjobs: one that can says so, and resumes it when its node says so; one that looks after no
// memory any more resumes it by itself.
func TestARestartedDaemonFindsSuspendedSubjobs(t *testing.T) {
	frozen(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		b.begin(lease(time.Hour, self(t, "polite")...))
		b.suspend()
		if found := b.again(change); len(found) != 1 || !found[0].Alive || !found[0].Still {
			t.Fatalf("found %+v", found)
		}
		if !b.suspended() {
			t.Fatal("to look has made it go on")
		}
		b.tell(protocol.Resume, nil)
		if s := b.word(protocol.Suspended).Body.(*protocol.Stillness); s.Still {
			t.Errorf("it says %+v", s)
		}
		b.await("it goes on", func() bool { return !b.suspended() })
		if found := b.again(change); found[0].Still {
			t.Error("a running subjob was found suspended")
		}
		b.suspend()
		if found := b.again(func(o *process.Options) { o.Survival = nil }); found[0].Still {
			t.Error("nobody watches the memory, and a subjob is reported suspended")
		}
		b.await("it goes on", func() bool { return !b.suspended() })
	})
}

// observing is a kind that can only look on.
type observing struct{ *staged }

func (o observing) Capability() survival.Capability { return survival.Capability{Kind: "observing"} }

func (o observing) Take(j survival.Subjob) (survival.Hold, error) {
	h, err := o.staged.Take(j)
	if err == nil {
		h = &lookingOn{h}
	}
	return h, err
}

type lookingOn struct{ survival.Hold }

var errLooksOn = errkind.Errorf(errkind.Unsupported, "nothing can be stopped here")

func (*lookingOn) Suspend() error { return errLooksOn }
func (*lookingOn) Resume() error  { return errLooksOn }

// TestWhoStoppedItselfIsNotFoundSuspended: where nobody can resume it nobody is asked to, again and again; what was suspended goes
// on.
func TestWhoStoppedItselfIsNotFoundSuspended(t *testing.T) {
	observe := func(o *process.Options) { o.Survival = observing{stage(t, tree.Open, "")} }
	t.Run("by its own hand", func(t *testing.T) {
		b := newBench(t, observe)
		b.do(lease(time.Hour, "/bin/sh", "-c", "kill -STOP $$; sleep 600"))
		b.word(protocol.Started)
		b.await("it stops itself", b.suspended)
		if found := b.again(observe); len(found) != 1 || found[0].Still {
			t.Errorf("found %+v", found)
		}
		if !b.suspended() {
			t.Error("it was made to go on")
		}
	})
	t.Run("by an earlier boot", func(t *testing.T) {
		b := newBench(t, func(o *process.Options) { o.Survival = stage(t, tree.Open, "") })
		b.begin(lease(time.Hour, self(t, "polite")...))
		b.suspend()
		if found := b.again(observe); len(found) != 1 || found[0].Still {
			t.Errorf("found %+v", found)
		}
		b.await("it goes on", func() bool { return !b.suspended() })
	})
}

// TestTheNumberOfAnInitMayBeAnothers: a tree that hangs below another process of the same number is not touched.
func TestTheNumberOfAnInitMayBeAnothers(t *testing.T) {
	b := newBench(t, func(o *process.Options) { o.Survival, o.Isolation = stage(t, tree.Open, ""), treeOnly() })
	b.begin(lease(time.Hour, self(t, "polite")...))
	b.suspend()
	stranger := exec.Command("/bin/sh", "-c", "sleep 600 & kill -STOP $!; echo; wait")
	out, err := stranger.StdoutPipe()
	if err == nil {
		err = stranger.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, m := range shimtree.Below(stranger.Process.Pid) {
			kill(t, m.PID)
		}
		_ = stranger.Wait()
	})
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	note, err := b.dir().ReadNote()
	if err != nil {
		t.Fatal(err)
	}
	note.Init, note.InitStarted = stranger.Process.Pid, note.InitStarted-1
	line, err := json.Marshal(note)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(b.dir().Note())
	if err == nil {
		err = os.WriteFile(b.dir().Note(), slices.Concat(before, line, []byte("\n")), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if found := b.again(func(o *process.Options) { o.Survival = nil }); found[0].Still {
		t.Error("nobody watches the memory, and a subjob is reported suspended")
	}
	if below := shimtree.Below(stranger.Process.Pid); len(below) != 1 || len(shimtree.Stopped(below)) != 1 {
		t.Errorf("a stranger's processes were made to go on: %+v", below)
	}
}

// TestASupervisorThatHearsNothingMoreLetsGo: its daemon is dead, and does not come back.
func TestASupervisorThatHearsNothingMoreLetsGo(t *testing.T) {
	frozen(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, func(o *process.Options) {
			change(o)
			o.Airlock = airlock.Config{Timer: time.Second, Yield: time.Millisecond}
		})
		b.begin(lease(time.Hour, self(t, "polite")...))
		b.suspend()
		if err := b.ex.Close(); err != nil {
			t.Fatal(err)
		}
		b.await("it goes on", func() bool { return !b.suspended() })
		b.await("it is told", func() bool {
			said, ok := readNotice(t, b.dir().Notice())
			return ok && said.Kind == executor.NoticeResumed
		})
	})
}

// TestWhoCannotBeSuspendedGoesOn: the node hears it.
func TestWhoCannotBeSuspendedGoesOn(t *testing.T) {
	for _, err := range []error{errkind.Errorf(errkind.Denied, "not permitted"), errors.New("broken")} {
		b := newBenchOf(t, func(o *process.Options) {
			s := stage(t, tree.Open, "")
			s.refuse, o.Survival = err, s
		})
		b.begin(lease(time.Hour, self(t, "polite")...))
		b.tell(protocol.Suspend, &protocol.Reason{})
		if s := b.word(protocol.Suspended).Body.(*protocol.Stillness); s.Still || !s.Refused {
			t.Errorf("%v: it says %+v", err, s)
		}
		if b.suspended() {
			t.Errorf("%v: it is suspended", err)
		}
		// The intent to suspend is noted first: a reader at that moment is told of the resume, too.
		for until := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			n, ok := readNotice(t, b.dir().Notice())
			if !ok || n.Kind == executor.NoticeResumed {
				break
			}
			if time.Now().After(until) {
				t.Fatalf("%v: its program is told %+v for good", err, n)
			}
		}
	}
}

// TestWhatIsSaidOfTheMemory: at once what it is like, over the calm line again and again with every subjob that runs, and little where
// there is plenty.
func TestWhatIsSaidOfTheMemory(t *testing.T) {
	var s *staged
	b := newBench(t, func(o *process.Options) {
		s = stage(t, tree.Open, "")
		o.Survival = s
	})
	strain := func() *protocol.Strain { return b.word(protocol.Pressure).Body.(*protocol.Strain) }
	if first := strain(); first.Used != 100<<20 || first.Capacity != 1000<<20 || len(first.Uses) != 0 {
		t.Errorf("at first it says %+v", first)
	}
	other := lease(time.Hour, self(t, "polite")...)
	other.Token.Seq = 2
	b.do(other)
	b.word(protocol.Started)
	b.begin(lease(time.Hour, self(t, "hogs")...))
	s.has(930)
	tokens := func(x *protocol.Strain) (list []job.Token) {
		for _, u := range x.Uses {
			list = append(list, u.Token)
		}
		return list
	}
	want := []job.Token{token, {Epoch: 1, Seq: 2}}
	var x *protocol.Strain
	for until := time.Now().Add(patience); ; {
		if x = strain(); x.Used == 930<<20 && slices.Equal(tokens(x), want) && x.Uses[0].Resident >= 32<<20 {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("it says %+v", x)
		}
	}
	if x.Uses[0].Resident > 512<<20 || x.Uses[1].Resident >= x.Uses[0].Resident {
		t.Errorf("it says %+v", x.Uses)
	}
	s.has(100)
	for until := time.Now().Add(patience); strain().Used != 100<<20; {
		if time.Now().After(until) {
			t.Fatal("it is not said that there is plenty again")
		}
	}
}

// newBenchOf is a bench for one of several in a test.
func newBenchOf(t *testing.T, change func(*process.Options)) (b *bench) {
	t.Helper()
	b = &bench{T: t, o: process.Options{DataDir: filepath.Join(t.TempDir(), "data"), ShimPath: self(t)[0]}}
	change(&b.o)
	b.open()
	t.Cleanup(func() {
		_ = b.ex.Close()
		killAll(b.o.DataDir)
	})
	return b
}

// TestWhatHasTheNumberOfAnInitThatIsGoneIsLeftAlone: its processes are another's, who may have stopped them.
func TestWhatHasTheNumberOfAnInitThatIsGoneIsLeftAlone(t *testing.T) {
	t.Parallel()
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	me, ok := shimtree.Look(os.Getpid())
	if !ok {
		t.Fatal("this process is not there")
	}
	if len(process.Below(shim.Note{Init: me.PID, InitStarted: me.Started})) == 0 {
		t.Error("of one that lives nothing is found")
	}
	if all := process.Below(shim.Note{Init: me.PID, InitStarted: me.Started - 1}); len(all) != 0 {
		t.Errorf("of one that is gone there are %d", len(all))
	}
}
