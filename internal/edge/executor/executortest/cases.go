package executortest

import (
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
)

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

// same says whether an end is the one that was told, which is cut to milliseconds.
func same(told, end quantity.Instant) bool {
	return told <= end && told > end.Add(-time.Millisecond)
}

// prolong has a lease that was given out end after d from now, but never before the end that it came with, and says when that is. So a
// program has all the time that it needs until it heeds signals. Of what is fixed the end stays as it is.
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
