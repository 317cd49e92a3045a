package process

import (
	"cmp"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

// control owns a subjob's control.json. Invariant: from when the run directory is in place until the subjob has ended, the file has all of
// what was set last, in the order it was set in.
type control struct {
	dir  shim.Dir
	now  func() quantity.Instant
	told *executor.Answers
	// failed is called where the file can't be written.
	failed func(error)

	mu sync.Mutex
	// first is the lease's end. last is what is to be in the file; set: it is not just the lease's.
	first quantity.Instant
	last  shim.Control
	set   bool
	// placed: the run directory is there, so that the file can be. leaving: it is being stopped, and neither suspended nor resumed any
	// more.
	placed, leaving bool
	// writing serializes writers of the file.
	writing sync.Mutex
}

// lease sets the lease's end and range.
func (c *control) lease(end quantity.Instant, r job.Range) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.first, c.last.End, c.last.Range = end, end, r
}

// restore sets what an earlier daemon wrote.
func (c *control) restore(last shim.Control) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, c.set = last, true
}

// place notes that the run directory is there.
func (c *control) place() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.placed = true
}

// state is what was set last, and whether the subjob is being stopped.
func (c *control) state() (last shim.Control, leaving bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last, c.leaving
}

// change takes over a new end or a stop; pass tells the supervisor. It is apart from it so that changes count in the order they were asked
// for and nobody waits for the disk.
func (c *control) change(m protocol.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &c.last
	switch b := m.Body.(type) {
	case *protocol.Halt:
		l.Stop, l.Now, l.Cause = true, l.Now || b.Now, cmp.Or(b.Text, l.Cause)
		l.Still = 0 // its supervisor resumes it, to end
		c.leaving = true
	case *protocol.Shift:
		l.End, l.Cause = b.End, cmp.Or(b.Text, l.Cause)
		l.Cut = b.Text != "" || b.End < c.first // it may be later than the first end, and earlier than one that was given since
		if !b.Range.Empty() {
			l.Range = b.Range
		}
	}
	l.Anchor, c.set = shim.AnchorAt(c.now()), true
}

// suspend takes over that the subjob is suspended for most, and why, or resumed; watched: by the machine's watcher. A supervisor that is
// told nothing more resumes it by itself.
func (c *control) suspend(suspended, watched bool, why string, most time.Duration) {
	c.mu.Lock()
	l := &c.last
	if watched && !suspended && !l.Watched { // another has suspended it since, or resumed it
		c.mu.Unlock()
		return
	}
	if suspended && l.Still == 0 {
		l.Stood++
	}
	if l.Still, l.Watched = 0, false; suspended && !c.leaving {
		l.Still, l.Short, l.Watched = c.now().Add(most), why, watched
	}
	l.Anchor, c.set = shim.AnchorAt(c.now()), true
	c.mu.Unlock()
	c.pass()
}

// pass writes control.json, if something changed and there is a place for it.
func (c *control) pass() {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	last, due := c.last, c.set && c.placed
	c.mu.Unlock()
	if !due || c.told.State().Result != nil {
		return
	}
	if err := c.dir.WriteControl(&last); err != nil { // the end that holds is then the one before: watch sees to one that was moved ahead
		c.failed(err)
	}
}
