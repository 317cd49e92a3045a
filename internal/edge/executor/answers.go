package executor

import (
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Answers tells the node that asked for a subjob what becomes of it. Invariant: that it began, and that it is stuck, is told once each,
// and a Start that comes again is answered with the last that holds: its result, that it is stuck, or that it began. It is safe for
// concurrent use.
type Answers struct {
	// Post sends a message; nil: nobody is told.
	Post func(protocol.Message)
	Origin
	Token job.Token
	Job   job.ID
	Slice job.SliceID
	Range job.Range

	mu    sync.Mutex
	state State
	// stays is the program that has stayed after it, nil: none has.
	stays *protocol.Resident
}

// State is how far a subjob has come.
type State struct {
	// Began is when its command started, 0 before; Stuck why it can't be ended.
	Began  quantity.Instant
	Stuck  string
	Result *job.Result
}

// Send sends a message about the subjob.
func (a *Answers) Send(kind protocol.Kind, body protocol.Body) {
	if a.Post != nil {
		a.Post(protocol.Message{Kind: kind, From: a.Executor, To: a.Node, Token: a.Token, Job: a.Job, Body: body})
	}
}

// State is what was told.
func (a *Answers) State() State {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state
}

// Restore sets what Find tells of the subjob.
func (a *Answers) Restore(s State) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state = s
}

// Began tells when the subjob began, unless it was told; 0: it has not.
func (a *Answers) Began(at quantity.Instant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state.Began == 0 && at != 0 {
		a.state.Began = at
		a.tell()
	}
}

// Stuck tells why the subjob can't be ended, unless a reason was told; empty: it can.
func (a *Answers) Stuck(why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state.Stuck == "" && why != "" {
		a.state.Stuck = why
		a.tell()
	}
}

// Ended tells the result.
func (a *Answers) Ended(res *job.Result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state.Stuck, a.state.Result = "", res
	a.tell()
}

// Stays notes that its program has stayed after it, or that it does not any more; nil. It tells nothing.
func (a *Answers) Stays(as *protocol.Resident) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stays = as
}

// Repeat answers a Start that came again.
func (a *Answers) Repeat() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tell()
}

// tell tells the last that holds. a.mu is held.
func (a *Answers) tell() {
	switch s := &a.state; {
	case s.Result != nil:
		a.Send(protocol.Exited, &protocol.Conclusion{Slice: a.Slice, Range: a.Range, Result: s.Result, Resident: a.stays})
	case s.Stuck != "":
		a.Send(protocol.Stuck, &protocol.Reason{Text: s.Stuck})
	case s.Began != 0:
		a.Send(protocol.Started, &protocol.Beginning{Slice: a.Slice, Range: a.Range, At: s.Began})
	}
}

// Settled remembers what is known of the last settled subjobs, so that a late Start does not start one of them again. It need not outlast
// the daemon: a node never starts a subjob that was leased before its own boot.
type Settled[T any] struct {
	// Most is how many are remembered, at least 1; the oldest is dropped first.
	Most int

	all   map[job.Token]T
	order []job.Token // a ring; next is the oldest once it is full
	next  int
}

// Add remembers one.
func (s *Settled[T]) Add(t job.Token, of T) {
	if s.all == nil {
		s.all = map[job.Token]T{}
	}
	if _, known := s.all[t]; !known {
		if len(s.order) < s.Most {
			s.order = append(s.order, t)
		} else {
			delete(s.all, s.order[s.next])
			s.order[s.next] = t
			s.next = (s.next + 1) % s.Most
		}
	}
	s.all[t] = of
}

// Of returns what is remembered of one, if it is.
func (s *Settled[T]) Of(t job.Token) (of T, known bool) {
	of, known = s.all[t]
	return of, known
}

// Pause waits, and reports whether done was closed meanwhile.
func Pause(done <-chan struct{}, d time.Duration) (closed bool) {
	select {
	case <-time.After(d):
		return false
	case <-done:
		return true
	}
}

// Every calls do at an interval, from begin to begin, until the function that it returns is called, which waits for a call under
// way. Where a call takes longer than the interval, the next follows at once.
func Every(interval time.Duration, do func()) (stop func()) {
	done := make(chan struct{})
	var calls sync.WaitGroup
	calls.Go(func() {
		again := time.NewTicker(interval)
		defer again.Stop()
		for {
			select {
			case <-again.C:
				do()
			case <-done:
				return
			}
		}
	})
	return func() { close(done); calls.Wait() }
}
