package host

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/host/agents"
	"sluice.dev/sluice/internal/host/inbox"
	"sluice.dev/sluice/internal/host/logs"
	"sluice.dev/sluice/internal/host/pages"
	"sluice.dev/sluice/internal/host/requests"
	"sluice.dev/sluice/internal/host/watches"
)

// Types of the calls, under this package's name for callers.
type (
	Submission  = requests.Submission
	Outcome     = requests.Outcome
	Receipt     = requests.Receipt
	LogFollow   = logs.LogFollow
	LogPosition = logs.LogPosition
	LogPiece    = logs.LogPiece
	Negotiation = agents.Negotiation
	Answer      = agents.Answer
	Heard       = agents.Heard
	Event       = agents.Event
	Changes     = watches.Changes
)

// MaxWait is how long an agent may wait for an event in one call.
const MaxWait = agents.MaxWait

// watching notifies of changed jobs.
type watching interface {
	// Watch returns a channel that gets a signal when any of these jobs has changed since the channel was last read, or since Watch. stop
	// must be called once nobody reads it any more.
	Watch(names ...job.ID) (changed <-chan struct{}, stop func())
	// Changes begins to follow all jobs. stop must be called once nobody takes them any more.
	Changes() (c *watches.Changes, stop func())
}

// Host is a running daemon without its network face. Make it with Open, drive it with Run; every other method is safe
// for concurrent use.
type Host struct {
	*requests.Sender // what people ask to be changed
	*pages.Pages     // what they look at
	*logs.Reader     // what subjobs wrote
	*agents.API      // what agents call
	watching
	// Departed is for machines that have left the cluster.
	Departed Departed
	// Lent is for machines that are lent by host schedulers.
	Lent Lent
	// Left is what subjobs on other machines leave.
	Left   Left
	daemon *daemon
	closed sync.Once
}

// Open takes the data directory, recovers the actors from the journal, matches it with what still runs on this machine and
// returns a host that is ready to Run. On an error nothing was started and everything is closed. Kinds: Conflict (the
// directory is in use), Unsupported (data of another format), Corrupt (the journal lost a record that it had promised),
// Exhausted (the disk is full), Invalid (options, or facts of other actors).
func Open(ctx context.Context, o Options) (*Host, error) { return open(ctx, o, false) }

// open is Open of a host whose gates and zones are elsewhere (joined), or are its own.
func open(ctx context.Context, o Options, joined bool) (*Host, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	d := newDaemon(o)
	if d.set.Joined() != joined {
		return nil, errkind.Errorf(errkind.Invalid, "host: Options.Actors makes %s: Open needs a gate and a zone, OpenMember neither",
			actor.Names(d.set.Parties()))
	}
	files, err := d.open(ctx)
	if err != nil {
		return nil, errors.Join(d.space.Failed(err, d.dir != nil), d.close())
	}
	p := pages.New(d.inbox, d.views, d.archivist, d.watches, d.observer, o.Actors, d.machine.Full, o.DataDir)
	var elsewhere logs.Elsewhere
	if g, ok := files.(Gathers); ok && d.gather != nil {
		d.gather.Serve(g.Gathered(), pages.Whole{Pages: p})
		elsewhere = d.gather
	} else {
		d.gather.Close() // nothing is kept here of what others leave
	}
	sender := requests.New(d.inbox, d.calls, d.trouble, d.space, d.directory(), d.led.remote, files)
	return &Host{
		Sender:   sender,
		Departed: Departed{d, sender},
		Lent:     Lent{d},
		Left:     Left{d.gather},
		Pages:    p,
		Reader:   logs.New(files, elsewhere, pages.Whole{Pages: p}, d.watches, d.inbox),
		API:      agents.NewAPI(d.agents, p, d.inbox),
		watching: d.watches,
		daemon:   d,
	}, nil
}

// Run drives the actors until ctx is done (it returns nil, and running subjobs go on under their supervisors) or
// nothing can be made durable any more (an error that says why). Everything is closed when it returns.
func (h *Host) Run(ctx context.Context) error {
	defer func() {
		if h.daemon.tape != nil {
			h.daemon.tape.Flush() // on a broken invariant too: the input that did it is on the tape
		}
	}()
	return errors.Join(h.daemon.run(ctx), h.Close())
}

// Close ends a host whose Run has returned or was never called. Closing twice is harmless.
func (h *Host) Close() (err error) {
	h.closed.Do(func() { err = h.daemon.close() })
	return err
}

// About describes the daemon and its state.
func (h *Host) About(ctx context.Context) (status.About, error) {
	d := h.daemon
	return inbox.Ask(ctx, d.inbox, func(now quantity.Instant) status.About {
		a := d.opts.About
		a.Go, a.Node, a.DataDir = runtime.Version(), d.opts.Machine, d.opts.DataDir
		a.Isolation, a.Inventory = d.executor.Isolation(), d.opts.Inventory.Describe()
		a.Started, a.Uptime = d.clock.Started(), now.Sub(d.clock.Started())
		a.JournalBytes, _ = d.journal.Size()
		a.JournalSeq = d.loop.Position().Seq
		a.Trouble, a.Nodes = d.text(), slices.Clone([]job.NodeID(d.nodes))
		for i := range d.set.Zones {
			a.Zones = append(a.Zones, d.set.Zones[i].ID)
		}
		return a
	})
}
