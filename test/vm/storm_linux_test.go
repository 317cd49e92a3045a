package vm

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/survival"
	"sluice.dev/sluice/internal/edge/survival/cgroup"
)

// lived is a real node over the real executor, with a zone that takes every grant and every result.
type lived struct {
	*testing.T
	ex *process.Executor
	in chan protocol.Message

	mu    sync.Mutex
	n     *node.Node
	works map[uint64]*protocol.Work // by ask
	runs  map[uint64]job.Token
	over  []job.Outcome
}

var (
	nodeAt     = protocol.Address{Role: protocol.Node, ID: "n"}
	executorAt = protocol.Address{Role: protocol.Executor, ID: "n"}
	zoneAt     = protocol.Address{Role: protocol.Zone, ID: "z"}
)

// live brings a node up with two slices.
func live(t *testing.T, kind survival.Survival, lines airlock.Config, watched bool) *lived {
	t.Helper()
	data := t.TempDir()
	l := &lived{T: t, in: make(chan protocol.Message, 1024), works: map[uint64]*protocol.Work{}, runs: map[uint64]job.Token{}}
	var err error
	l.ex, err = process.New(process.Options{DataDir: data, ShimPath: "/init", Survival: kind, Airlock: lines, Watch: watched,
		Deliver: func(m protocol.Message) {
			m.From, m.To = executorAt, nodeAt
			l.in <- m
		}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.ex.Find(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.n = node.New(node.Config{ID: "n", Zone: "z", Airlock: lines})
	stock := &protocol.Stock{}
	for _, id := range []job.SliceID{"a", "b"} {
		stock.Slices = append(stock.Slices, protocol.Slice{ID: id, Model: "sim", Profile: "1g", Capacity: trp.Vector{limit}, Speed: 1000,
			Simulated: true})
	}
	var out protocol.Out
	l.n.Recover(quantity.At(time.Now()), &out)
	l.carryOut(&out)
	l.in <- protocol.Message{Kind: protocol.Inventory, From: executorAt, To: nodeAt, Body: stock}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticks := time.NewTicker(20 * time.Millisecond)
		defer ticks.Stop()
		for {
			m := protocol.Message{Kind: protocol.Tick}
			select {
			case <-stop:
				return
			case m = <-l.in:
			case <-ticks.C:
			}
			l.step(m)
		}
	}()
	t.Cleanup(func() {
		if err := l.ex.Close(); err != nil {
			t.Error(err)
		}
		close(stop)
		<-stopped
	})
	return l
}

func (l *lived) step(m protocol.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Kind == protocol.Exited {
		l.over = append(l.over, m.Body.(*protocol.Conclusion).Result.Outcome)
	}
	var out protocol.Out
	l.n.Step(quantity.At(time.Now()), m, &out)
	l.carryOut(&out)
}

// carryOut gives the executor what is for it, and answers for the zone.
func (l *lived) carryOut(out *protocol.Out) {
	for _, m := range out.Effects {
		switch {
		case m.To.Role == protocol.Executor:
			m.From, m.To = nodeAt, executorAt
			l.ex.Do(m, journal.Position{Seq: 1})
		case m.Kind == protocol.Granted:
			g := m.Body.(*protocol.Grant)
			l.runs[g.Ask] = m.Token
			l.in <- protocol.Message{Kind: protocol.Redeem, From: zoneAt, To: nodeAt, Token: m.Token, Job: m.Job, Epoch: 1,
				Body: l.works[g.Ask]}
		case m.Kind == protocol.Refused:
			l.Errorf("refused: %s", m.Body.(*protocol.Refusal).Text)
		case m.Kind == protocol.Result:
			r := m.Body.(*protocol.Conclusion).Result
			l.in <- protocol.Message{Kind: protocol.ResultAck, From: zoneAt, To: nodeAt, Token: m.Token, Job: m.Job,
				Body: &protocol.Acknowledgement{Range: job.Range{To: r.Progress}}}
		}
	}
}

// run starts a program that holds so many MiB on a slice, and returns its control group once it has them.
func (l *lived) run(ask uint64, slice job.SliceID, priority int32, mib string) (group string) {
	l.Helper()
	now := quantity.At(time.Now())
	w := &protocol.Work{Placement: protocol.Placement{Slice: slice, Range: job.Range{To: 10}, Start: now, End: now.Add(time.Hour),
		Demand: trp.Vector{limit}}, Rank: protocol.Rank{Priority: priority}, Spec: &job.Spec{Name: "j", Kind: job.Items, Total: 10, Grid: 1,
		Launch: job.Launch{Command: []string{"/init", "program", "holds", mib}, Grace: 300 * time.Millisecond}}}
	l.mu.Lock()
	l.works[ask] = w
	l.mu.Unlock()
	l.in <- protocol.Message{Kind: protocol.Ask, From: zoneAt, To: nodeAt, Job: "j", Epoch: 1,
		Body: &protocol.Asking{Ask: ask, Placement: protocol.Placement{Slice: slice, Start: w.Start, End: w.End, Demand: w.Demand}}}
	l.await("a subjob of "+mib+" MiB runs", func() bool {
		l.mu.Lock()
		token, known := l.runs[ask]
		l.mu.Unlock()
		if !known {
			return false
		}
		found, _ := filepath.Glob(filepath.Join(service, "sluice-"+token.String()+"-*"))
		if len(found) != 1 {
			return false
		}
		group = found[0]
		return number(l, group, "memory.current") > 36<<20
	})
	return group
}

func (l *lived) await(what string, is func() bool) {
	l.Helper()
	for until := time.Now().Add(30 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			l.mu.Lock()
			defer l.mu.Unlock()
			a := l.n.Airlock(quantity.At(time.Now()))
			for _, s := range a.Steps[max(0, len(a.Steps)-8):] {
				l.Logf("%v: %s %s: %s", time.Since(s.At.Time()).Round(time.Millisecond), s.Step, s.Token, s.Why)
			}
			l.Logf("%+v", a.Strain)
			l.Fatalf("never came: %s; over are %v", what, l.over)
		}
	}
}

// number is what a control group's file says.
func number(t testing.TB, group, file string) (v int64) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(group, file))
	if err == nil {
		_, err = fmt.Sscan(string(data), &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func frozen(group string) bool {
	data, err := os.ReadFile(filepath.Join(group, "cgroup.events"))
	return err == nil && strings.Contains(string(data), "frozen 1")
}

// whenFrozen is when a group was, as the kernel says it.
func whenFrozen(group string) (<-chan time.Time, error) {
	fd, err := unix.Open(filepath.Join(group, "cgroup.events"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	at := make(chan time.Time, 1)
	go func() {
		defer func() { _ = unix.Close(fd) }()
		var buf [256]byte
		for until := time.Now().Add(30 * time.Second); time.Now().Before(until); {
			if n, _ := unix.Pread(fd, buf[:], 0); strings.Contains(string(buf[:max(0, n)]), "frozen 1") {
				at <- time.Now()
				return
			}
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLPRI}}, 100)
		}
	}()
	return at, nil
}

// TestGuestOutlivesStorms: memory runs out again and again on a machine with swap, by a program that is none of ours. The node decides, or
// the watcher where one lives: each time the lowest is frozen, what it has is moved out, and when there is room it goes on; whoever
// outranks it is suspended only where it is, and nobody is ended.
func TestGuestOutlivesStorms(t *testing.T) {
	guest(t)
	for _, watched := range []bool{false, true} {
		t.Run(map[bool]string{false: "the node decides", true: "the watcher decides"}[watched], func(t *testing.T) { storms(t, watched) })
	}
}

func storms(t *testing.T, watched bool) {
	const step, beyond = 1 << 20, 6 << 20
	times := 2
	if n, err := strconv.Atoi(os.Getenv(stormsVar)); err == nil {
		times = n
	}
	swap(t)
	kind, err := cgroup.Open("")
	if err != nil {
		t.Fatal(err)
	}
	if c := kind.Capability(); c.Level != survival.Full {
		t.Fatalf("it can do %v", c)
	}
	sensor, err := cgroup.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sensor.Close() }()
	var m survival.Memory
	began := time.Now()
	sense := func() quantity.Amount {
		if err := sensor.Sense(time.Since(began), &m); err != nil {
			t.Fatal(err)
		}
		return m.Used
	}
	// Two subjobs of 40 MiB are below the calm line, a storm of 60 more is over the severe one, and without the lower of the two below
	// that again.
	base := sense() + 90<<20
	share := func(a quantity.Amount) int64 { return quantity.MulDiv(int64(a), 1000, int64(m.Capacity)) }
	lines := airlock.Config{Calm: share(base + 24<<20), Severe: share(base + 36<<20), Emergency: 1000, CoolDown: time.Millisecond,
		Entries: 255}
	l := live(t, kind, lines, watched)
	low, high := l.run(1, "a", 0, "40"), l.run(2, "b", 1, "40")
	severe := quantity.Amount(quantity.MulDiv(int64(m.Capacity), lines.Severe, 1000))
	var took []time.Duration
	moved, above := int64(0), 0
	for range times {
		time.Sleep(time.Duration(len(took)*7%60) * time.Millisecond) // at any time between two looks
		storm, err := unix.Mmap(-1, 0, 80<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			t.Fatal(err)
		}
		at, err := whenFrozen(low)
		if err != nil {
			t.Fatal(err)
		}
		var crossed time.Time
		for i, end := 0, len(storm); i < end; i += 4096 {
			storm[i] = 1
			if i%step == 0 && crossed.IsZero() && sense() >= severe {
				crossed = time.Now()
				end = min(end, i+beyond) // so far that it is still over the line when the next one looks
			}
		}
		if crossed.IsZero() {
			t.Fatalf("%d MiB are used with the storm, and the line is %d", sense()>>20, severe>>20)
		}
		select {
		case then := <-at:
			took = append(took, then.Sub(crossed))
		case <-time.After(30 * time.Second):
			l.await("the lowest is frozen", func() bool { return false })
		}
		l.await("its memory is moved out", func() bool { return number(t, low, "memory.swap.current") > 1<<20 }) // as much as makes it calm
		moved = max(moved, number(t, low, "memory.swap.current"))
		// The storm's growth counts too, so that both may be wanted; the higher goes on first.
		if frozen(high) {
			if above++; !frozen(low) && frozen(high) {
				t.Fatal("who outranks it is suspended, and it is not")
			}
		}
		if err := unix.Munmap(storm); err != nil {
			t.Fatal(err)
		}
		l.await("all goes on", func() bool { return !frozen(low) && !frozen(high) })
		l.await("it has its memory again", func() bool { return number(t, low, "memory.current") > 36<<20 })
	}
	l.mu.Lock()
	if len(l.over) > 0 {
		t.Errorf("ended are %v", l.over)
	}
	l.mu.Unlock()
	slices.Sort(took)
	t.Logf("from crossing the line to frozen 1: p50 %v, p99 %v of %d; %d MiB of 40 moved to swap at most; who ranks above was suspended "+
		"too %d times",
		took[len(took)/2], took[len(took)*99/100], len(took), moved>>20, above)
	for _, token := range l.runs {
		l.ex.Do(protocol.Message{Kind: protocol.Stop, From: nodeAt, To: executorAt, Token: token, Job: "j",
			Body: &protocol.Halt{Text: "done", Now: true}}, journal.Position{Seq: 1})
	}
	l.await("nothing runs", func() bool { return len(programs()) == 0 && len(groups()) == 0 })
}
