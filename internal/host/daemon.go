package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/inventory"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/observe"
	"sluice.dev/sluice/internal/edge/tape"
	"sluice.dev/sluice/internal/host/agents"
	"sluice.dev/sluice/internal/host/archivist"
	"sluice.dev/sluice/internal/host/datadir"
	"sluice.dev/sluice/internal/host/gather"
	"sluice.dev/sluice/internal/host/heap"
	"sluice.dev/sluice/internal/host/inbox"
	"sluice.dev/sluice/internal/host/loop"
	"sluice.dev/sluice/internal/host/machine"
	"sluice.dev/sluice/internal/host/nodes"
	"sluice.dev/sluice/internal/host/pages"
	"sluice.dev/sluice/internal/host/recovery"
	"sluice.dev/sluice/internal/host/requests"
	"sluice.dev/sluice/internal/host/snapshots"
	"sluice.dev/sluice/internal/host/space"
	"sluice.dev/sluice/internal/host/stocks"
	"sluice.dev/sluice/internal/host/trouble"
	"sluice.dev/sluice/internal/host/watches"
	"sluice.dev/sluice/internal/host/workdirs"
)

// daemon holds the parts of a host. Those made first are told of events while the others are opened.
type daemon struct {
	opts     Options
	observer *observe.Observer
	clock    loop.Clock

	set      actor.Set
	nodes    nodes.Nodes
	inbox    *inbox.Inbox
	calls    *requests.Calls
	led      led
	watches  *watches.Watches
	trouble  *trouble.State
	space    *space.Space
	agents   *agents.Agents
	views    *pages.Views
	workdirs *workdirs.Keeper
	gather   *gather.Gatherer // nil: no machine may join
	machine  *machine.Machine
	heap     heap.Recovery

	// What was opened, in this order; nil: it was not.
	dir       *datadir.Dir
	tape      *tape.Writer // also nil without a tape
	journal   journal.Journal
	archivist *archivist.Archivist // also nil without an archive
	executor  executor.Executor
	gpus      *inventory.Locks
	snapshots *snapshots.Snapshots
	loop      *loop.Loop
}

// led is what a head has besides for machines that have joined; all nil: none may.
type led struct {
	remote *requests.Remote
	stocks *stocks.Stocks
}

func newDaemon(o Options) *daemon {
	d := &daemon{opts: o, set: o.Actors(), calls: requests.NewCalls(), watches: &watches.Watches{}}
	for i := range d.set.Nodes {
		d.nodes = append(d.nodes, d.set.Nodes[i].ID)
	}
	d.clock.Source = o.Now
	d.clock.Now() // it starts
	d.observer = observe.New(observe.Options{Log: o.Log})
	d.inbox = inbox.New(func(l inbox.Lane, dropped uint64) {
		o.Log.Warn("the daemon gets more messages than it can take, and drops the newest; what they said is said again",
			"from", l.String(), "waiting", l.Room(), "dropped so far", dropped)
	})
	for l := range inbox.Lanes {
		d.observer.Inbox(l.String(), func() (int, uint64) { waiting, dropped := d.inbox.Load(); return waiting[l], dropped[l] })
	}
	if o.Lenders != nil {
		d.observer.Lent(o.Lenders.Providers)
	}
	d.trouble = trouble.New(d.nodes, d.inbox, d.observer, o.Log)
	d.space = space.New(o.DataDir, d.trouble, o.Log)
	d.agents = agents.New(o.DataDir, d.inbox.Put, d.inbox.Call, func(name job.ID) *protocol.Acceptance { return d.archivist.Agent(name) })
	d.views = pages.NewViews(d.set, d.directory(), o.Guard)
	d.workdirs = workdirs.New(d.inbox, d.views, o.DataDir, o.Log)
	if o.Elsewhere != nil {
		d.gather = gather.New(d.directory().Maker, o.Log)
	}
	d.machine = machine.New(o.Inventory, o.Ours, d.set.Nodes, d.nodes, d.inbox, d.trouble, o.Until, o.Log)
	return d
}

// directory finds the nodes of this machine and of those that have joined.
func (d *daemon) directory() nodes.Directory {
	return nodes.Directory{Own: d.nodes, Others: d.opts.Elsewhere}
}

// open opens everything outside of this process, and changes nothing of it until all of it has been read. It returns the files kept of
// jobs.
func (d *daemon) open(ctx context.Context) (files Files, err error) {
	o := &d.opts
	if d.dir, err = datadir.Take(o.DataDir); err != nil {
		return nil, err
	}
	if err = d.space.Release(); err != nil {
		return nil, err
	}
	if o.Elsewhere != nil {
		d.led.stocks = stocks.Open(o.DataDir, o.Elsewhere, o.Log)
		d.views.Remember(d.led.stocks)
	}
	for _, p := range d.set.Parties() {
		if err = o.Fabric.Attach(p.Address, d.deliver); err != nil {
			return nil, err
		}
	}
	if o.Elsewhere != nil {
		if d.led.remote, err = requests.NewRemote(o.Fabric); err != nil {
			return nil, err
		}
	}
	if err = d.openTape(); err != nil {
		return nil, err
	}
	if d.journal, err = o.Journal(filepath.Join(o.DataDir, datadir.JournalDir)); err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	renames, past := datadir.Renames(o.Names, d.nodes), recovery.New(d.set, o.DataDir, o.Log)
	if err = past.Replay(d.journal, renames, &d.heap, d.recovered); err != nil {
		return nil, err
	}
	if err = past.Complete(); err != nil {
		return nil, err
	}
	if d.archivist, err = archivist.Open(archivist.Options{
		Open: o.Archive, DataDir: o.DataDir, Retain: o.Retain, Most: o.MostArchived, Renames: renames, Send: d.inbox.Put, Log: o.Log,
		Observer: d.observer,
	}, d.set.Lead(), past.Fresh()); err != nil {
		return nil, err
	}
	if d.executor, files, err = o.Executor(Env{
		Deliver: d.machine.Hear, Slice: d.machine.Slice, Present: renames.Slice, Use: d.machine.Use(),
	}); err != nil {
		return nil, fmt.Errorf("start the executor: %w", err)
	}
	if files != nil && past.Fresh() {
		if err = recovery.LostJournal(files, o.DataDir); err != nil {
			return nil, err
		}
	}
	return files, d.begin(ctx, files, past)
}

// begin matches the recovered state with what runs on this machine, and begins a boot in the journal.
func (d *daemon) begin(ctx context.Context, files Files, past *recovery.State) error {
	o := &d.opts
	found, err := recovery.Found(ctx, d.executor, d.journal, o.DataDir)
	if err != nil {
		return err
	}
	// Before anything is offered: two daemons on one machine must not sell the same GPU.
	if d.gpus, err = inventory.Lock(inventory.LockDir, o.Inventory.GPUs()); err != nil {
		return err
	}
	dealt, err := d.machine.Deal(ctx)
	if err != nil {
		return err
	}
	if !d.set.Joined() { // else the gate that knows which jobs need their files is elsewhere
		d.workdirs.Serve(files, d.archivist, d.purge)
	}
	d.workdirs.Missing(d.clock.Now())
	if err := d.dir.Raise(len(d.set.Zones) > 1 || len(d.set.Nodes) > 1, o.Named, past.Fresh(), o.Log); err != nil {
		return err
	}
	if err := d.dir.KeepNames(o.Names, o.Log); err != nil {
		return err
	}
	parties := d.set.Parties()
	d.snapshots = snapshots.New(d.journal, o.snapshots(), past.SnapshotFacts(), parties,
		func() []actor.Party { return o.Actors().Parties() }, o.Log)
	d.loop = loop.New(loop.Parts{
		Parties: parties, Clock: &d.clock, Log: o.Log, Observer: d.observer, Tape: d.tape, Guard: o.Guard,
		Inbox: d.inbox, Journal: d.journal, Position: past.Position(), Snapshots: d.snapshots, Heap: &d.heap, Trouble: d.trouble,
		Space:  d.space,
		Fabric: o.Fabric, Executor: d.executor, Archivist: d.archivist, Calls: d.calls, Agents: d.agents, Machine: d.machine,
		Views: d.views, Watches: d.watches, Workdirs: d.workdirs,
		Gather: d.gather, Lenders: o.Lenders,
	})
	if err := d.loop.Recover(); err != nil {
		return err
	}
	d.space.Hold()
	d.workdirs.Sweep()
	d.loop.First(slices.Concat(d.machine.Held(), d.machine.Stock(dealt, found), d.away(), d.lent()))
	return nil
}

// away are what machines had that have joined and are not linked yet, for the gate, and for zones, which judge nothing by what they know
// of slices until they have heard of these.
func (d *daemon) away() []protocol.Message {
	all := d.led.stocks.Told()
	for _, told := range slices.Clone(all) {
		for i := range d.set.Zones {
			told.To = protocol.Address{Role: protocol.Zone, ID: string(d.set.Zones[i].ID)}
			all = append(all, told)
		}
	}
	return all
}

// lent are the slices that pilots may bring: for the gate, which judges a job by them as by those of a machine that is away and called as
// the pool, and for zones, which give up no job that would fit them.
func (d *daemon) lent() (all []protocol.Message) {
	if d.opts.Lenders == nil {
		return nil
	}
	for _, p := range d.opts.Lenders.Pools() {
		stock := &protocol.Stock{}
		for i := range p.Slices {
			s := &p.Slices[i]
			stock.Slices = append(stock.Slices, protocol.Slice{ID: job.SliceID(fmt.Sprintf("%s/%d", p.Name, i)), Model: s.Model,
				Profile: s.Profile, Capacity: s.Capacity, Speed: s.Speed})
		}
		all = append(all, protocol.Message{Kind: protocol.Inventory, From: protocol.Address{Role: protocol.Node, ID: p.Name},
			To: protocol.Address{Role: protocol.Gate}, Body: stock})
		for i := range d.set.Zones {
			all = append(all, protocol.Message{Kind: protocol.Inventory, From: lender(p.Name),
				To: protocol.Address{Role: protocol.Zone, ID: string(d.set.Zones[i].ID)}, Body: stock})
		}
	}
	return all
}

// lender is a pool's driver.
func lender(pool string) protocol.Address {
	return protocol.Address{Role: protocol.Provider, ID: pool}
}

// deliver takes a message for an actor of this process.
func (d *daemon) deliver(m protocol.Message) {
	d.led.stocks.Hear(&m)
	d.inbox.Put(m)
}

func (d *daemon) openTape() error {
	if d.opts.NoTape {
		return nil
	}
	dir := filepath.Join(d.opts.DataDir, datadir.TapeDir)
	boots, err := tape.Boots(dir)
	if err != nil {
		return err
	}
	boot := d.clock.Started().Time().Format("20060102T150405.000000000")
	for slices.Contains(boots, boot) {
		boot += "x" // the clock did not advance between two boots
	}
	d.tape = tape.NewWriter(dir, tape.Header{
		Boot: boot, Version: d.opts.About.Version, Commit: d.opts.About.Commit, Started: d.clock.Started(), Config: d.opts.Config,
	}, d.opts.Tape, func(err error) { d.opts.Log.Warn("tape", "error", err) })
	return nil
}

// recovered hands one fact to the parts that follow facts besides its actor.
func (d *daemon) recovered(f *protocol.Fact, encoded []byte) {
	if d.tape != nil {
		d.tape.Recovered(encoded)
	}
	d.observer.Recovered(f)
	d.workdirs.Fact(f)
	d.gather.Fact(f)
	d.agents.Fact(f)
}

// purge has the files of a job removed. It belongs to the loop.
func (d *daemon) purge(name job.ID) {
	d.executor.Do(protocol.Message{
		Kind: protocol.Purge, From: protocol.Address{Role: protocol.Gate}, To: protocol.Address{Role: protocol.Executor}, Job: name,
	}, d.loop.Position())
}

// run drives the actors, and watches the machine and the disk beside them.
func (d *daemon) run(ctx context.Context) error {
	stop := d.machine.Watch(ctx)
	looking, enough := context.WithCancel(ctx)
	var looks sync.WaitGroup
	looks.Go(func() { d.space.Watch(looking) })
	err := d.loop.Run(ctx)
	enough()
	looks.Wait()
	stop()
	if err != nil {
		d.opts.Log.Error("the daemon stops", "error", err)
	}
	return err
}

// close answers every waiting call, and then closes what was opened.
func (d *daemon) close() (err error) {
	d.heap.End()
	d.inbox.Close()
	d.calls.Close(inbox.ErrStopping())
	if d.led.remote != nil {
		d.led.remote.Close()
	}
	d.workdirs.Close()
	d.gather.Close()
	d.led.stocks.Close()
	if d.executor != nil {
		err = errors.Join(err, d.executor.Close())
	}
	if d.archivist != nil {
		err = errors.Join(err, d.archivist.Close())
	}
	err = errors.Join(err, d.opts.Fabric.Close())
	if d.tape != nil {
		err = errors.Join(err, d.tape.Close())
	}
	if d.snapshots != nil {
		err = errors.Join(err, d.snapshots.Stop())
	}
	if d.journal != nil {
		err = errors.Join(err, d.journal.Close())
	}
	err = errors.Join(err, d.opts.Inventory.Close())
	if d.gpus != nil {
		err = errors.Join(err, d.gpus.Release())
	}
	if d.dir != nil {
		err = errors.Join(err, d.dir.Close())
	}
	return err
}

// text describes everything that keeps the daemon from working, for people; empty if nothing does.
func (d *daemon) text() string { return d.trouble.Text(d.archivist.Full()) }
