package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/core/departure"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/authority"
	"sluice.dev/sluice/internal/edge/membership"
	"sluice.dev/sluice/internal/host"
)

const (
	// defaultGrace is how long an ephemeral machine's daemon has from its signal: Slurm and Kubernetes kill 30 s after it.
	defaultGrace = 25 * time.Second
	// leaveEvery is how often a machine looks whether its time has come, and all was handed over. It was if two looks say so: an actor may
	// have taken the first before what was sent to it last.
	leaveEvery = 200 * time.Millisecond
	// lastCall is the least time for the call by which a machine leaves.
	lastCall = 2 * time.Second
)

// outing is a machine's time in its cluster, until its daemon stops or it leaves for good.
type outing struct {
	member          *membership.Membership
	host            *host.Member
	now             func() time.Time // the head's clock
	stay            departure.Stay
	handOver, grace time.Duration
	log             *slog.Logger

	// vigil says when nothing was heard of the head for too long, by elapsed, a count of time, and heard, which grows with what it says.
	vigil   departure.Vigil
	elapsed func() time.Duration
	heard   func() uint64
	said    uint64 // of heard at the last look

	// called: the daemon was told to end, or its head is gone (ownerless). closed: the nodes know, and sell nothing more. All of an
	// ephemeral machine.
	called, closed bool
	ownerless      time.Duration // for how long the head was silent when the machine left for it; 0: it did not
	empty          int           // looks in a row at which nothing remained
}

// run runs the machine's daemon until ctx is done, or the machine has no cluster any more, or leaves it: nothing that it says or stores
// counts from then on. What runs then ends with its lease. removed gets the head's word that it was removed.
func (o *outing) run(ctx context.Context, removed <-chan error) error {
	running, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	go o.member.Keep(running)
	var watch sync.WaitGroup
	var why error
	watch.Go(func() {
		why = o.wait(ctx.Done(), running, removed)
		end(why)
	})
	err := o.host.Run(running)
	end(nil)
	watch.Wait()
	if errors.Is(why, authority.ErrRemoved) {
		why = fmt.Errorf("this machine does nothing more for its cluster, and what runs here ends with its lease: %w", why)
	}
	return errors.Join(err, why)
}

// wait returns once the daemon is to stop, with the reason if that is an error.
func (o *outing) wait(stop <-chan struct{}, running context.Context, removed <-chan error) error {
	tick := time.NewTicker(leaveEvery)
	defer tick.Stop()
	for {
		select {
		case why := <-removed:
			if o.called || o.over() {
				return nil // it was about to leave
			}
			return why
		case <-running.Done():
			return nil
		case <-stop:
			if stop = nil; !o.stay.Ephemeral {
				return nil
			}
			if !o.called {
				defer o.call(running, "it was told to end")()
			}
		case <-tick.C:
		}
		if silent, gone := o.alone(); gone && !o.called {
			o.ownerless = silent.Round(time.Second)
			defer o.call(running, fmt.Sprintf("nothing was heard of its head for %v", o.ownerless))()
		}
		if o.called && !o.closed {
			o.close(running)
		}
		if left, done := o.done(running); done {
			return o.leave(running, left)
		}
	}
}

// over reports whether nothing runs any more by the machine's end.
func (o *outing) over() bool {
	return o.stay.Until != 0 && quantity.At(o.now()) >= departure.Closes(o.stay.Until, o.handOver)
}

// alone reports whether nothing was heard of the head for too long, and for how long.
func (o *outing) alone() (silent time.Duration, gone bool) {
	said, sign := o.heard(), departure.Silent
	if said != o.said {
		sign = departure.Heard
	}
	silent, gone = o.vigil.Look(o.elapsed(), sign)
	o.said = said
	return silent, gone && o.stay.Ephemeral
}

// call brings the machine's end near, for a reason, and tells the head, which may be away. end ends that.
func (o *outing) call(running context.Context, why string) (end func()) {
	o.called = true
	// Hosts say it again: Slurm signals the script of a preempted job at once, and all of the job at the end of its grace, which may be
	// while the machine still hands over. What ended now would be lost; Ctrl-C does it still.
	signal.Ignore(syscall.SIGTERM)
	until := quantity.At(o.now()).Add(o.grace)
	if o.stay.Until != 0 {
		until = min(until, o.stay.Until)
	}
	o.stay.Until = until
	left := until.Sub(quantity.At(o.now()))
	o.log.Info("this machine leaves its cluster: nothing more is started, and what runs is warned, ends and is handed over",
		"why", why, "within", left)
	ctx, cancel := context.WithCancel(running)
	var told sync.WaitGroup
	told.Go(func() {
		err := o.member.SetStay(ctx, membership.Stay{Ephemeral: true, Until: time.Now().Add(left)})
		if err != nil && ctx.Err() == nil && !errors.Is(err, authority.ErrRemoved) {
			o.log.Warn("the head does not know yet that this machine leaves", "why", err)
		}
	})
	return func() {
		cancel()
		told.Wait()
	}
}

// close has the nodes closed from now on: what runs has the grace without the hand-over.
func (o *outing) close(running context.Context) {
	ctx, cancel := context.WithTimeout(running, lastCall)
	defer cancel()
	if err := o.host.Departure.Leave(ctx, o.stay.Until); err != nil {
		o.log.Warn("slices can't be listed, and so are not closed yet", "error", err)
		return
	}
	o.closed = true
}

// done reports whether it is time to leave, and with how many subjobs that are not handed over.
func (o *outing) done(running context.Context) (left int, done bool) {
	if !o.closed && !o.over() {
		return 0, false
	}
	left, err := o.host.Departure.Remaining(running)
	if err == nil && left == 0 {
		o.empty++
	} else {
		o.empty = 0
	}
	return left, o.empty >= 2 || quantity.At(o.now()) >= o.stay.Until
}

// leave tells the head that the machine leaves, for as long as there is time. A head that is not reached removes it by itself; one that is
// gone is not waited for, as others may wait for the machine.
func (o *outing) leave(running context.Context, left int) error {
	patience := max(lastCall, o.stay.Until.Sub(quantity.At(o.now())))
	if o.ownerless > 0 {
		patience = lastCall
	}
	ctx, cancel := context.WithTimeout(running, patience)
	defer cancel()
	err := o.member.Leave(ctx)
	for err != nil && ctx.Err() == nil {
		select {
		case <-time.After(leaveEvery):
			err = o.member.Leave(ctx)
		case <-ctx.Done():
		}
	}
	switch {
	case err != nil:
		o.log.Warn("the head was not told that this machine has left, and removes it by itself", "why", err)
	default:
		o.log.Info("this machine has left its cluster for good", "machine", string(o.member.Name()))
	}
	if o.ownerless > 0 { // a host is not to take it for a failure; pilots keep this line
		o.log.Warn(fmt.Sprintf("it has left as nothing was heard of its head for %v; %d of its subjobs were not handed over",
			o.ownerless, left))
		return nil
	}
	if left > 0 {
		return errkind.Errorf(errkind.Unavailable, "this machine's time is over, and %d of its subjobs were not handed over: they are "+
			"given up at the end of their leases, and done again elsewhere from their last checkpoints", left)
	}
	return nil
}
