// Package pressure is a node's side of Airlock: its executor reports what its host's memory is like, core/airlock decides who gives way,
// and the leases follow. While the memory is over the severe line nothing is granted and nothing begins, and nothing that is suspended for
// it does so longer than the timer of an entry.
//
// Where several nodes share a machine its memory is one, and who gives way is found among the subjobs of all: each node gets in the same
// report what the others know of theirs, decides on all of them, and carries out what concerns its own. The same snapshot has the same
// victims, so they need not talk.
//
// All of it is soft: a restarted node resumes everything that it finds suspended, and knows no earlier entry.
package pressure

import (
	"cmp"
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/holds"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/node/leases"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Pressure watches the memory of one node's host, and decides what is suspended, asked to yield or ended.
type Pressure struct {
	cfg       airlock.Config
	inventory *inventory.Inventory
	holds     *holds.Holds
	leases    *leases.Leases
	stands    *leases.Stands
	lock      *airlock.Airlock // nil until the first report
	strain    *protocol.Strain // the last report
	table     table            // made of it and of what the leases are doing
	// share that is used, in parts per thousand, as long as the report is not old.
	share uint16
	old   quantity.Instant // 0: there is no report
	// owed is memory that ended subjobs have released and the host does not show yet, and owes how much of it that was at the last report.
	owed airlock.Owed
	owes quantity.Amount
	// ending are those subjobs.
	ending []ending
	// left is the room that is kept for subjobs that had to leave because memory ran short: the largest planned peak among them, at most
	// half of what may be used below the severe line; 0: none had to. Nothing is granted while there is no room for one more of that size,
	// nor redeemed, but on an empty machine; leases that are already sold still begin. Without that they come back as soon as it is calm
	// and have to leave again. It is cleared once there is room for one on every idle slice, or at until: those that left may never return.
	left  quantity.Amount
	until quantity.Instant
	// words explain the last decision that did anything, for people.
	words string
	// due is when an entry is to be looked at, reports or not; 0: there is none.
	due quantity.Instant
	// watch is the life of the watcher that decides; 0: the node does.
	watch   uint64
	history history
}

// ending is a subjob that was told to end for want of memory, at any node of the machine, with the memory it had in the last report. It is
// kept apart from its lease, which may be gone before the next report; a subjob of another node has no lease here.
type ending struct {
	token    job.Token
	resident quantity.Amount
}

// New returns the pressure on a node without a report yet.
func New(c airlock.Config, i *inventory.Inventory, h *holds.Holds, l *leases.Leases, r *leases.Runner) *Pressure {
	return &Pressure{cfg: c, inventory: i, holds: h, leases: l, stands: leases.NewStands(r), table: table{inventory: i, leases: l}}
}

// Share of the memory that is used, in parts per thousand; 0: not known.
func (p *Pressure) Share() uint16 { return p.share }

// Words explain the last decision that did anything, for people.
func (p *Pressure) Words() string { return p.words }

// Next is when something is to be done without a report.
func (p *Pressure) Next() quantity.Instant {
	next := quantity.Never
	for _, at := range [...]quantity.Instant{p.due, p.old, p.until} {
		if at != 0 {
			next = min(next, at)
		}
	}
	return next
}

// Tally updates the totals for people. Each step of the node begins with it.
func (p *Pressure) Tally(now quantity.Instant) {
	p.history.tally(now, p.leases.Counts().Standing, p.old)
}

// Report handles a report on the host's memory, and acts on it.
func (p *Pressure) Report(now quantity.Instant, s *protocol.Strain, out *protocol.Out) {
	if p.lock == nil {
		p.lock = airlock.New(p.cfg)
	}
	p.owes = p.owed.Look(now, s.Used, p.released(s))
	p.strain, p.old = s, now.Add(p.lock.Config().Timer)
	d := p.decision(now, s, out)
	p.history.reading, p.history.at, p.history.room = d.Reading, now, d.Room
	p.share = uint16(min(d.Share, 1000))
	// Until it is calm and nothing is suspended: what was suspended comes before what is new. Where nothing of ours is left there is
	// nobody to wait for: what others have of the memory between the lines they may have for good.
	was := p.inventory.Short()
	if short := d.Level >= airlock.Severe || was && (d.ParkedTasks > 0 || d.Level != airlock.Calm && p.runsAny()); short != was {
		p.words = d.String()
		p.inventory.SetMemory(short, p.inventory.Full())
	}
	if s.Watch == 0 {
		p.carryOut(now, d, out)
	}
}

// runsAny says whether the executor has anything of this machine's nodes.
func (p *Pressure) runsAny() bool { return len(p.strain.Others) > 0 || p.leases.AnyRuns() }

// decision is the node's own, or what it hears of the watcher's.
func (p *Pressure) decision(now quantity.Instant, s *protocol.Strain, out *protocol.Out) *airlock.Decision {
	p.succeed(now, s)
	if s.Watch != 0 {
		return p.follow(now, s, out)
	}
	snapshot := p.snapshot()
	p.ending = p.ending[:0]
	for i := range p.table.tasks {
		if t := &p.table.tasks[i]; t.State == airlock.Reclaiming {
			p.ends(t)
		}
	}
	return p.lock.Decide(now, &snapshot)
}

// succeed: another decides than at the last report. Everything goes on when a watcher begins, and when it ends.
func (p *Pressure) succeed(now quantity.Instant, s *protocol.Strain) {
	if s.Watch == p.watch {
		return
	}
	p.watch = s.Watch
	for _, l := range p.leases.Ordered() {
		p.stands.GoOn(l, now)
	}
}

// snapshot is that of the last report and of what the leases are doing now. The other nodes' subjobs are in it as long as the report is not
// old.
func (p *Pressure) snapshot() airlock.Snapshot {
	p.table.make(p.strain.Uses, p.due != 0)
	if p.old != 0 {
		p.table.addOthers(p.strain.Others)
	}
	s := p.strain
	return airlock.Snapshot{Capacity: s.Capacity, Used: s.Used, Growth: s.Growth, Room: s.Room, Stall: s.Stall, Owed: p.owes,
		Tasks: p.table.tasks}
}

// released is what subjobs that were ended, at all nodes of the machine, have released since the last report. One whose process tree is
// confirmed gone has released all, even if the report was measured before that and still lists it.
func (p *Pressure) released(s *protocol.Strain) (all quantity.Amount) {
	for _, e := range p.ending {
		has := quantity.Amount(0)
		if k := slices.IndexFunc(s.Uses, func(u protocol.Use) bool { return u.Token == e.token }); k >= 0 {
			if l := p.leases.Of(e.token); l != nil && !l.Vacated() {
				has = s.Uses[k].Resident
			}
		} else if k := slices.IndexFunc(s.Others, func(o protocol.Neighbour) bool { return o.Token == e.token }); k >= 0 {
			has = s.Others[k].Resident
		}
		all += max(0, e.resident-has)
	}
	return all
}

// ends adds a subjob that is ended to those, once.
func (p *Pressure) ends(t *airlock.Task) {
	if t.Resident > 0 && !slices.ContainsFunc(p.ending, func(e ending) bool { return e.token == t.Token }) {
		p.ending = append(p.ending, ending{t.Token, t.Resident})
	}
}

// Overdue ends entries whose time is over, also where the executor is silent, and the effects of a report that is old: pressure is no
// longer reported, and a node without reports would otherwise never sell again. An entry that is suspended keeps its own timer.
func (p *Pressure) Overdue(now quantity.Instant, out *protocol.Out) {
	if p.old != 0 && now >= p.old {
		p.inventory.SetMemory(false, false)
		p.old, p.left, p.until, p.share = 0, 0, 0, 0
	}
	if p.due == 0 || now < p.due {
		return
	}
	snapshot := p.snapshot()
	p.carryOut(now, p.lock.Overdue(now, &snapshot), out)
}

// carryOut has leases do what was decided.
func (p *Pressure) carryOut(now quantity.Instant, d *airlock.Decision, out *protocol.Out) {
	if len(d.Actions) > 0 {
		p.words = d.String()
		p.history.note(now, &p.table, p.lock.Config(), d)
	}
	for _, a := range d.Actions {
		t := &p.table.tasks[a.Task]
		if a.Step >= airlock.Readdress {
			p.leaves(now, t.Planned, t.Resident)
		}
		if a.Step == airlock.Reclaim {
			p.ends(t)
		}
		if a.Task >= len(p.table.of) { // another node's, which decides the same of it
			continue
		}
		l := p.table.of[a.Task]
		// Why a subjob is ended for its node's memory, for its owner.
		why := func() string { return fmt.Sprintf("%s: %v (%v)", inventory.ShortOfMemory, a.Cause, &d.Reading) }
		switch a.Step {
		case airlock.Suspend:
			p.stands.Suspend(now, l, out)
		case airlock.Resume:
			p.stands.Resume(now, l, out)
		case airlock.Readdress:
			p.stands.Yield(now, l, why(), out)
		case airlock.Reclaim:
			p.stands.Reclaim(now, l, why(), out)
		}
	}
	p.due = 0
	cfg := p.lock.Config()
	for _, l := range p.table.of {
		stand := l.Stand()
		if stand.Since == 0 || stand.Reclaimed {
			continue
		}
		at := stand.Since.Add(cfg.Timer)
		if l.Phase() != leases.Stopping && l.Terms().Rank.Yields {
			if early := at.Add(-cfg.Yield); early > now {
				at = early
			}
		}
		if p.due == 0 || at < p.due {
			p.due = at
		}
	}
}

// follow applies the acts of the machine's watcher, which decides while it is alive: it reports the state of each subjob, and the leases
// change to that, however many reports were lost. Only the node can ask a subjob to yield, and say why one is ended.
func (p *Pressure) follow(now quantity.Instant, s *protocol.Strain, out *protocol.Out) *airlock.Decision {
	d := p.lock.Overdue(now, &airlock.Snapshot{Capacity: s.Capacity, Used: s.Used, Growth: s.Growth, Room: s.Room, Stall: s.Stall})
	p.noteWatched(now, s, d)
	for i := range s.Uses {
		u := &s.Uses[i]
		l := p.leases.Of(u.Token)
		if l == nil || !counts(l) {
			continue
		}
		if u.Stand.State == protocol.IsSuspended {
			d.ParkedTasks++
			d.Parked += u.Parked
		}
		if p.stands.Follow(now, l, &u.Stand, d.Reading.String, out) {
			of := l.Terms()
			p.leaves(now, p.table.planned(&of), u.Resident)
			p.words = l.Why()
		}
	}
	for i := range s.Others {
		if t := taskOf(&s.Others[i]); t.State == airlock.Suspended {
			d.ParkedTasks++
			d.Parked += t.Parked
		}
	}
	p.due = 0 // entries are the watcher's to end
	return d
}

// Stood records that a subjob is suspended, or goes on.
func (p *Pressure) Stood(now quantity.Instant, t job.Token, s *protocol.Stillness, out *protocol.Out) {
	l := p.leases.Of(t)
	if l == nil {
		return
	}
	if s.Refused && l.Phase() == leases.Suspending {
		p.noteOne(now, l, refused)
	}
	p.stands.Stood(now, l, s, out)
}

// Neighbours are this node's subjobs for the others of its machine, with what they use. It changes nothing that is decided by, and may be
// called between any two steps.
func (p *Pressure) Neighbours(uses []protocol.Use) []protocol.Neighbour {
	p.table.make(uses, p.due != 0)
	list := make([]protocol.Neighbour, 0, len(p.table.tasks))
	for i, l := range p.table.of {
		t := &p.table.tasks[i]
		list = append(list, protocol.Neighbour{
			Use: protocol.Use{
				Token: t.Token, Resident: t.Resident, Parked: t.Parked, Growth: t.Growth,
				Stand: protocol.Stand{Since: t.Since, Resumed: t.Resumed, Times: t.Entries},
			},
			Job: l.Job(), Start: t.Start, Planned: t.Planned, Rank: l.Terms().Rank, State: uint8(t.State), Bound: t.Bound,
		})
	}
	return list
}

// noteWatched records the watcher's acts since its last report, as if the node had decided them. It uses the leases before they follow.
func (p *Pressure) noteWatched(now quantity.Instant, s *protocol.Strain, d *airlock.Decision) {
	for i := range s.Uses {
		l := p.leases.Of(s.Uses[i].Token)
		if l == nil || !counts(l) {
			continue
		}
		of := l.Terms()
		a := doneTo(l, &s.Uses[i], &d.Reading, p.table.planned(&of))
		if a.Step == 0 {
			continue
		}
		if len(d.Actions) == 0 {
			p.snapshot()
		}
		if a.Task = slices.Index(p.table.of, l); a.Task >= 0 {
			d.Actions = append(d.Actions, a)
		}
	}
	if len(d.Actions) == 0 {
		return
	}
	p.lock.Account(now, p.table.tasks, d)
	p.history.note(now, &p.table, p.lock.Config(), d)
}

// noteOne records how a subjob ended, or what somebody other than this node did to it, with the memory of the last report.
func (p *Pressure) noteOne(now quantity.Instant, l *leases.Lease, what deed) *step {
	e := p.history.of(now, l, what)
	e.reading = p.history.reading
	p.snapshot()
	if i := slices.Index(p.table.of, l); i >= 0 {
		e.place = airlock.RankingOf(now, &p.table.tasks[i])
	}
	return p.history.keep(e)
}

// NoteEnd records the end of a subjob to which something was done, and counts those that were ended for their slice's memory.
func (p *Pressure) NoteEnd(now quantity.Instant, l *leases.Lease, r *job.Result) {
	if r.Outcome == job.MemoryKilled {
		p.history.killed++
	}
	if l.Stand() == (leases.Stand{}) {
		return
	}
	e := p.noteOne(now, l, ended)
	e.outcome, e.progress = r.Outcome, r.Progress
}

// comeback is for how many timers of an entry room is kept for what had to leave, from when the last one had to: its home may have found it
// another place, or its next piece needs less.
const comeback = 4

// leaves notes that a subjob has to leave, with its planned peak (0: not known) and its memory. One that had more than half of the memory
// counts as half: a host is not kept nearly empty for it.
func (p *Pressure) leaves(now quantity.Instant, planned, has quantity.Amount) {
	planned = cmp.Or(planned, has)
	if p.left = max(p.left, min(planned, p.severe()/2)); p.left > 0 {
		p.until = now.Add(comeback * p.lock.Config().Timer)
	}
}

// severe is how much of the host's memory may be used below the severe line.
func (p *Pressure) severe() quantity.Amount { return line(p.strain.Capacity, p.lock.Config().Severe) }

// line is the amount of memory at a line of this many parts per thousand.
func line(capacity quantity.Amount, permille int64) quantity.Amount {
	return quantity.Amount(quantity.MulDiv(int64(capacity), permille, 1000))
}

// Fill finds whether there is room for one more of those that had to leave, and forgets that they had to once there is for all that could
// come, or after a while.
func (p *Pressure) Fill(now quantity.Instant) {
	if p.left == 0 {
		return
	}
	used, idle := p.taken(now)
	p.holds.Begun(now, func(_ job.Token, slices int) { used, idle = used+p.left, idle-quantity.Amount(slices) })
	severe := p.severe()
	full := used+p.left > severe
	if now >= p.until || used+p.left*max(1, idle) <= severe {
		p.left, p.until, full = 0, 0, false
	}
	p.inventory.SetMemory(p.inventory.Short(), full)
}

// Honours reports whether a hold may be redeemed as far as memory goes. Where something runs there has to be room for one more beside it,
// since they may outgrow their plans again. On an empty machine, which would stay idle although there is room, it is enough that the room
// that was found for the hold is still there, beside the holds made before it: where several together fill the memory, the first must not
// be refused for the others.
func (p *Pressure) Honours(now quantity.Instant, t job.Token) bool {
	if !p.inventory.Full() {
		return true
	}
	used, idle := p.taken(now)
	if idle < quantity.Amount(len(p.inventory.All())) || len(p.strain.Others) > 0 {
		return false
	}
	begun := false
	p.holds.Begun(now, func(of job.Token, _ int) {
		if of.Compare(t) <= 0 {
			used += p.left
		}
		begun = begun || of == t
	})
	return !begun || used <= p.severe()
}

// taken is the memory that is used, or will be by leases whose time has begun, and on how many slices there is none.
func (p *Pressure) taken(now quantity.Instant) (used, idle quantity.Amount) {
	used, idle = p.strain.Used, quantity.Amount(len(p.inventory.All()))
	for _, l := range p.leases.Ordered() {
		of := l.Terms()
		if l.Vacated() || of.Start > now {
			continue
		}
		idle -= 1 + quantity.Amount(len(of.Also))
		if l.Phase() <= leases.Running {
			used += max(0, p.table.planned(&of)-resident(p.strain.Uses, &of))
		}
	}
	return used, idle
}

// resident is how much memory a lease's subjob has by a report.
func resident(uses []protocol.Use, of *leases.Terms) quantity.Amount {
	for i := range uses {
		if uses[i].Token == of.Token {
			return uses[i].Resident
		}
	}
	return 0
}
