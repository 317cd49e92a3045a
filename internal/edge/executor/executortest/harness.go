// Package executortest is what every kind of executor must do, as tests. A kind hands over a Harness: how to open it
// over the same world again (a daemon's restart), and how to ask for a few simple programs. The suite must not know how
// a kind starts anything.
package executortest

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/journal"
)

// Program is what a subjob of the suite does. Every one is an items job of ten units.
type Program string

const (
	// Quick finishes its whole range within a second.
	Quick Program = "quick"
	// Polite reports half of its range complete as soon as it heeds SIGTERM, works until that comes, and then exits 85.
	Polite Program = "polite"
	// Stubborn reports half of its range complete as soon as it ignores SIGTERM, and never ends by itself.
	Stubborn Program = "stubborn"
	// Failing exits 3 within a second, with "it broke" as the last line of its stderr and nothing complete.
	Failing Program = "failing"
)

// Harness is one kind in one fresh world. Its executors report progress every 100 ms or more often.
type Harness struct {
	// Open makes an executor over the world, as at a daemon's start.
	Open func(deliver func(protocol.Message)) executor.Executor
	// Launch is how p is started.
	Launch func(p Program) job.Launch
	// Script is how a script of sh is started, for Hostile and Crowds.
	Script func(script string) job.Launch
	// Living counts the processes of a subjob, for Crowds.
	Living func(t job.Token) int
	// Notice is what the program of a subjob that is not settled reads, or could have read last, in its SLUICE_NOTICE_FILE; false if there
	// is none.
	Notice func(t job.Token) (executor.Notice, bool)
	// Fixed: what runs can't be given more time than it began with, nor be given back what was taken from it. The cases of that are left
	// out.
	Fixed bool
	// Attended: a supervisor's death is seen even while the executor is closed, as by a Pod's first process.
	Attended bool
	// Kill ends the supervisor of a running subjob as SIGKILL would.
	Kill func(t job.Token)
}

// Grace of every subjob of the suite.
const Grace = 300 * time.Millisecond

// Run runs the suite. With bubble every case runs in a testing/synctest bubble of its own.
func Run(t *testing.T, bubble bool, open func(t *testing.T) Harness) {
	for _, c := range cases {
		run := func(t *testing.T) {
			h := open(t)
			if c.later && h.Fixed {
				t.Log("left out: this kind's leases are fixed")
				return
			}
			c.run(newBench(t, h))
		}
		t.Run(c.name, func(t *testing.T) {
			if bubble {
				synctest.Test(t, run)
				return
			}
			t.Parallel()
			run(t)
		})
	}
}

// bench is a harness with the executor that is open now and what it has said.
type bench struct {
	*testing.T
	h    Harness
	ex   executor.Executor
	said chan protocol.Message
	// reached is the furthest progress reported.
	reached atomic.Int64
}

// patience bounds a wait for something that must come, on a machine on which everything else wants to run too.
const patience = time.Minute

var (
	nodeAddress = protocol.Address{Role: protocol.Node, ID: "n1"}
	execAddress = protocol.Address{Role: protocol.Executor, ID: "n1"}
	witness     = journal.Position{Seq: 7, Digest: [32]byte{1, 2, 3}}
	token       = job.Token{Epoch: 2, Seq: 5}
	units       = job.Range{From: 0, To: 10}
)

func newBench(t *testing.T, h Harness) *bench {
	b := &bench{T: t, h: h}
	b.open()
	t.Cleanup(func() { _ = b.ex.Close() })
	return b
}

func (b *bench) open() []executor.Found {
	b.Helper()
	said := make(chan protocol.Message, 256)
	b.said = said
	b.ex = b.h.Open(func(m protocol.Message) {
		if m.Kind == protocol.Report {
			b.reached.Store(max(b.reached.Load(), m.Body.(*protocol.Observation).Progress))
			return
		}
		said <- m
	})
	found, err := b.ex.Find(context.Background())
	if err != nil {
		b.Fatalf("Find: %v", err)
	}
	return found
}

// reopen is a restart of the daemon.
func (b *bench) reopen() []executor.Found {
	b.Helper()
	if err := b.ex.Close(); err != nil {
		b.Fatalf("Close: %v", err)
	}
	return b.open()
}

// lease makes a Start message for p whose lease ends after length.
func (b *bench) lease(p Program, length time.Duration) protocol.Message {
	now := quantity.At(time.Now())
	spec := &job.Spec{Name: "suite", Kind: job.Items, Total: units.To, Grid: 1, Parallelism: 1, Slices: 1, MaxFailures: 3,
		Launch: b.h.Launch(p)}
	spec.Launch.Grace = Grace
	return protocol.Message{
		Kind: protocol.Start, From: nodeAddress, To: execAddress, Token: token, Job: spec.Name,
		Body: &protocol.Work{Placement: protocol.Placement{Slice: "n1/sim/0", Range: units, Start: now, End: now.Add(length)}, Spec: spec},
	}
}

// polite makes a Start message for a program that ends when it is asked to, with a grace in which a busy machine lets it do so.
func (b *bench) polite(grace time.Duration) protocol.Message {
	m := b.lease(Polite, 10*time.Minute)
	m.Body.(*protocol.Work).Spec.Launch.Grace = grace
	return m
}

func (b *bench) do(m protocol.Message) { b.ex.Do(m, witness) }

// next waits for the next message, which must be of kind k and about the suite's token.
func (b *bench) next(k protocol.Kind) protocol.Message {
	b.Helper()
	select {
	case m := <-b.said:
		if m.Kind != k || m.Token != token {
			b.Fatalf("got message kind %d of %v (%+v, result %+v), want kind %d of %v", m.Kind, m.Token, m,
				m.Body.(*protocol.Conclusion).Result, k, token)
		}
		if m.To != nodeAddress || m.From != execAddress {
			b.Fatalf("message from %v to %v, want from %v to %v", m.From, m.To, execAddress, nodeAddress)
		}
		return m
	case <-time.After(patience):
		b.Fatalf("no message of kind %d within %v", k, patience)
	}
	panic("unreachable")
}

// exited waits for the result and checks what holds for every result.
func (b *bench) exited(want job.Outcome) job.Result {
	b.Helper()
	m := b.next(protocol.Exited)
	if m.Body.(*protocol.Conclusion).Result == nil {
		b.Fatal("Exited without a result")
	}
	r := *m.Body.(*protocol.Conclusion).Result
	if r.Outcome != want {
		b.Fatalf("outcome %v (%+v), want %v", r.Outcome, r, want)
	}
	if r.Progress < units.From || r.Progress > units.To {
		b.Errorf("progress %d outside %v", r.Progress, units)
	}
	if r.Start != 0 && r.End < r.Start {
		b.Errorf("ended at %d before it started at %d", r.End, r.Start)
	}
	return r
}

// silent checks that no message comes for a while.
func (b *bench) silent(d time.Duration) {
	b.Helper()
	select {
	case m := <-b.said:
		b.Fatalf("unexpected message kind %d: %+v, result %+v", m.Kind, m, m.Body.(*protocol.Conclusion).Result)
	case <-time.After(d):
	}
}

var cases = []struct {
	name string
	run  func(*bench)
	// later: the end of what runs is moved to a later moment.
	later bool
}{
	{"done counts up to the end", done, false},
	{"failure carries code and last words", failure, false},
	{"start is idempotent", startTwice, false},
	{"start after settle starts nothing", startAfterSettle, false},
	{"lease over before the start", tooLate, false},
	{"start waits for the lease", waits, false},
	{"stop twice", stopTwice, false},
	{"deadline ends a stubborn subjob", deadline, false},
	{"deadline moved later", extended, true},
	{"deadline moved earlier", truncated, false},
	{"deadline moved earlier than an extension", cutBack, true},
	{"deadline moved earlier and back", forgiven, true},
	{"daemon restarts while it runs", restartAlive, false},
	{"daemon restarts after it ended", restartEnded, false},
	{"supervisor dies", supervisorDies, false},
	{"supervisor dies while the daemon is away", supervisorDiesUnseen, false},
	{"settle twice", settleTwice, false},
	{"unknown tokens", unknown, false},
	{"no program has stayed", noneStayed, false},
}

func done(b *bench) {
	b.do(b.lease(Quick, time.Minute))
	started := b.next(protocol.Started)
	r := b.exited(job.Done)
	if r.Progress != units.To || r.ExitCode != 0 || r.Signal != 0 {
		b.Errorf("result %+v, want all of %v with exit 0", r, units)
	}
	if started.Body.(*protocol.Beginning).At == 0 || r.Start != started.Body.(*protocol.Beginning).At {
		b.Errorf("result started at %d, Started said %d", r.Start, started.Body.(*protocol.Beginning).At)
	}
}

func failure(b *bench) {
	b.do(b.lease(Failing, time.Minute))
	b.next(protocol.Started)
	r := b.exited(job.ExitFailed)
	if r.ExitCode != 3 || r.Progress != units.From || !strings.Contains(r.Detail, "it broke") {
		b.Errorf("result %+v, want exit 3, progress %d and the last words", r, units.From)
	}
}

func startTwice(b *bench) {
	m := b.polite(20 * time.Second)
	b.do(m)
	first := b.next(protocol.Started)
	b.do(m)
	if again := b.next(protocol.Started); again.Body.(*protocol.Beginning).At != first.Body.(*protocol.Beginning).At {
		b.Errorf("second Started at %d, first at %d: it was started again", again.Body.(*protocol.Beginning).At,
			first.Body.(*protocol.Beginning).At)
	}
	b.settleDown()
	b.do(protocol.Message{Kind: protocol.Stop, Token: token, Body: &protocol.Halt{}})
	r := b.exited(job.Yielded)
	b.do(m)
	if again := b.exited(job.Yielded); again != r {
		b.Errorf("repeated result %+v, first %+v", again, r)
	}
}

func startAfterSettle(b *bench) {
	m := b.lease(Quick, time.Minute)
	b.do(m)
	b.next(protocol.Started)
	r := b.exited(job.Done)
	b.settle(true)
	b.do(m)
	if again := b.exited(job.Done); again != r {
		b.Errorf("after settling Start answered %+v, want the old result %+v", again, r)
	}
	b.silent(Grace)
}

func tooLate(b *bench) {
	b.do(b.lease(Quick, -time.Second))
	if r := b.exited(job.NodeFailed); r.Detail == "" || r.Start != 0 {
		b.Errorf("result %+v, want a reason and no start", r)
	}
}

func waits(b *bench) {
	m := b.lease(Quick, time.Minute)
	m.Body.(*protocol.Work).Start = m.Body.(*protocol.Work).Start.Add(500 * time.Millisecond)
	b.do(m)
	if s := b.next(protocol.Started); s.Body.(*protocol.Beginning).At < m.Body.(*protocol.Work).Start {
		b.Errorf("started %v before its lease", m.Body.(*protocol.Work).Start.Sub(s.Body.(*protocol.Beginning).At))
	}
	b.exited(job.Done)
}

func stopTwice(b *bench) {
	const grace = 20 * time.Second
	m := b.polite(grace)
	b.do(m)
	b.next(protocol.Started)
	b.settleDown()
	stop := protocol.Message{Kind: protocol.Stop, Token: token, Body: &protocol.Halt{Text: "drained"}}
	b.do(stop)
	b.do(stop)
	r := b.exited(job.Yielded)
	if r.Progress != 5 {
		b.Errorf("progress %d, want 5", r.Progress)
	}
	n := b.told(executor.NoticeYield, 1)
	if n.Until < r.End || n.Until > r.End.Add(grace) {
		b.Errorf("it was told to end until %v after it ended, want its grace from when it was told", n.Until.Sub(r.End))
	}
	if n.Why != "drained" {
		b.Errorf("the program was told %+v, want why it is stopped", n)
	}
	b.do(stop)
	b.silent(Grace)
}

func deadline(b *bench) {
	first := 1500 * time.Millisecond
	if b.h.Fixed {
		first = 10 * time.Second // all there is to start in
	}
	m := b.lease(Stubborn, first)
	b.do(m)
	b.prolong(m, patience)
	b.next(protocol.Started)
	b.settleDown()
	if n, ok := b.h.Notice(token); ok {
		b.Errorf("the program is told %+v though nothing was done to it", n)
	}
	end := b.prolong(m, time.Second)
	r := b.exited(job.DeadlineKilled)
	b.near("end", r.End, end)
	if n := b.told(executor.NoticeYield, 1); !same(n.Until, end) || n.Why == "" {
		b.Errorf("the program was told %+v, want the lease's end %v", n, end.Time())
	}
	if r.Progress != 5 {
		b.Errorf("progress %d, want the 5 items that were complete", r.Progress)
	}
}

func extended(b *bench) {
	const grace = 3 * time.Second
	m := b.polite(grace)
	work := m.Body.(*protocol.Work)
	work.End = work.Start.Add(grace + time.Second)
	b.do(m)
	b.prolong(m, patience)
	b.next(protocol.Started)
	b.settleDown()
	end := b.prolong(m, grace+2*time.Second)
	b.near("end", b.exited(job.Yielded).End, end.Add(-grace))
}

func truncated(b *bench) {
	m := b.lease(Stubborn, time.Minute)
	b.do(m)
	b.next(protocol.Started)
	b.settleDown()
	end := quantity.At(time.Now()).Add(1500 * time.Millisecond)
	cut := protocol.Message{Kind: protocol.Deadline, Token: token, Body: &protocol.Shift{End: end, Text: "reclaimed"}}
	b.do(cut)
	b.do(cut)
	if n := b.told(executor.NoticeTruncated, 1); !same(n.Until, end) || n.Why != "reclaimed" {
		b.Errorf("the program is told %+v, want the end %v and why", n, end.Time())
	}
	b.near("end", b.exited(job.Stopped).End, end)
	if n := b.told(executor.NoticeYield, 2); !same(n.Until, end) || n.Why != "reclaimed" {
		b.Errorf("the program was told %+v at last, want the end %v and why", n, end.Time())
	}
}

// cutBack takes time from a lease that was extended: it ends later than was first promised, and is cut all the same.
func cutBack(b *bench) {
	m := b.lease(Stubborn, time.Second)
	b.do(m)
	b.prolong(m, patience)
	b.next(protocol.Started)
	b.settleDown()
	end := max(m.Body.(*protocol.Work).End, quantity.At(time.Now())).Add(time.Second)
	b.do(protocol.Message{Kind: protocol.Deadline, Token: token, Body: &protocol.Shift{End: end, Range: units, Text: "reclaimed"}})
	b.near("end", b.exited(job.Stopped).End, end)
}

// forgiven gives a subjob back what was taken from it: what its program reads is true now, and says that more was to be read.
func forgiven(b *bench) {
	m := b.polite(20 * time.Second)
	b.do(m)
	b.next(protocol.Started)
	b.settleDown()
	end := quantity.At(time.Now()).Add(5 * time.Minute)
	b.do(protocol.Message{Kind: protocol.Deadline, Token: token, Body: &protocol.Shift{End: end, Range: units, Text: "reclaimed"}})
	b.told(executor.NoticeTruncated, 1)
	b.do(protocol.Message{Kind: protocol.Deadline, Token: token, Body: &protocol.Shift{End: m.Body.(*protocol.Work).End, Range: units}})
	b.told("", 0)
	b.do(protocol.Message{Kind: protocol.Stop, Token: token, Body: &protocol.Halt{Text: "drained"}})
	b.exited(job.Yielded)
	if n := b.told(executor.NoticeYield, 2); n.Why != "drained" {
		b.Errorf("the program was told %+v, want the latest reason", n)
	}
}

func restartAlive(b *bench) {
	b.do(b.polite(20 * time.Second))
	started := b.next(protocol.Started)
	f := b.only(b.reopen())
	if !f.Alive || f.Stuck || f.Result != nil || f.Started != started.Body.(*protocol.Beginning).At {
		b.Fatalf("found %+v, want it alive since %d", f, started.Body.(*protocol.Beginning).At)
	}
	b.settleDown()
	b.do(protocol.Message{Kind: protocol.Stop, Token: token, Body: &protocol.Halt{}})
	b.exited(job.Yielded)
}

func restartEnded(b *bench) {
	b.do(b.lease(Quick, time.Minute))
	b.next(protocol.Started)
	r := b.exited(job.Done)
	f := b.only(b.reopen())
	if f.Alive || f.Result == nil || *f.Result != r {
		b.Fatalf("found %+v with result %+v, want %+v", f, f.Result, r)
	}
	b.silent(Grace)
}

func supervisorDies(b *bench) {
	b.do(b.lease(Stubborn, time.Minute))
	b.next(protocol.Started)
	b.settleDown()
	b.h.Kill(token)
	if r := b.exited(job.Lost); r.Progress != 5 {
		b.Errorf("progress %d, want the 5 items that were complete", r.Progress)
	}
}

func supervisorDiesUnseen(b *bench) {
	b.do(b.lease(Stubborn, time.Minute))
	b.next(protocol.Started)
	b.settleDown()
	if err := b.ex.Close(); err != nil {
		b.Fatal(err)
	}
	b.h.Kill(token)
	f, want := b.only(b.open()), job.NodeFailed
	if b.h.Attended {
		want = job.Lost
	}
	if f.Alive || f.Stuck || f.Result == nil || f.Result.Outcome != want || f.Result.Progress != 5 || f.Result.Start == 0 {
		b.Fatalf("found %+v with result %+v, want %v with a start and progress 5", f, f.Result, want)
	}
}

func settleTwice(b *bench) {
	b.do(b.lease(Quick, time.Minute))
	b.next(protocol.Started)
	b.exited(job.Done)
	b.settle(true)
	b.settle(true)
	if found := b.reopen(); len(found) != 0 {
		b.Errorf("found %+v after settling, want nothing", found)
	}
	b.settle(true)
	b.do(protocol.Message{Kind: protocol.Purge, Job: "suite", From: protocol.Address{Role: protocol.Gate}})
	b.do(protocol.Message{Kind: protocol.Purge, Job: "suite", From: protocol.Address{Role: protocol.Gate}})
}

func unknown(b *bench) {
	b.do(protocol.Message{Kind: protocol.Stop, Token: token, Body: &protocol.Halt{}})
	b.do(protocol.Message{Kind: protocol.Deadline, Token: token, Body: &protocol.Shift{End: quantity.At(time.Now())}})
	b.silent(Grace)
	b.settle(false)
}

func (b *bench) settle(committed bool) {
	b.Helper()
	b.do(protocol.Message{Kind: protocol.Settle, From: nodeAddress, To: execAddress, Token: token, Job: "suite",
		Body: &protocol.Settlement{Range: units, Committed: committed}})
	b.next(protocol.Settled)
}

// settleDown waits until a program that has started says that half of its range is complete: its handlers are in place.
func (b *bench) settleDown() {
	b.Helper()
	half := units.From + units.Len()/2
	for end := time.Now().Add(patience); b.reached.Load() < half; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("no report of %d complete within %v", half, patience)
		}
	}
}

// told waits until the program can read a notice of this kind, or none, and checks which one it is.
func (b *bench) told(kind string, sequence int64) executor.Notice {
	b.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		n, _ := b.h.Notice(token)
		if n.Kind == kind && n.Sequence == sequence {
			return n
		}
		if time.Now().After(end) {
			b.Fatalf("within %v the program can read %+v, want number %d, %q", patience, n, sequence, kind)
		}
	}
}

// same reports whether an end is the one that was sent, which is cut to milliseconds.
func same(told, end quantity.Instant) bool {
	return told <= end && told > end.Add(-time.Millisecond)
}

// prolong makes a given lease end after d from now, but never before its original end, and returns that end. So a program has all the time
// that it needs until it heeds signals. A fixed end stays as it is.
func (b *bench) prolong(m protocol.Message, d time.Duration) (end quantity.Instant) {
	b.Helper()
	if b.h.Fixed {
		return m.Body.(*protocol.Work).End
	}
	end = max(m.Body.(*protocol.Work).End, quantity.At(time.Now()).Add(d))
	b.do(protocol.Message{Kind: protocol.Deadline, Token: token, Body: &protocol.Shift{End: end, Range: units}})
	return end
}

// near checks an end against a planned moment. What runs on a loaded machine may be late, but only a little early.
func (b *bench) near(what string, got, want quantity.Instant) {
	b.Helper()
	if early, late := want.Sub(got), got.Sub(want); early > 100*time.Millisecond || late > 3*time.Second {
		b.Errorf("%s is %v after the planned moment", what, late)
	}
}

func (b *bench) only(found []executor.Found) executor.Found {
	b.Helper()
	if len(found) != 1 || found[0].Token != token {
		b.Fatalf("found %+v, want only %v", found, token)
	}
	f := found[0]
	if f.Witness != witness || f.Job != "suite" || f.Slice != "n1/sim/0" {
		b.Errorf("found %+v, want the lease's witness, job and slice", f)
	}
	return f
}

// noneStayed: what was cut for a program that stays does not begin without one, and one that is not there is gone.
func noneStayed(b *bench) {
	b.do(protocol.Message{Kind: protocol.Dismiss, From: nodeAddress, To: execAddress, Token: token,
		Body: &protocol.Holding{Slice: "n1/sim/0"}})
	b.next(protocol.Dismissed)
	m := b.lease(Quick, time.Minute)
	w := m.Body.(*protocol.Work)
	w.Spec.Resident = true
	w.Plan.Residence, w.Plan.Resident = w.Spec.Residence(m.Job), true
	b.do(m)
	if r := b.exited(job.NodeFailed); r.Start != 0 || r.Detail != executor.GoneResident {
		b.Errorf("result %+v, want no start for want of the program", r)
	}
	b.settle(false)
}
