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
		a.began()
	}
}

func (a *Answers) began() {
	a.Send(protocol.Started, &protocol.Beginning{Slice: a.Slice, Range: a.Range, At: a.state.Began})
}

// Stuck tells why the subjob can't be ended, unless a reason was told; empty: it can.
func (a *Answers) Stuck(why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state.Stuck == "" && why != "" {
		a.state.Stuck = why
		a.stuck()
	}
}

func (a *Answers) stuck() { a.Send(protocol.Stuck, &protocol.Reason{Text: a.state.Stuck}) }

// Ended tells the result.
func (a *Answers) Ended(res *job.Result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state.Stuck, a.state.Result = "", res
	a.ended()
}

func (a *Answers) ended() {
	a.Send(protocol.Exited, &protocol.Conclusion{Slice: a.Slice, Range: a.Range, Result: a.state.Result})
}

// Repeat answers a Start that came again.
func (a *Answers) Repeat() {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.state.Result != nil:
		a.ended()
	case a.state.Stuck != "":
		a.stuck()
	case a.state.Began != 0:
		a.began()
	}
}

// Every calls do at an interval until the function that it returns is called, which waits for a call under way.
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
