// Package executortest is what every kind of executor must do, as tests. A kind hands over a Harness: how to open it
// over the same world again (a daemon's restart), and how to ask for a few simple programs. The suite must not know how
// a kind starts anything.
package executortest

import (
	"context"
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
		Kind: protocol.Start, From: nodeAddress, To: execAddress, Token: token, Job: spec.Name, Body: &protocol.Work{Slice: "n1/sim/0",
			Range: units, Start: now, End: now.Add(length), Spec: spec},
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

// silent checks that nothing is said for a while.
func (b *bench) silent(d time.Duration) {
	b.Helper()
	select {
	case m := <-b.said:
		b.Fatalf("unexpected message kind %d: %+v, result %+v", m.Kind, m, m.Body.(*protocol.Conclusion).Result)
	case <-time.After(d):
	}
}
