package host

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/fabric"
	"sluice.dev/sluice/internal/edge/inventory"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/observe"
	"sluice.dev/sluice/internal/edge/tape"
)

// maxBatch is how many inputs share one sync, but for what one of them makes the actors tell each other. It bounds how long the
// first of them waits for the last.
const maxBatch = 256

// Of one turn of the loop queries get lookTime, and no more than maxLooks of them are taken from the inbox.
const (
	lookTime = 2 * time.Millisecond
	maxLooks = 64
)

// Host is a running daemon without its network face. Make it with Open, drive it with Run; every other method is safe
// for concurrent use.
type Host struct {
	opts     Options
	log      *slog.Logger
	observer *observe.Observer
	inbox    *inbox
	calls    *calls
	agents   *agents
	trouble  atomic.Pointer[trouble]
	ailments ailments
	ailing   atomic.Pointer[string] // why the node can start nothing; nil: it can
	started  quantity.Instant
	done     chan struct{} // closed when nothing answers any more
	stop     sync.Once
	// background is what looks through files beside the loop.
	background sync.WaitGroup

	watches watches

	lock      *os.File
	space     space
	gpus      *inventory.Locks
	journal   journal.Journal
	archivist *archivist // nil: jobs stay in memory until they are forgotten
	executor  executor.Executor
	files     Files // nil: none are kept
	fabric    fabric.Fabric
	named     atomic.Pointer[map[job.SliceID]protocol.Slice] // slices by their names in the cluster
	fullNames atomic.Pointer[map[job.SliceID]job.SliceID]    // those, by their names on this machine
	deal      map[string]int                                 // the node that each GPU is dealt to: of whoever lists the slices, at the start and then in watch
	tape      *tape.Writer                                   // nil: no tape

	// nodes are the names of the nodes, by their numbers: set before anybody may ask. lastStrain is the last word of the machine's memory, if they have not taken it.
	nodes      []job.NodeID
	lastStrain atomic.Pointer[protocol.Strain]

	// What follows belongs to the goroutine of Open and then of Run.
	actors   actor.Set
	words    []*protocol.Strain // what each node is told of the word that was taken last
	parties  []actor.Party
	index    map[protocol.Address]int
	absent   absent             // who is in the journal alone
	renames  protocol.Renames   // of nodes that had other names
	kept     []int              // of each party: what the journal has of it (nothing, bootedOnly, more)
	wakes    []quantity.Instant // earliest wanted Tick of each party; Never for none
	clock    clock
	position journal.Position
	fresh    bool               // the journal was empty at the start
	first    []protocol.Message // before anything of the inbox
	// workdirs are the stored work directories that jobs need; forgot: a job was forgotten since the others were removed, at
	// pruned; closed: one has ended since unpacked ones were removed, at prunedUnpacked.
	workdirs       workdirs
	forgot         bool
	pruned         quantity.Instant
	closed         bool
	prunedUnpacked quantity.Instant

	out   protocol.Out
	steps []step
	// relayed is how many of the effects of this turn are handed over where they are for the actors of this journal.
	relayed int
	// leaving: others of them leave it. gathering is since when facts wait that nobody waits for, zero if none do.
	leaving   bool
	gathering time.Time
	batch     []protocol.Message
	queries   []query
	records   [][]byte
	buffer    []byte
	// snapshotAt is the number of records since the last snapshot at which the next is due.
	snapshotAt uint64
	taking     *snapshotting // nil: no snapshot is being taken
	// recovering is for how many turns of the loop at most the heap may yet grow as while the state is recovered.
	recovering int
}

// step is one call of an actor within a batch: the end of its facts in out.Facts, and when it was.
type step struct {
	facts int
	now   quantity.Instant
}

// Run drives the actors until ctx is done (it returns nil, and running subjobs go on under their supervisors) or
// nothing can be made durable any more (an error that says why). Everything is closed when it returns.
func (h *Host) Run(ctx context.Context) error {
	defer func() {
		if h.tape != nil {
			h.tape.Flush() // on a broken invariant too: the input that did it is on the tape
		}
	}()
	stop := h.watch(ctx)
	looking, enough := context.WithCancel(ctx)
	var looks sync.WaitGroup
	looks.Go(func() { h.watchSpace(looking) })
	err := h.loop(ctx)
	enough()
	looks.Wait()
	stop()
	if err != nil {
		h.log.Error("the daemon stops", "error", err)
	}
	return errors.Join(err, h.Close())
}

// loop is the live driver. Within one turn every input is stepped, then all facts are synced, then effects leave.
func (h *Host) loop(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		inputs := h.turn()
		if planted.In(planted.AckBeforeFacts) {
			h.dispatchEarly()
		}
		if more := h.gather(); more > 0 && ctx.Err() == nil {
			timer.Reset(min(more, h.rest()))
			select {
			case <-h.inbox.ping:
			case <-timer.C:
			case <-ctx.Done():
			}
			continue
		}
		if err := h.commit(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			h.publish()
			return nil
		}
		if done, ok := h.negotiation(); ok {
			h.observer.Negotiated(done)
		}
		h.observer.Strained(h.opts.Guard, h.strain(h.clock.now()))
		h.dispatch()
		if err := h.snapshot(); err != nil {
			return err
		}
		h.answerQueries()
		h.settle(inputs == 0 && len(h.queries) == 0)
		if h.tape != nil {
			h.tape.Flush()
		}
		if inputs > 0 || len(h.queries) > 0 {
			continue
		}
		timer.Reset(h.rest())
		select {
		case err := <-h.archivist.fails():
			return err
		case <-h.inbox.ping:
		case <-timer.C:
		case room := <-h.taking.room(): // nothing else is to do
			h.taking.capture(room)
		case why := <-h.taking.over():
			if err := h.endSnapshot(why); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// turn steps what waits and is due, and what the actors of this journal tell each other because of it: until they are silent, or the
// turn has its fill. It returns the number of inputs.
//
// What they tell each other need not wait for the sync: whoever hears it decides later facts of the same journal, which keeps whole
// steps from the first on. So of two facts no cut keeps the second alone, and nobody beyond the journal has heard of either.
func (h *Host) turn() (inputs int) {
	inputs = h.ticks()
	for inputs < maxBatch {
		h.batch, h.queries = h.inbox.take(maxBatch, maxLooks, append(h.batch[:0], h.first...), h.queries)
		h.first = nil
		for i := range h.batch {
			h.route(&h.batch[i])
			if p, ok := h.index[h.batch[i].To]; ok {
				h.step(p, &h.batch[i])
			}
		}
		inputs += len(h.batch)
		if h.relay() == 0 {
			return inputs
		}
	}
	return inputs
}

// relay hands over what was said to the actors of this journal since the last time, and returns how much it was.
func (h *Host) relay() (n int) {
	for ; h.relayed < len(h.out.Effects); h.relayed++ {
		m := &h.out.Effects[h.relayed]
		switch {
		case m.To.Role == protocol.Timer:
			p := h.index[m.From]
			h.wakes[p] = min(h.wakes[p], m.Body.(*protocol.Moment).At)
		case h.ours(m):
			h.fabric.Send(*m)
			n++
		default:
			h.leaving = true
		}
	}
	return n
}

// ours says whether a message is for an actor whose facts are in the same journal, or for its own clock.
func (h *Host) ours(m *protocol.Message) bool {
	_, ours := h.index[m.To]
	return ours || m.To.Role == protocol.Timer
}

// gatherFor is how long facts that nobody waits for may wait for others, to share their sync.
const gatherFor = 25 * time.Millisecond

// gather returns how long this turn's facts may still wait for the next turn's, 0 if they are to be synced now: since something
// leaves with them, somebody looks at the actors or waits for one of the jobs, or they have waited long enough. What a crash takes of
// them it would have taken before they came: whoever they are about says it again.
func (h *Host) gather() time.Duration {
	if len(h.steps) == 0 || h.leaving || len(h.queries) > 0 || h.watches.awaited(h.out.Facts) {
		return 0
	}
	if h.gathering.IsZero() {
		h.gathering = time.Now()
	}
	return max(0, gatherFor-time.Since(h.gathering))
}

// rest is how long nothing is due.
func (h *Host) rest() time.Duration {
	next := quantity.Never
	for _, w := range h.wakes {
		next = min(next, w)
	}
	if next == quantity.Never {
		return time.Hour
	}
	return max(0, next.Sub(h.clock.now()))
}

// ticks gives every actor whose time has come its Tick.
func (h *Host) ticks() (n int) {
	now := h.clock.now()
	for i, w := range h.wakes {
		if w <= now {
			h.wakes[i] = quantity.Never
			m := actor.Tick(h.parties[i].Address)
			h.step(i, &m)
			n++
		}
	}
	return n
}

func (h *Host) step(i int, m *protocol.Message) {
	p, now := &h.parties[i], h.clock.now()
	if !h.recall(p, m) {
		return
	}
	if h.tape != nil {
		h.tape.StepCall(p.Address, now, m)
	}
	h.observer.Message(now, m)
	from, begin := h.mark(), time.Now()
	p.Actor.Step(now, *m, &h.out)
	h.observer.Stepped(p.Address.Role, time.Since(begin))
	h.stepped(p, now, from)
}

// mark is where the next step's facts and effects begin.
func (h *Host) mark() [2]int { return [2]int{len(h.out.Facts), len(h.out.Effects)} }

// stepped signs what an actor just produced: nobody speaks in another's name.
func (h *Host) stepped(p *actor.Party, now quantity.Instant, from [2]int) {
	if h.tape != nil {
		h.tape.Digest(p.Actor.Digest())
	}
	for i := from[0]; i < len(h.out.Facts); i++ {
		h.out.Facts[i].Actor = p.Address
	}
	for i := from[1]; i < len(h.out.Effects); i++ {
		h.out.Effects[i].From = p.Address
	}
	if len(h.out.Facts) > from[0] {
		h.steps = append(h.steps, step{facts: len(h.out.Facts), now: now})
	}
}

// dispatch lets the effects of the turn leave. Their facts are durable.
func (h *Host) dispatch() {
	h.relay()
	for i := range h.out.Effects {
		m := &h.out.Effects[i]
		if h.ours(m) {
			continue
		}
		switch m.To.Role {
		case protocol.Gate, protocol.Zone, protocol.Node:
			h.fabric.Send(*m)
		case protocol.Executor:
			h.executor.Do(*m, h.position)
		case protocol.Archive:
			h.archivist.take(*m)
		case protocol.Person:
			h.calls.reply(*m, h.position)
		case protocol.Bidder:
			h.agents.deliver(m)
		default:
			invariant.Check(false, "a message of kind %d from %v %q has no receiver", m.Kind, m.From.Role, m.From.ID)
		}
	}
	h.agents.settle()
	clear(h.out.Effects) // let go of what the messages point to
	clear(h.out.Facts)
	h.out.Reset()
	h.steps, h.relayed, h.leaving, h.gathering = h.steps[:0], 0, false, time.Time{}
}

// publish hands the executor what the last turn has settled, before the daemon stops. So a stopped daemon has all committed output in its
// place, and a copy of its data directory needs no run directories. Other messages are dropped: they are sent from state at the next start.
func (h *Host) publish() {
	if len(h.records) > 0 { // they are not durable
		return
	}
	for i := range h.out.Effects {
		if m := &h.out.Effects[i]; m.Kind == protocol.Settle && m.To.Role == protocol.Executor {
			h.executor.Do(*m, h.position)
		}
	}
}

// answerQueries answers as many as a turn of the loop has time for, at least one; the others wait for the next turn.
func (h *Host) answerQueries() {
	begin := time.Now()
	for len(h.queries) > 0 {
		h.queries[0](h.clock.now())
		if h.queries = slices.Delete(h.queries, 0, 1); time.Since(begin) >= lookTime {
			return
		}
	}
}

// Close ends a host whose Run has returned or was never called. Closing twice is harmless.
func (h *Host) Close() error {
	var err error
	h.stop.Do(func() {
		if h.recovering > 0 {
			collect(false)
		}
		h.inbox.close()
		h.calls.close(errStopping())
		close(h.done)
		h.background.Wait()
		if h.executor != nil {
			err = errors.Join(err, h.executor.Close())
		}
		if h.archivist != nil {
			err = errors.Join(err, h.archivist.close())
		}
		if h.fabric != nil {
			err = errors.Join(err, h.fabric.Close())
		}
		if h.tape != nil {
			err = errors.Join(err, h.tape.Close())
		}
		if h.journal != nil {
			err = errors.Join(err, h.stopSnapshot(), h.journal.Close())
		}
		if h.opts.Inventory != nil {
			err = errors.Join(err, h.opts.Inventory.Close())
		}
		if h.gpus != nil {
			err = errors.Join(err, h.gpus.Release())
		}
		if h.lock != nil {
			err = errors.Join(err, h.lock.Close()) // the kernel lets go of the lock
		}
	})
	return err
}
