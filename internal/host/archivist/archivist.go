// Package archivist writes and reads the archive of finished jobs, on a goroutine beside the loop.
package archivist

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/archive"
	"sluice.dev/sluice/internal/edge/observe"
	"sluice.dev/sluice/internal/host/datadir"
	"sluice.dev/sluice/internal/host/trouble"
)

const (
	// maxFilings is how many messages wait for the archive: more than the actors have outstanding. One that finds no room is
	// dropped, as a message may be, and its actor says it again.
	maxFilings = 4096
	// gather is how long messages to the archive are collected before they are made durable together: nobody waits for them, and each
	// change costs two syncs.
	gather = 100 * time.Millisecond
	// maxOutdated bounds the jobs past their retention that are sent to the gate at once. The same one is sent again after outdatedAgain,
	// until the gate has purged it.
	maxOutdated   = 256
	outdatedEvery = time.Second
	outdatedAgain = 10 * time.Second
)

// Archivist writes the archive beside the loop: one goroutine makes what actors file and purge durable, in the order of their messages,
// everything queued with one sync, and answers then. So a File never takes effect after the Purge that followed it. A nil Archivist is
// that of a daemon without an archive: it is empty. Safe for concurrent use.
type Archivist struct {
	archive  archive.Archive
	send     func(protocol.Message) // never blocks
	renames  protocol.Renames
	log      *slog.Logger
	observer *observe.Observer
	// retain is how long a job is kept after its end, most how many are.
	retain time.Duration
	most   int64

	mu    sync.Mutex
	queue []protocol.Message
	ping  chan struct{} // capacity 1: the queue is not empty
	stop  chan struct{}
	over  chan struct{} // closed when the goroutine has ended
	// failed gets the error after which the archive takes nothing more; capacity 1.
	failed chan error
	// full is why nothing can be filed for now; nil: it can.
	full atomic.Pointer[string]

	// changes is the archive's count of its changes; like told, it belongs to the goroutine.
	changes uint64
	// told is when the gate was last told of each job past its retention. It belongs to the goroutine.
	told map[job.ID]time.Time
}

// Fails gets the error after which nothing can be archived any more; nil without an archive.
func (a *Archivist) Fails() <-chan error {
	if a == nil {
		return nil
	}
	return a.failed
}

func self() protocol.Address { return protocol.Address{Role: protocol.Archive} }

// Take queues a message of an actor to the archive.
func (a *Archivist) Take(m protocol.Message) {
	a.mu.Lock()
	dropped := len(a.queue) >= maxFilings
	if !dropped {
		a.queue = append(a.queue, m)
	}
	a.mu.Unlock()
	if dropped {
		a.observer.FilingDropped()
	}
	select {
	case a.ping <- struct{}{}:
	default:
	}
}

// run works until close.
func (a *Archivist) run() {
	defer close(a.over)
	again := time.NewTicker(outdatedEvery)
	defer again.Stop()
	a.size()
	for {
		select {
		case <-a.ping:
			if !a.wait(gather) || !a.work(a.waiting()) {
				return
			}
		case <-again.C:
			a.outdated(time.Now())
		case <-a.stop:
			return
		}
	}
}

// waiting takes what is in the queue.
func (a *Archivist) waiting() []protocol.Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	batch := a.queue
	a.queue = nil
	return batch
}

// wait says false if it ended before.
func (a *Archivist) wait(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-a.stop:
		return false
	}
}

// Close ends the goroutine and then the archive. What waits is not filed: the actors say it again when they are back.
func (a *Archivist) Close() error {
	close(a.stop)
	<-a.over
	return a.archive.Close()
}

// work carries out a batch in order. It returns false if nothing more can be done.
func (a *Archivist) work(batch []protocol.Message) bool {
	for len(batch) > 0 {
		n := 1
		for n < len(batch) && n < archive.MaxParts && batch[n].Kind == batch[0].Kind {
			n++
		}
		do := a.file
		if batch[0].Kind == protocol.Purge {
			do = a.purge
		}
		if !do(batch[:n]) {
			return false
		}
		batch = batch[n:]
	}
	return true
}

// file makes parts durable, and acknowledges them to the actors that filed them.
func (a *Archivist) file(batch []protocol.Message) bool {
	parts := make([]archive.Part, 0, len(batch))
	size, from := 0, 0
	answer := func(to int) bool {
		ok := len(parts) == 0 || a.change(len(parts), 0, func() error { return a.archive.File(parts) })
		for i := from; ok && i < to; i++ {
			m := &batch[i]
			a.send(protocol.Message{Kind: protocol.Archived, From: self(), To: m.From, Job: m.Job, Generation: m.Generation,
				Body: &protocol.Archival{Count: a.changes}})
		}
		parts, size, from = parts[:0], 0, to
		return ok
	}
	for i := range batch {
		m := &batch[i]
		p, err := archive.NewPart(m.From.Role, m.Job, m.Generation.Number(), m.Filed)
		if err != nil {
			a.log.Error("a job can not be archived and stays in memory; please report this", "job", string(m.Job), "error", err)
			if !answer(i) {
				return false
			}
			from = i + 1 // it stays unanswered
			continue
		}
		if size+len(p.Data) > archive.MaxFiling && !answer(i) {
			return false
		}
		parts, size = append(parts, p), size+len(p.Data)
	}
	return answer(len(batch))
}

// purge removes what earlier lives have left, and acknowledges it.
func (a *Archivist) purge(batch []protocol.Message) bool {
	list := make([]archive.Discarded, 0, len(batch))
	for i := range batch {
		// 0 means all: minus 1, it is the largest number
		list = append(list, archive.Discarded{Job: batch[i].Job, UpTo: batch[i].Generation - 1})
	}
	if !a.change(0, len(list), func() error { return a.archive.Discard(list) }) {
		return false
	}
	for i := range batch {
		m := &batch[i]
		delete(a.told, m.Job)
		a.send(protocol.Message{Kind: protocol.Purged, From: self(), To: m.From, Job: m.Job, Generation: m.Generation})
	}
	a.outdated(time.Now())
	return true
}

// change makes one durable change. While the disk is full it keeps the change and tries again; any other error ends the daemon, as one of
// the journal does.
func (a *Archivist) change(filed, purged int, f func() error) bool {
	for wait := trouble.RetryFirst; ; wait = min(2*wait, trouble.RetryLast) {
		begin := time.Now()
		err := f()
		switch {
		case err == nil:
			a.observer.Filed(time.Since(begin), filed, purged)
			a.size()
			if a.full.Swap(nil) != nil {
				a.log.Info("the archive takes jobs again")
			}
			return true
		case errkind.Of(err) != errkind.Exhausted:
			a.failed <- errkind.Errorf(errkind.Of(err),
				"jobs that are over can be archived no more (nothing was lost; running subjobs go on): %w", err)
			return false
		}
		text := err.Error()
		if a.full.Swap(&text) == nil {
			a.log.Error("jobs that are over stay in memory", "reason", text, "todo", "what the reason says; the daemon goes on by itself")
		}
		if !a.wait(wait) {
			return false
		}
	}
}

// size notes how many jobs are archived, and tells the observer.
func (a *Archivist) size() {
	if s, err := a.archive.Size(); err == nil {
		a.changes = s.Changes
		a.observer.Archive(s.Jobs, s.Bytes, s.Free)
	}
}

// outdated tells the gate of jobs that are past their retention, or beyond the bound.
func (a *Archivist) outdated(now time.Time) {
	list, err := a.archive.Outdated(quantity.At(now.Add(-a.retain)), a.most, maxOutdated)
	if err != nil {
		a.log.Error("jobs that were kept long enough can not be found", "error", err)
		return
	}
	told := make(map[job.ID]time.Time, len(list))
	for _, e := range list {
		told[e.Job] = a.told[e.Job]
		if now.Sub(told[e.Job]) >= outdatedAgain {
			told[e.Job] = now
			a.send(protocol.Message{Kind: protocol.Outdated, From: self(), To: protocol.Address{Role: protocol.Gate}, Job: e.Job,
				Generation: e.Generation})
		}
	}
	a.told = told
}

// Options of an archivist.
type Options struct {
	// Open opens the archive in a folder; known: there must be one.
	Open    func(dir string, known bool) (archive.Archive, error)
	DataDir string
	// Retain is how long a job is kept after its end, Most how many are.
	Retain time.Duration
	Most   int64
	// Renames are the earlier names of nodes and slices, which what is filed may have.
	Renames protocol.Renames
	// Send delivers a message to an actor, and never blocks.
	Send     func(protocol.Message)
	Log      *slog.Logger
	Observer *observe.Observer
}

// witness is a gate that counts the jobs which the archive alone has, and knows how many changes that had counted.
type witness interface{ Archived() (jobs, changes int64) }

// Open opens the archive, none if o.Open is nil, and holds it against the gate, which is its second witness: an archive with fewer jobs
// than the gate has left to it has lost some, and one that has counted fewer changes than it told the gate is an older copy. A journal
// that is gone (fresh) is not taken for an empty one while there are jobs.
func Open(o Options, gate actor.Gate, fresh bool) (*Archivist, error) {
	if o.Open == nil {
		return nil, nil
	}
	var known, changes int64
	if g, ok := gate.(witness); ok {
		known, changes = g.Archived()
	}
	dir := filepath.Join(o.DataDir, datadir.ArchiveDir)
	x, err := o.Open(dir, known > 0 || changes > 0)
	if err != nil {
		return nil, fmt.Errorf("open the archive of jobs that are over: %w", err)
	}
	size, err := x.Size()
	missing := max(0, known-size.Jobs-size.GivenUp)
	switch {
	case err != nil:
	case fresh && size.Jobs > 0:
		err = errkind.Errorf(errkind.Corrupt, "%s has no journal, but an archive of %d jobs: restore the journal's directory from a "+
			"backup; "+
			"or move the archive away to begin with no jobs. Nothing was removed", o.DataDir, size.Jobs)
	case missing > 0 || int64(size.Changes) < changes:
		err = errkind.Errorf(errkind.Corrupt, "the archive in %s has %d jobs that are over after %d changes, and the journal knows of "+
			"%d jobs and %d changes: "+
			"restore the archive's directory from a backup that is as new; or, to go on without what is missing, `sluice archive repair "+
			"--data %s --without %d --change %d`", dir, size.Jobs, size.Changes, known-size.GivenUp, changes, o.DataDir, missing, changes)
	}
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	a := &Archivist{
		archive: x, send: o.Send, renames: o.Renames, log: o.Log, observer: o.Observer, retain: o.Retain, most: o.Most,
		ping: make(chan struct{}, 1), stop: make(chan struct{}), over: make(chan struct{}), failed: make(chan error, 1),
		told: map[job.ID]time.Time{},
	}
	go a.run()
	return a, nil
}
