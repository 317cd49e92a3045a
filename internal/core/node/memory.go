package node

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// The node's side of Airlock: its executor says what the host's memory is like, core/airlock decides, and the leases take their turns. All of it is
// soft: a node that starts again has everything go on that it finds standing still, and knows of no entry before.

// shortOfMemory is why a node over the severe line grants nothing, for people.
const shortOfMemory = "the node is short of memory"

// memory is what the node knows of its host's.
type memory struct {
	lock *airlock.Airlock // nil until the first word of it
	// strain is the last word, tasks the table made of it, and of the lease of each.
	strain *protocol.Strain
	tasks  []airlock.Task
	leases []*lease
	// short: nothing is granted and nothing begins. share that is used, in parts per thousand. Both hold until the word that they follow from is old.
	short bool
	share uint16
	old   quantity.Instant // 0: there is no word
	// owed is what subjobs that were ended have let go of and the host does not show yet, and owes what of it was at the last word.
	owed airlock.Owed
	owes quantity.Amount
	// dying are those subjobs, with the memory that they had in the last report.
	dying []dying
	// left is the largest probable peak of those that had to leave since there was no room, half of what may be used at most; 0: none had to. While they
	// would not all find room again, one on each idle slice, full says whether there is none for the next: nothing is granted, and what is sold begins.
	// Without that they come back as soon as it is calm, and have to leave again. It ends at until, whatever room there is then: who left may be gone for good.
	left  quantity.Amount
	until quantity.Instant
	full  bool
	// words explain the last decision that did anything, for people.
	words string
	// due is when an entry is to be looked at, whether or not the executor says anything until then; 0: none stands.
	due quantity.Instant
	// watch is the life of the watcher that decides; 0: the node does.
	watch uint64
	record
}

// stand is what Airlock has done to a lease.
type stand struct {
	// since is when its entry began, resumed when its last one ended by going on; 0: none.
	since, resumed quantity.Instant
	times          uint8
	// asked to yield for want of memory; reclaimed: it is ended at once.
	asked, reclaimed bool
}

// press takes in what the host's memory is like, and does what is to be done.
func (n *Node) press(now quantity.Instant, s *protocol.Strain, out *protocol.Out) {
	if n.memory.lock == nil {
		n.memory.lock = airlock.New(n.cfg.Airlock)
	}
	n.memory.owes = n.memory.owed.Look(now, s.Used, n.let(s))
	n.memory.strain, n.memory.old = s, now.Add(n.memory.lock.Config().Timer)
	d := n.decision(now, s, out)
	n.memory.read(now, d)
	n.memory.share = uint16(min(d.Share, 1000))
	// Until it is calm and nothing stands still: what was suspended comes before what is new. Where nothing of ours is left there is nobody to wait for: what
	// others have of the memory between the lines they may have for good.
	if short := d.Level >= airlock.Severe || n.memory.short && (d.ParkedTasks > 0 || d.Level != airlock.Calm && n.runsAny()); short != n.memory.short {
		n.memory.short, n.memory.words = short, d.String()
		n.showMemory()
	}
	if s.Watch == 0 {
		n.carryOut(now, d, out)
	}
}

// decision is the node's own, or what it hears of the watcher's.
func (n *Node) decision(now quantity.Instant, s *protocol.Strain, out *protocol.Out) *airlock.Decision {
	if s.Watch != 0 {
		return n.follow(now, s, out)
	}
	n.succeed(now, s)
	snapshot := n.table()
	n.memory.renewDying()
	return n.memory.lock.Decide(now, &snapshot)
}

// runsAny says whether the executor has anything of this machine's nodes.
func (n *Node) runsAny() bool {
	if len(n.memory.strain.Others) > 0 {
		return true
	}
	for _, l := range n.leases { //sluice:sorted it only says whether there is one
		if l.issued() && !l.vacated() {
			return true
		}
	}
	return false
}

// showMemory has every slice offered anew: whether there is memory has changed.
func (n *Node) showMemory() {
	for _, s := range n.slices {
		n.show(s)
	}
}

// forgetMemory ends what follows from a word that is old: nobody speaks of pressure any more, and a node that is told nothing would else sell nothing for
// good. An entry that stands still keeps its own timer.
func (n *Node) forgetMemory(now quantity.Instant) {
	m := &n.memory
	if m.old == 0 || now < m.old {
		return
	}
	if m.short || m.full {
		n.showMemory()
	}
	m.old, m.short, m.full, m.left, m.until, m.share = 0, false, false, 0, 0, 0
}

// comeback is for how many timers of an entry room is kept for what had to leave, from when the last one had to: its home may have found it another place, or
// its next piece needs less.
const comeback = 4

// fill says whether there is room for one more of those that had to leave, and forgets that they had to once there is for all that could come, or after a while.
func (n *Node) fill(now quantity.Instant) {
	m := &n.memory
	if m.left == 0 {
		return
	}
	used, coming, idle := m.strain.Used, quantity.Amount(0), quantity.Amount(len(n.slices))
	for _, l := range n.byToken() {
		if l.vacated() || l.start > now {
			continue
		}
		idle -= 1 + quantity.Amount(len(l.also))
		if l.phase <= leaseRunning {
			coming += max(0, n.planned(l)-n.resident(l.token))
		}
	}
	for _, g := range n.grants {
		if g.start <= now {
			coming, idle = coming+m.left, idle-1-quantity.Amount(len(g.also))
		}
	}
	line := n.severe()
	full := used+coming+m.left > line
	if now >= m.until || used+coming+m.left*max(1, idle) <= line {
		m.left, m.until, full = 0, 0, false
	}
	if full != m.full {
		m.full = full
		n.showMemory()
	}
}

// severe is how much of the host's memory may be used below the severe line.
func (n *Node) severe() quantity.Amount {
	return quantity.Amount(quantity.MulDiv(int64(n.memory.strain.Capacity), n.memory.lock.Config().Severe, 1000))
}

// planned is what a lease was to have of the host's memory at most; 0: not known, as of a slice that has memory of its own, which a GPU's is.
func (n *Node) planned(l *lease) quantity.Amount {
	if s := n.slice(l.slice); s == nil || !s.hosted() {
		return 0
	}
	return l.demand[trp.Memory]
}

// resident is what a lease has of the memory by the last word.
func (n *Node) resident(t job.Token) quantity.Amount {
	for i := range n.memory.strain.Uses {
		if u := &n.memory.strain.Uses[i]; u.Token == t {
			return u.Resident
		}
	}
	return 0
}

// leaves notes that somebody has to leave, of whom a peak was planned (0: not known) and who has so much. Who had more than half of the memory counts as
// half: a host that is nearly empty is not kept so for it.
func (n *Node) leaves(now quantity.Instant, planned, has quantity.Amount) {
	if planned == 0 {
		planned = has
	}
	m := &n.memory
	if m.left = max(m.left, min(planned, n.severe()/2)); m.left > 0 {
		m.until = now.Add(comeback * m.lock.Config().Timer)
	}
}

// overdue ends entries whose time is over, also where the executor is silent.
func (n *Node) overdue(now quantity.Instant, out *protocol.Out) {
	n.forgetMemory(now)
	if n.memory.due == 0 || now < n.memory.due {
		return
	}
	snapshot := n.table()
	n.carryOut(now, n.memory.lock.Overdue(now, &snapshot), out)
}

// table makes the snapshot of the last word and of what the leases are doing now. Behind them come the other nodes' subjobs, as long as the word is not old.
func (n *Node) table() airlock.Snapshot {
	m := &n.memory
	n.tabulate(m.strain.Uses)
	if m.old != 0 {
		for i := range m.strain.Others {
			if len(m.tasks) < airlock.MaxTasks {
				m.tasks = append(m.tasks, taskOf(&m.strain.Others[i]))
			}
		}
	}
	return airlock.Snapshot{Capacity: m.strain.Capacity, Used: m.strain.Used, Growth: m.strain.Growth, Room: m.strain.Room,
		Stall: m.strain.Stall, Owed: m.owes, Tasks: m.tasks}
}

// tabulate makes tasks of the leases that run, with what they use.
func (n *Node) tabulate(uses []protocol.Use) {
	m := &n.memory
	m.tasks, m.leases = m.tasks[:0], m.leases[:0]
	if m.due != 0 { // an entry is timed whether or not the executor names its subjob
		for _, l := range n.byToken() {
			if l.stand.since != 0 {
				n.list(l, nil)
			}
		}
	}
	for i := range uses {
		if l := n.lease(uses[i].Token); l != nil {
			n.list(l, &uses[i])
		}
	}
}

// list puts a lease in the table, with what it has of the memory, as far as that is known.
func (n *Node) list(l *lease, u *protocol.Use) {
	m := &n.memory
	if !l.runs() && l.phase != leaseStopping {
		return
	}
	i := slices.Index(m.leases, l)
	if i < 0 {
		if len(m.tasks) == airlock.MaxTasks {
			return
		}
		i = len(m.leases)
		m.leases = append(m.leases, l)
		m.tasks = append(m.tasks, airlock.Task{
			Token: l.token, Start: l.at, Planned: n.planned(l), Since: l.stand.since, Resumed: l.stand.resumed, Priority: l.rank.Priority, Value: l.rank.Value, Class: classes[l.rank.Class],
			State: l.suspension(), Entries: l.stand.times, Bound: l.plan.Members > 0 || l.restless, Yields: l.rank.Yields,
		})
	}
	if u != nil {
		m.tasks[i].Resident, m.tasks[i].Parked, m.tasks[i].Growth = u.Resident, u.Parked, u.Growth
	}
}

var classes = [protocol.Classes]airlock.Class{ //nolint:gochecknoglobals // a table, written to by nobody
	protocol.Fleeting: airlock.Fleeting, protocol.Lasting: airlock.Lasting, protocol.Collective: airlock.Collective,
}

// suspension is what Airlock is doing with a lease that runs or is being stopped.
func (l *lease) suspension() airlock.State {
	switch {
	case l.stand.reclaimed:
		return airlock.Reclaiming
	case l.phase == leaseStopping && l.stand.asked:
		return airlock.Readdressing
	case l.phase == leaseStopping:
		return airlock.Ending
	case l.phase == leaseSuspending:
		return airlock.Suspending
	case l.phase == leaseSuspended:
		return airlock.Suspended
	case l.phase == leaseResuming:
		return airlock.Resuming
	default:
		return airlock.Running
	}
}

// standing says what Airlock is doing to a lease, since when and until when, for people; empty: nothing.
func (n *Node) standing(l *lease) string {
	if l.stand.since == 0 && !l.stand.reclaimed {
		return ""
	}
	switch ends := l.stand.since.Add(n.memory.lock.Config().Timer); {
	case l.stand.reclaimed:
		return "ended: " + l.why
	case l.stand.asked:
		return fmt.Sprintf("asked to yield since %s, ended at %s: %s", clock(l.stand.since), clock(ends), l.why)
	case l.phase == leaseSuspending || l.phase == leaseSuspended:
		return fmt.Sprintf("suspended since %s, for the %s time; it goes on or is ended at %s: %s", clock(l.stand.since), ordinals[min(int(l.stand.times), len(ordinals)-1)], clock(ends), shortOfMemory)
	default:
		return ""
	}
}

var ordinals = [...]string{"", "first", "second", "third", "next"} //nolint:gochecknoglobals // a table, written to by nobody

// carryOut has leases take the turns that were decided.
func (n *Node) carryOut(now quantity.Instant, d *airlock.Decision, out *protocol.Out) {
	if len(d.Actions) > 0 {
		n.memory.words = d.String()
		n.note(now, d)
	}
	for _, a := range d.Actions {
		t := &n.memory.tasks[a.Task]
		if a.Step >= airlock.Readdress {
			n.leaves(now, t.Planned, t.Resident)
		}
		if a.Step == airlock.Reclaim {
			n.memory.dies(t)
		}
		if a.Task >= len(n.memory.leases) { // another node's, which decides the same of it
			continue
		}
		l := n.memory.leases[a.Task]
		switch a.Step {
		case airlock.Suspend:
			n.turn(l, suspends)
			l.stand.since = now
			l.stand.times++
		case airlock.Resume:
			n.turn(l, thaws)
			l.stand.since, l.stand.resumed = 0, now
		case airlock.Readdress:
			if l.stand.since == 0 {
				l.stand.since = now
			}
			l.stand.asked = true
			n.turn(l, halted)
			l.why = giveWay(a, d)
		case airlock.Reclaim:
			l.stand.reclaimed = true
			n.turn(l, halted)
			l.why = giveWay(a, d)
		}
		n.outstanding(now, l, out)
	}
	cfg := n.memory.lock.Config()
	n.memory.due = 0
	for _, l := range n.memory.leases {
		if l.stand.since == 0 || l.stand.reclaimed {
			continue
		}
		at := l.stand.since.Add(cfg.Timer)
		if l.phase != leaseStopping && l.rank.Yields {
			if early := at.Add(-cfg.Yield); early > now {
				at = early
			}
		}
		if n.memory.due == 0 || at < n.memory.due {
			n.memory.due = at
		}
	}
}

// giveWay is why a subjob is ended for its node's memory, for its owner.
func giveWay(a airlock.Action, d *airlock.Decision) string {
	return fmt.Sprintf("%s: %v (%v)", shortOfMemory, a.Cause, &d.Reading)
}

// stood: a subjob stands still, or goes on. What comes late is of a word that was taken back.
func (n *Node) stood(now quantity.Instant, in *protocol.Message, s *protocol.Stillness, out *protocol.Out) {
	l := n.lease(in.Token)
	switch {
	case l == nil:
		return
	case s.Refused && l.phase == leaseSuspending: // the entry is over, and there is no other
		n.noteOne(now, l, couldNotStand)
		n.turn(l, moves)
		l.restless = true
		l.stand.since, l.stand.times = 0, l.stand.times-1
	case s.Still && l.phase == leaseSuspending:
		n.turn(l, stands)
	case !s.Still && l.phase == leaseResuming:
		n.turn(l, moves)
	default:
		return
	}
	n.outstanding(now, l, out)
}

// excused is the result of a subjob that stood still, or was asked to yield, for its node's memory: that it came no further is not its own failure, and
// how long it took is nothing to learn from. What it has completed counts as ever.
func (l *lease) excused(r *job.Result) *job.Result {
	if l.stand == (stand{}) || r.Outcome != job.Yielded && r.Outcome != job.DeadlineKilled {
		return r
	}
	c := *r
	c.Outcome = job.Stopped
	if c.Detail == "" {
		c.Detail = shortOfMemory
	}
	return &c
}
