package process

import (
	"cmp"
	"sync"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/process/aftermath"
	"sluice.dev/sluice/internal/edge/executor/process/faults"
	"sluice.dev/sluice/internal/edge/executor/process/rooms"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
)

// run is one subjob that is not settled.
type run struct {
	e     *Executor
	dir   shim.Dir
	token job.Token
	// start is the message that asked for it; for a subjob found at start only addresses, job, slice and range are known.
	start protocol.Message
	// asked is when the start was asked for by the node's clock.
	asked quantity.Instant
	// base is the unpacked work directory that the subjob gets an overlay of, unpacked when that was ready if it was waited for, and
	// copied how much was copied instead. All are set by prepare.
	base     string
	unpacked quantity.Instant
	copied   foreign.Usage
	// room is what its run directory was made of; nil for one that was found.
	room *rooms.Room

	mu sync.Mutex
	// placed: the run directory is there, so that control.json can be.
	placed  bool
	lease   shim.Lease
	control *shim.Control
	// started is when the command started, 0 before; said: Started was sent. stuck is why it can't be ended.
	started quantity.Instant
	said    bool
	stuck   string
	// onGPU is its measured peak of its slice's own memory, in bytes.
	onGPU  quantity.Amount
	result *job.Result
	still  still
	// trouble is the node's failure that its start met. It belongs to the subjob's goroutine.
	trouble error
	// after finds out how it ended, once its supervisor is gone.
	after aftermath.Aftermath
	// passing serializes writers of control.json, settling two Settles of the same subjob.
	passing, settling sync.Mutex
}

// newRun returns a subjob of a run directory, present or to come.
func (e *Executor) newRun(t job.Token) *run {
	r := &run{e: e, dir: e.s.Run(t), token: t}
	r.after = aftermath.Aftermath{Node: &e.after, Dir: r.dir, Token: t, Lease: &r.lease, Storing: r.saysStoring, Reclaimed: r.reclaimed}
	return r
}

// answer posts a message about this subjob to the node that asked for it.
func (r *run) answer(m protocol.Message) {
	m.From, m.To = r.start.To, r.start.From
	m.Token, m.Job = r.token, r.start.Job
	r.e.box.Post(m)
}

// work is what was asked to be run.
func (r *run) work() *protocol.Work { return r.start.Body.(*protocol.Work) }

// beginning is the message that it began at this instant.
func (r *run) beginning(at quantity.Instant) *protocol.Beginning {
	w := r.work()
	return &protocol.Beginning{Slice: w.Slice, Range: w.Range, At: at}
}

// conclusion is the message that it ended with this result.
func (r *run) conclusion(res *job.Result) *protocol.Conclusion {
	w := r.work()
	return &protocol.Conclusion{Slice: w.Slice, Range: w.Range, Result: res}
}

// repeat answers a Start that came again.
func (r *run) repeat() {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.result != nil:
		r.answer(protocol.Message{Kind: protocol.Exited, Body: r.conclusion(r.result)})
	case r.stuck != "":
		r.answer(protocol.Message{Kind: protocol.Stuck, Body: &protocol.Reason{Text: r.stuck}})
	case r.started != 0:
		r.answer(protocol.Message{Kind: protocol.Started, Body: r.beginning(r.started)})
	}
}

// change takes over a new end or a stop; pass tells the supervisor. It is apart from it so that changes count in the
// order they were asked for and nobody waits for the disk.
func (r *run) change(m protocol.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	work := r.work()
	c := shim.Control{End: work.End, Range: work.Range}
	if r.control != nil {
		c = *r.control
	}
	switch b := m.Body.(type) {
	case *protocol.Halt:
		c.Stop, c.Now, c.Cause = true, c.Now || b.Now, cmp.Or(b.Text, c.Cause)
		c.Still = 0 // its supervisor has it go on, to end
		r.still.leaving = true
	case *protocol.Shift:
		c.End, c.Cause = b.End, cmp.Or(b.Text, c.Cause)
		c.Cut = b.Text != "" || b.End < work.End // it may be later than the first end, and earlier than one that was given since
		if !b.Range.Empty() {
			c.Range = b.Range
		}
	}
	c.Anchor = shim.AnchorAt(r.e.o.now())
	r.control = &c
}

// pass writes control.json, if something changed and there is a place for it.
func (r *run) pass() {
	r.passing.Lock()
	defer r.passing.Unlock()
	r.mu.Lock()
	c, placed := r.control, r.placed && r.result == nil
	r.mu.Unlock()
	if c == nil || !placed {
		return
	}
	if err := r.dir.WriteControl(c); err != nil {
		// The end that holds is then the one before: watch sees to one that was moved ahead.
		r.e.o.Logger.Error("passing a new end on to the supervisor", "subjob", r.token.String(), "err", err)
		if faults.OfNode(err) {
			r.e.suspect(&r.start)
		}
	}
}

// end returns the lease's end as far as is known.
func (r *run) end() quantity.Instant {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.control != nil {
		return r.control.End
	}
	return r.work().End
}

// over notes the result and reports it.
func (r *run) over(res job.Result) {
	res = r.excused(r.blame(res))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stuck = ""
	res = r.observed(res)
	r.e.originals.Release(r.token)
	r.result = &res
	r.answer(protocol.Message{Kind: protocol.Exited, Body: r.conclusion(r.result)})
	r.e.tasks.Go(r.letGo)
	r.e.sensor.watcher.wake()
}
