package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/fabric/memory"
	"sluice.dev/sluice/internal/edge/inventory"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/observe"
	"sluice.dev/sluice/internal/edge/tape"
)

// Folders of the data directory that belong to this package; the executor has its own.
const (
	// JournalDir has the journal.
	JournalDir = "journal"
	tapeDir    = "tape"
)

// ArchiveDir is the folder of a data directory with the archive of jobs that are over.
const ArchiveDir = "archive"

// Open takes the data directory, recovers the actors from the journal, matches it with what still runs on this machine and
// returns a host that is ready to Run. On an error nothing was started and everything is closed. Kinds: Conflict (the
// directory is in use), Unsupported (data of another format), Corrupt (the journal lost a record that it had promised),
// Exhausted (the disk is full), Invalid (options, or facts of other actors).
func Open(ctx context.Context, o Options) (*Host, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	h := &Host{
		opts: o, log: o.Log, calls: newCalls(),
		done:   make(chan struct{}),
		fabric: o.Fabric, index: map[protocol.Address]int{}, snapshotAt: o.SnapshotRecords,
	}
	if h.fabric == nil {
		h.fabric = memory.New(memory.Faults{})
	}
	h.space.set(o.DataDir)
	h.inbox = newInbox(func(l lane, dropped uint64) {
		h.log.Warn("the daemon gets more messages than it can take, and drops the newest; what they said is said again",
			"from", l.String(), "waiting", l.room(), "dropped so far", dropped)
	})
	h.observer = observe.New(observe.Options{Log: o.Log, HistoryFor: o.HistoryFor})
	for l := range lanes {
		h.observer.Inbox(l.String(), func() (int, uint64) { waiting, dropped := h.inbox.load(); return waiting[l], dropped[l] })
	}
	h.started = h.clock.now()
	h.agents = &agents{
		recall: h.archivedAgent,
		keys:   keyring{dir: o.DataDir},
		send:   h.inbox.put, try: h.inbox.call, jobs: map[job.ID]*agent{},
	}
	if err := h.open(ctx); err != nil {
		return nil, errors.Join(h.failed(err), h.Close())
	}
	return h, nil
}

func (h *Host) open(ctx context.Context) (err error) {
	if h.lock, err = prepareDir(h.opts.DataDir); err != nil {
		return err
	}
	if err = h.space.release(); err != nil {
		return err
	}
	h.actors = h.opts.Actors()
	h.parties = h.actors.Parties()
	for i := range h.actors.Nodes {
		h.nodes = append(h.nodes, h.actors.Nodes[i].ID)
	}
	h.renames = renamesOf(h.opts.Names, h.nodes)
	h.wakes, h.kept, h.absent = neverWakes(len(h.parties)), make([]int, len(h.parties)), absent{}
	for i, p := range h.parties {
		h.index[p.Address] = i
		if err = h.fabric.Attach(p.Address, h.inbox.put); err != nil {
			return err
		}
	}
	if err = h.openTape(); err != nil {
		return err
	}
	if h.journal, err = h.opts.Journal(filepath.Join(h.opts.DataDir, JournalDir)); err != nil {
		return fmt.Errorf("open the journal: %w", err)
	}
	if err = h.replay(); err != nil {
		return err
	}
	if err = h.strays(); err != nil {
		return err
	}
	if err = h.openArchive(); err != nil {
		return err
	}
	if h.executor, h.files, err = h.opts.Executor(Env{
		Deliver: h.heard, Slice: h.slice, Present: h.renames.Slice, Use: h.use(),
	}); err != nil {
		return fmt.Errorf("start the executor: %w", err)
	}
	if err = h.lostJournal(); err != nil {
		return err
	}
	found, err := h.find(ctx)
	if err != nil {
		return err
	}
	// Before anything is offered: two daemons on one machine must not sell the same GPU.
	if h.gpus, err = inventory.Lock(inventory.LockDir, h.opts.Inventory.GPUs()); err != nil {
		return err
	}
	dealt, err := h.slices(ctx)
	if err != nil {
		return err
	}
	h.missingSnapshots()
	if err := h.raiseFormat(); err != nil {
		return err
	}
	if err := h.keepNames(); err != nil {
		return err
	}
	h.recover()
	if err := h.append(); err != nil {
		return fmt.Errorf("begin a new boot in the journal: %w", err)
	}
	h.dispatch()
	h.holdReserve()
	h.sweep()
	h.first = append(h.held(), h.inventories(dealt, found)...)
	return nil
}

func (h *Host) openTape() error {
	if h.opts.NoTape {
		return nil
	}
	dir := filepath.Join(h.opts.DataDir, tapeDir)
	boots, err := tape.Boots(dir)
	if err != nil {
		return err
	}
	boot := h.started.Time().Format("20060102T150405.000000000")
	for slices.Contains(boots, boot) {
		boot += "x" // the clock stood still between two boots
	}
	h.tape = tape.NewWriter(dir, tape.Header{
		Boot: boot, Version: h.opts.Version, Commit: h.opts.Commit, Started: h.started, Config: h.opts.Config,
	}, h.opts.Tape, func(err error) { h.log.Warn("tape", "error", err) })
	return nil
}

// find asks the executor what is left of earlier boots and holds each witness against the journal: one that the journal does
// not have means that the journal lost what it had promised.
func (h *Host) find(ctx context.Context) ([]protocol.Found, error) {
	found, err := h.executor.Find(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for subjobs of earlier boots: %w", err)
	}
	list, witnesses := make([]protocol.Found, len(found)), make([]journal.Position, len(found))
	for i := range found {
		// One without a witness has a run directory that was never completed: nothing was started under it.
		list[i], witnesses[i] = found[i].Found, found[i].Witness
	}
	var lost []error
	for i, err := range h.journal.Check(witnesses) {
		if f := &found[i]; err != nil {
			lost = append(lost, fmt.Errorf("run directory of subjob %v of job %s (below %s) names record %s of the journal: %w", f.Token, f.Job, h.opts.DataDir, f.Witness, err))
		}
	}
	if len(lost) > 0 {
		return nil, errkind.Errorf(errkind.Corrupt, "the journal has lost records that subjobs were started under; nothing was changed, "+
			"restore the journal in %s from a copy that has them: %w", filepath.Join(h.opts.DataDir, JournalDir), errors.Join(lost...))
	}
	return list, nil
}

// recover lets every actor re-issue what is outstanding.
func (h *Host) recover() {
	for i := range h.parties {
		p, now := &h.parties[i], h.clock.now()
		if h.tape != nil {
			h.tape.RecoverCall(p.Address, now)
		}
		from := h.mark()
		p.Actor.Recover(now, &h.out)
		h.stepped(p, now, from)
	}
}

// lostJournal refuses a data directory whose journal is gone while outputs of jobs lie there: without it they are files of jobs
// that nobody knows, and the next start would remove them.
func (h *Host) lostJournal() error {
	if h.files == nil || !h.fresh {
		return nil
	}
	return h.files.Stored(func(one job.ID) error {
		return errkind.Errorf(errkind.Corrupt, "%s has no journal, but files of jobs, %q is one: restore the journal's directory from a backup; "+
			"or move output, checkpoints and logs away to begin with no jobs. Nothing was removed", h.opts.DataDir, one)
	})
}
