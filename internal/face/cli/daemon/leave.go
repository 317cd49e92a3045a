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

	// called: the daemon was told to end. closed: the nodes know, and sell nothing more. Both of an ephemeral machine.
	called, closed bool
	empty          int // looks in a row at which nothing remained
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
			defer o.call(running)()
		case <-tick.C:
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

// call brings the machine's end near, since its daemon is to end, and tells the head, which may be away. end ends that.
func (o *outing) call(running context.Context) (end func()) {
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
	o.log.Info("this machine leaves its cluster: nothing more is started, and what runs is warned, ends and is handed over", "within", left)
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

// leave tells the head that the machine leaves, for as long as there is time. A head that is not reached removes it by itself.
func (o *outing) leave(running context.Context, left int) error {
	ctx, cancel := context.WithTimeout(running, max(lastCall, o.stay.Until.Sub(quantity.At(o.now()))))
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
	if left > 0 {
		return errkind.Errorf(errkind.Unavailable, "this machine's time is over, and %d of its subjobs were not handed over: they are "+
			"given up at the end of their leases, and done again elsewhere from their last checkpoints", left)
	}
	return nil
}
