package supervisor

import (
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	watcher "sluice.dev/sluice/internal/edge/survival/watch"
)

// A subjob stands still because somebody had it do so who lives: the machine's watcher, or a daemon that has noted until when. Where
// neither is so its supervisor has it go on.

const (
	// unattended is how long a subjob may stand still with nobody who answers for it: whoever had it do so may be about to say so.
	unattended = 3 * time.Second
	// lookout is how often it is looked for that where no watcher lives.
	lookout = 500 * time.Millisecond
)

// guard knows who answers for it that a subjob stands still.
type guard struct {
	watcher watcher.Witness
	// lived: a watcher did when it was last looked.
	lived bool
	// since is when it was first seen standing still with nobody to answer for it; next is when to look again.
	since, next time.Time
}

// unattended has a subjob go on that nobody answers for any more. What a watcher had done ends with it.
func (s *subjob) unattended(members []tree.Member) {
	g := &s.guard
	if g.watcher.Path == "" || s.asked { // who is to end goes on anyway
		return
	}
	if g.watcher.Lives() {
		g.lived, g.since = true, time.Time{}
		return
	}
	if g.lived {
		g.lived = false
		s.goOn(members)
		return
	}
	now := time.Now()
	if now.Before(g.next) {
		return
	}
	g.next = now.Add(lookout)
	switch noted := s.terms.still != 0 && !s.terms.watched; {
	case noted || !tree.StandsStill(s.child.group, members):
		g.since = time.Time{}
	case g.since.IsZero():
		g.since = now
	case now.Sub(g.since) >= unattended:
		g.since = time.Time{}
		s.log.Warn("the subjob stood still and nobody answered for it: it goes on")
		s.goOn(members)
	}
}

// goOn has it go on, and know it.
func (s *subjob) goOn(members []tree.Member) {
	s.terms.still = 0
	if err := tree.Thaw(s.child.group, members); err != nil {
		s.log.Error("having the subjob go on", "err", err)
	}
}

// reclaimed finds out whether it was the machine's watcher that ended it: that is no failure of its own. The watcher says so before it
// does it.
func (s *subjob) reclaimed(said word) {
	if said.Kind != silent {
		return
	}
	if stand, ok := s.guard.watcher.Stand(s.lease.Token); ok && stand.State == airlock.Reclaiming {
		s.cause, s.forced, s.detail = job.Stopped, true, "the machine was short of memory: its watcher ended it, since "+
			stand.Cause.String()
	}
}

// relent has what stands still for longer than it was told go on: whoever told it is gone.
func (s *subjob) relent(now quantity.Instant, members []tree.Member) {
	if t := &s.terms; t.still != 0 && now >= t.still {
		s.goOn(members)
	}
}

// thaw has the command go on once it was asked to end, whoever had it stand still, and however late: what stands still can't end in order.
// The signal came first, so that it is the first thing that it finds.
func (s *subjob) thaw(members []tree.Member) {
	if !s.asked || s.forced {
		return
	}
	if err := tree.Thaw(s.child.group, members); err != nil {
		s.log.Error("having the subjob go on, to end", "err", err)
	}
}
