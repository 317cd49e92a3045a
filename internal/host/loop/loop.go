// Package loop is the live driver of the actors. One goroutine owns them: in each turn it takes a batch of inputs, steps, syncs the facts
// of the whole batch, and only then lets effects leave. It takes no scheduling decision and must not look into what messages mean beyond
// where they go.
package loop

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/fabric"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/observe"
	"sluice.dev/sluice/internal/edge/tape"
	"sluice.dev/sluice/internal/host/agents"
	"sluice.dev/sluice/internal/host/archivist"
	"sluice.dev/sluice/internal/host/gather"
	"sluice.dev/sluice/internal/host/heap"
	"sluice.dev/sluice/internal/host/inbox"
	"sluice.dev/sluice/internal/host/machine"
	"sluice.dev/sluice/internal/host/pages"
	"sluice.dev/sluice/internal/host/requests"
	"sluice.dev/sluice/internal/host/snapshots"
	"sluice.dev/sluice/internal/host/space"
	"sluice.dev/sluice/internal/host/trouble"
	"sluice.dev/sluice/internal/host/watches"
	"sluice.dev/sluice/internal/host/workdirs"
)

// maxBatch is how many inputs share one sync, not counting the messages between actors that follow from them. It bounds how long the
// first of them waits for the last.
const maxBatch = 256

// In one turn of the loop queries get lookTime, and no more than maxLooks of them are taken from the inbox.
const (
	lookTime = 2 * time.Millisecond
	maxLooks = 64
)

// Parts are the parts of a daemon that the loop works with.
type Parts struct {
	Parties  []actor.Party
	Clock    *Clock
	Log      *slog.Logger
	Observer *observe.Observer
	Tape     *tape.Writer // nil: no tape
	Guard    status.Guard

	// Where inputs come from, and what is durable of them.
	Inbox     *inbox.Inbox
	Journal   journal.Journal
	Position  journal.Position // where the journal ends
	Snapshots *snapshots.Snapshots
	Heap      *heap.Recovery
	Trouble   *trouble.State
	Space     *space.Space

	// Where effects go, and who gets facts.
	Fabric    fabric.Fabric
	Executor  executor.Executor
	Archivist *archivist.Archivist // nil: jobs stay in memory until they are forgotten
	Calls     *requests.Calls
	Agents    *agents.Agents
	Machine   *machine.Machine
	Views     *pages.Views
	Watches   *watches.Watches
	Workdirs  *workdirs.Keeper
	Gather    *gather.Gatherer // nil: no machine may join
	Lenders   Lenders          // nil: nobody lends machines
}

// Lenders lend machines to the zones of this process.
type Lenders interface {
	// Ordered takes what is to do for a pool. It never blocks, and an order may be lost: the next answers a newer sight.
	Ordered(o *supply.Order)
}

// Loop drives the actors of one journal. No effect leaves before the facts of its step are durable; what the journal did not take is kept
// and tried again when the disk was full. It belongs to the goroutine that opens the daemon, then to that of Run.
type Loop struct {
	to      Parts
	index   map[protocol.Address]int
	wakes   []quantity.Instant // earliest wanted Tick of each party; Never for none
	turn    turn
	writer  writer
	first   []protocol.Message // before anything of the inbox
	batch   []protocol.Message
	queries []inbox.Query
	// waited are the numbers of the last waits that the observer has heard of.
	waited map[job.NodeID]uint64
}

// New returns the loop of these parts.
func New(p Parts) *Loop {
	l := &Loop{
		to: p, index: map[protocol.Address]int{}, wakes: make([]quantity.Instant, len(p.Parties)),
		waited: map[job.NodeID]uint64{},
		writer: writer{journal: p.Journal, observer: p.Observer, position: p.Position},
	}
	for i, party := range p.Parties {
		l.index[party.Address], l.wakes[i] = i, quantity.Never
	}
	return l
}

// Position is where the journal ends.
func (l *Loop) Position() journal.Position { return l.writer.position }

// Recover lets every actor re-issue what is outstanding, and begins a boot in the journal.
func (l *Loop) Recover() error {
	for i := range l.to.Parties {
		p, now := &l.to.Parties[i], l.to.Clock.Now()
		if l.to.Tape != nil {
			l.to.Tape.RecoverCall(p.Address, now)
		}
		from := l.turn.mark()
		p.Actor.Recover(now, &l.turn.out)
		l.stepped(p, now, from)
	}
	if err := l.append(); err != nil {
		return fmt.Errorf("begin a new boot in the journal: %w", err)
	}
	l.dispatch()
	return nil
}

// First are messages that are taken before anything of the inbox.
func (l *Loop) First(list []protocol.Message) { l.first = list }

// Run drives the actors until ctx is done (it returns nil) or nothing can be made durable any more (an error that says why). Within one
// turn every input is stepped, then all facts are synced, then effects leave.
func (l *Loop) Run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		inputs := l.inputs()
		if more := l.gather(); more > 0 && ctx.Err() == nil {
			timer.Reset(min(more, l.rest()))
			select {
			case <-l.to.Inbox.Ping():
			case <-timer.C:
			case <-ctx.Done():
			}
			continue
		}
		if err := l.makeDurable(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			l.handOver()
			return nil
		}
		if done, ok := l.to.Views.Negotiation(); ok {
			l.to.Observer.Negotiated(done)
		}
		l.to.Observer.Strained(l.to.Guard, l.to.Views.Strain(l.to.Clock.Now()))
		for _, w := range l.to.Views.HostWaits(l.waited) {
			l.waited[w.Node] = w.Number
			l.to.Observer.HostWaited(&w)
		}
		l.dispatch()
		if err := l.to.Snapshots.Turn(); err != nil {
			return err
		}
		l.answerQueries()
		l.to.Heap.Turn(inputs == 0 && len(l.queries) == 0)
		if l.to.Tape != nil {
			l.to.Tape.Flush()
		}
		if inputs > 0 || len(l.queries) > 0 {
			continue
		}
		timer.Reset(l.rest())
		select {
		case err := <-l.to.Archivist.Fails():
			return err
		case <-l.to.Inbox.Ping():
		case <-timer.C:
		case room := <-l.to.Snapshots.Room(): // nothing else is to do
			l.to.Snapshots.Capture(room)
		case why := <-l.to.Snapshots.Over():
			if err := l.to.Snapshots.End(why); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// inputs steps what waits and is due, and what the actors of this journal tell each other because of it: until they send no more, or the
// turn has maxBatch inputs. It returns the number of inputs.
//
// What they tell each other need not wait for the sync: the receiver's facts come later in the same journal, and a crash cuts off a suffix
// of whole steps. So no crash keeps the second of two facts alone, and nobody outside the journal knows of either.
func (l *Loop) inputs() (n int) {
	n = l.ticks()
	for n < maxBatch {
		l.batch, l.queries = l.to.Inbox.Take(maxBatch, maxLooks, append(l.batch[:0], l.first...), l.queries)
		l.first = nil
		for i := range l.batch {
			l.address(&l.batch[i])
			if p, ok := l.index[l.batch[i].To]; ok {
				l.step(p, &l.batch[i])
			}
		}
		n += len(l.batch)
		if l.relay() == 0 {
			return n
		}
	}
	return n
}

// relay delivers the new messages between actors of this journal, and returns how many there were.
func (l *Loop) relay() (n int) {
	for ; l.turn.relayed < len(l.turn.out.Effects); l.turn.relayed++ {
		m := &l.turn.out.Effects[l.turn.relayed]
		switch {
		case m.To.Role == protocol.Timer:
			p := l.index[m.From]
			l.wakes[p] = min(l.wakes[p], m.Body.(*protocol.Moment).At)
		case l.ours(m):
			l.to.Fabric.Send(*m)
			n++
		case !patient(m.Kind):
			l.turn.leaving = true
		}
	}
	return n
}

// patient reports whether nobody waits for a message: it may wait with the facts that it tells of (see gather).
func patient(k protocol.Kind) bool { return k == protocol.Running }

// ours reports whether a message is for an actor whose facts are in the same journal, or for its own clock.
func (l *Loop) ours(m *protocol.Message) bool {
	_, ours := l.index[m.To]
	return ours || m.To.Role == protocol.Timer
}

// gather returns how long this turn's facts may still wait for the next turn's, 0 if they are to be synced now: since something
// leaves with them, somebody looks at the actors or waits for one of the jobs, or they have waited long enough. Losing them in a crash is
// like losing the messages that caused them: their senders send them again.
func (l *Loop) gather() time.Duration {
	if len(l.turn.steps) == 0 || l.turn.leaving || len(l.queries) > 0 || l.to.Watches.Awaited(l.turn.out.Facts) {
		return 0
	}
	return l.turn.gather()
}

// rest returns how long nothing is due.
func (l *Loop) rest() time.Duration {
	next := quantity.Never
	for _, w := range l.wakes {
		next = min(next, w)
	}
	if next == quantity.Never {
		return time.Hour
	}
	return max(0, next.Sub(l.to.Clock.Now()))
}

// ticks gives every actor whose time has come its Tick.
func (l *Loop) ticks() (n int) {
	now := l.to.Clock.Now()
	for i, w := range l.wakes {
		if w <= now {
			l.wakes[i] = quantity.Never
			m := actor.Tick(l.to.Parties[i].Address)
			l.step(i, &m)
			n++
		}
	}
	return n
}

func (l *Loop) step(i int, m *protocol.Message) {
	p, now := &l.to.Parties[i], l.to.Clock.Now()
	if !l.recall(p, m) {
		return
	}
	if l.to.Tape != nil {
		l.to.Tape.StepCall(p.Address, now, m)
	}
	l.to.Observer.Message(now, m)
	from, begin := l.turn.mark(), time.Now()
	p.Actor.Step(now, *m, &l.turn.out)
	l.to.Observer.Stepped(p.Address.Role, time.Since(begin))
	l.stepped(p, now, from)
}

// address completes a message: a node's part of the report on the machine's memory, and the receiver of an agent's message.
func (l *Loop) address(m *protocol.Message) {
	l.to.Machine.Fill(m)
	if m.From.Role == protocol.Bidder && m.To.ID == "" {
		m.To.ID = string(l.to.Views.Home(m.Job))
	}
}

// recall hands an actor what it has archived of the job that a message is about. It returns false where that can't be read.
func (l *Loop) recall(p *actor.Party, m *protocol.Message) bool {
	err := l.to.Archivist.Recall(p, m)
	if err != nil {
		l.unreadable(m, err)
	}
	return err == nil
}

// unreadable answers a person whose job's record can't be read; any other sender sends the message again.
func (l *Loop) unreadable(m *protocol.Message, err error) {
	l.to.Log.Error("what was archived of a job can not be read", "job", string(m.Job), "error", err)
	if m.From.Role == protocol.Person {
		said := &protocol.Receipt{Request: m.Body.(protocol.Requested).RequestID(), Err: errkind.Errorf(errkind.Of(err), "job %s: %w",
			m.Job, err)}
		l.to.Calls.Reply(protocol.Message{Kind: protocol.Reply, Body: said, Job: m.Job}, l.writer.position)
	}
}

// stepped takes what an actor just produced.
func (l *Loop) stepped(p *actor.Party, now quantity.Instant, from [2]int) {
	if l.to.Tape != nil {
		l.to.Tape.Digest(p.Actor.Digest())
	}
	l.turn.sign(p.Address, now, from)
}

// dispatch lets the effects of the turn leave. Their facts are durable.
func (l *Loop) dispatch() {
	l.relay()
	for i := range l.turn.out.Effects {
		m := &l.turn.out.Effects[i]
		if l.ours(m) {
			continue
		}
		switch m.To.Role {
		case protocol.Gate, protocol.Zone, protocol.Node:
			l.to.Fabric.Send(*m)
		case protocol.Executor:
			l.to.Executor.Do(*m, l.writer.position)
		case protocol.Archive:
			l.to.Archivist.Take(*m)
		case protocol.Person:
			if m.To.ID != "" { // at the head
				l.to.Fabric.Send(*m)
				continue
			}
			l.to.Calls.Reply(*m, l.writer.position)
		case protocol.Bidder:
			l.to.Agents.Deliver(m)
		case protocol.Provider:
			if l.to.Lenders != nil {
				l.to.Lenders.Ordered(m.Body.(*supply.Order))
			}
		default:
			invariant.Check(false, "a message of kind %d from %v %q has no receiver", m.Kind, m.From.Role, m.From.ID)
		}
	}
	l.to.Agents.Settle()
	l.turn.reset()
}

// handOver hands the executor what the last turn has settled, before the daemon stops. So a stopped daemon has all committed output in its
// place, and a copy of its data directory needs no run directories. Other messages are dropped: they are sent from state at the next start.
func (l *Loop) handOver() {
	if len(l.writer.records) > 0 { // they are not durable
		return
	}
	for i := range l.turn.out.Effects {
		if m := &l.turn.out.Effects[i]; m.Kind == protocol.Settle && m.To.Role == protocol.Executor {
			l.to.Executor.Do(*m, l.writer.position)
		}
	}
}

// answerQueries answers as many as a turn of the loop has time for, at least one; the others wait for the next turn.
func (l *Loop) answerQueries() {
	begin := time.Now()
	for len(l.queries) > 0 {
		l.queries[0](l.to.Clock.Now())
		if l.queries = slices.Delete(l.queries, 0, 1); time.Since(begin) >= lookTime {
			return
		}
	}
}

// makeDurable appends the facts of the turn to the journal. While the disk is full, or no file descriptor is left, it keeps them, answers
// queries and tries again; it returns without having appended them only when ctx is done, and then no effect may leave. Any other error is
// final.
func (l *Loop) makeDurable(ctx context.Context) error {
	wait := trouble.RetryFirst
	for {
		err := l.append()
		l.to.Space.NoteAppend(err)
		if err == nil {
			l.to.Trouble.Resume()
			return nil
		}
		if errkind.Of(err) != errkind.Exhausted {
			return errkind.Errorf(errkind.Of(err), "the journal takes no more, and nothing may be decided without it "+
				"(nothing was lost; running subjobs go on): %w", err)
		}
		if was, bad := l.to.Snapshots.GiveUp(err); was { // its file so far is space to regain
			if bad != nil {
				return bad
			}
			continue
		}
		l.to.Calls.Interrupt(l.to.Trouble.Stop(err))
		if !l.sleep(ctx, wait) {
			return nil
		}
		wait = min(2*wait, trouble.RetryLast)
	}
}

// append makes the facts of the turn durable, and tells the observers. After an error it may be called again and goes on where it was.
func (l *Loop) append() error {
	if len(l.turn.steps) == 0 {
		return nil
	}
	if err := l.writer.append(&l.turn); err != nil {
		return err
	}
	l.tellObservers()
	return nil
}

// tellObservers tells those who follow facts of the turn's, which are durable.
func (l *Loop) tellObservers() {
	from := 0
	for _, s := range l.turn.steps {
		for i := from; i < s.facts; i++ {
			f := &l.turn.out.Facts[i]
			l.to.Observer.Fact(s.now, f)
			l.to.Workdirs.Fact(f)
			l.to.Gather.Fact(f)
			l.to.Agents.Fact(f)
		}
		l.to.Workdirs.Tidy(s.now)
		from = s.facts
	}
	l.to.Watches.Wake(l.turn.out.Facts[:from])
}

// sleep waits for d and goes on answering queries. It returns false if ctx was done first.
func (l *Loop) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		for len(l.queries) > 0 {
			l.answerQueries()
		}
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		case <-l.to.Inbox.Ping():
			_, l.queries = l.to.Inbox.Take(0, maxLooks, nil, l.queries)
		}
	}
}
