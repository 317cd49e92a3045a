package lender

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/pilot"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/lab/measure"
)

// As host/pilots has them.
const (
	// Every is how often a host is looked at, lazyLook where nothing is there and nothing is wanted, rest is between two looks at least.
	Every    = 5 * time.Second
	lazyLook = 30 * time.Second
	rest     = time.Second
	// wait is how long a pilot may wait at its host.
	wait = 7 * 24 * time.Hour
)

const (
	// Grace is how long a pilot's daemon takes from its signal at most (sluice join --grace), the hand-over included.
	Grace = 25 * time.Second
	// LeaveEvery is how often a machine looks whether its time has come and all was handed over. It was if two looks say so.
	LeaveEvery = 200 * time.Millisecond
	// killWait is how long a host leaves a pilot that is given back, as Slurm does (KillWait).
	killWait = 30 * time.Second
)

// Machines are those of the cluster that are pilots.
type Machines interface {
	// Machine is the one of a name.
	Machine(name string) pilot.Machine
	// Began is that the host has started a pilot, which is due to be gone at j.Ends.
	Began(j *Job)
	// Told is that a pilot which runs is told to end: it is killed after a grace, or at once with none.
	Told(j *Job, grace time.Duration)
	// Close has nothing sold any more on a machine that is gone at an earlier end than it has said.
	Close(name string, c pilot.Closing)
}

// Driver asks the host of one pool for pilots, as host/pilots does. Instants are of the cluster's clock.
type Driver struct {
	pool     *Pool
	host     host
	machines Machines
	lent     *measure.Lent
	send     func(*supply.Sight)
	seed     uint64
	drawn    uint64

	// passes is when the host starts next what waits, Never: only after a change. preempts are those to come, in order.
	passes   quantity.Instant
	preempts []Preemption

	// pilots are asked for and not known to be gone, endings what became of the others. A crash keeps both.
	pilots  []entry
	endings []supply.Ending

	memory
}

// memory is what a crash loses.
type memory struct {
	idle map[string]quantity.Instant
	// closed is how machines were closed.
	closed map[string]pilot.Closing
	// sight is the newest, fresh: the host was looked at for it. last is the order that answered it.
	sight *supply.Sight
	fresh bool
	last  *supply.Order
	// looked is the last look that was answered, at seen.
	looked map[string]Job
	gaps   []supply.Gap
	seen   quantity.Instant
	silent string
	// at is when the host is looked at next, before when it was last.
	at, before quantity.Instant
}

// entry is one pilot of the ledger.
type entry struct {
	pilot.Record
	missed pilot.Missed
}

// NewDriver drives a pool from an instant on. What it sees it sends; seed draws names.
func NewDriver(now quantity.Instant, p *Pool, seed uint64, lent *measure.Lent, m Machines, send func(*supply.Sight)) *Driver {
	d := &Driver{pool: p, host: host{pool: p}, machines: m, lent: lent, send: send, seed: seed, passes: quantity.Never}
	d.preempts = slices.Clone(p.Preempts)
	for i := range p.Gaps {
		if g := &p.Gaps[i]; g.shown() > g.End {
			d.preempts = append(d.preempts, Preemption{At: g.End, Count: g.Count, Grace: g.Grace, of: i + 1})
		}
	}
	slices.SortStableFunc(d.preempts, func(a, b Preemption) int { return cmp.Compare(a.At, b.At) })
	d.Crash(now)
	return d
}

// Crash is that the cluster's head starts again: the ledger is there, and nothing else.
func (d *Driver) Crash(now quantity.Instant) {
	d.memory = memory{idle: map[string]quantity.Instant{}, closed: map[string]pilot.Closing{}, at: now}
}

// Next is when something of the pool is due.
func (d *Driver) Next() quantity.Instant {
	next := min(d.at, d.passes)
	if len(d.preempts) > 0 {
		next = min(next, d.preempts[0].At)
	}
	return next
}

// Turn does what is due. up: the cluster's head is there; else the host is not looked at before it has come back (Crash).
func (d *Driver) Turn(now quantity.Instant, up bool) {
	for len(d.preempts) > 0 && d.preempts[0].At <= now {
		for _, j := range d.host.preempt(now, &d.preempts[0]) {
			d.lent.Preempted++
			if d.machines.Machine(j.Name).Joined != 0 || j.Ends <= now { // a script that starts a machine hears nothing
				d.machines.Told(j, j.Ends.Sub(now))
			}
		}
		d.preempts = d.preempts[1:]
	}
	if d.passes <= now {
		d.passes = d.pass(now)
	}
	switch {
	case !up:
		d.at = quantity.Never
	case d.at <= now:
		d.look(now)
	}
}

// Pilots is how many are asked for and not known to be gone.
func (d *Driver) Pilots() int { return len(d.pilots) }

// look is that the time to look has come.
func (d *Driver) look(now quantity.Instant) {
	if d.before, d.at = now, now.Add(Every); d.lazy(now) {
		d.tell(false)
		return
	}
	d.see(now)
}

// lazy reports whether the host need not be looked at now.
func (d *Driver) lazy(now quantity.Instant) bool {
	return len(d.pilots) == 0 && d.silent == "" && d.seen != 0 && now.Sub(d.seen) < lazyLook && d.last != nil && len(d.last.Ask) == 0 &&
		now < d.last.Next
}

// see looks at the host, notes what has become of pilots, and tells the zone.
func (d *Driver) see(now quantity.Instant) {
	seen, gaps, err := d.host.look(now)
	if d.silent = ""; err != nil {
		d.silent = err.Error()
	} else {
		d.seen, d.gaps, d.looked = now, gaps, map[string]Job{}
		for _, j := range seen {
			d.looked[j.Name] = j
		}
	}
	if err == nil {
		d.reconcile(now)
	} else {
		for i := range d.pilots { // machines join, whatever the host says
			m := d.machines.Machine(d.pilots[i].Name)
			d.pilots[i].Saw(now, 0, &pilot.Copy{}, &m)
		}
	}
	d.tell(true)
}

// copy is what the host has shown of a pilot.
func (d *Driver) copy(name string) pilot.Copy {
	j, there := d.looked[name]
	c := pilot.Copy{State: pilot.Waiting, Alive: 1, Began: j.Began, Preempted: j.Preempted}
	switch {
	case !there:
		return pilot.Copy{}
	case j.Ended != 0:
		c.State, c.Alive, c.End, c.Failed = pilot.Ended, 0, j.Ended, true
	case j.Began != 0:
		c.State, c.End = pilot.Running, j.Ends
	}
	if c.Preempted {
		c.Why = "others have its room"
	}
	return c
}

// reconcile holds the ledger to what the host shows.
func (d *Driver) reconcile(now quantity.Instant) {
	var left []entry
	for i := range d.pilots {
		x, m, c := &d.pilots[i], d.machines.Machine(d.pilots[i].Name), d.copy(d.pilots[i].Name)
		if x.Saw(now, 0, &c, &m); c.State != pilot.Unseen {
			x.missed = pilot.Missed{}
		} else if x.missed.Looks++; x.missed.Looks == 1 {
			x.missed.Since = now
		}
		if e, over := x.Over(now, &c, &m, x.missed); over {
			d.end(e)
			delete(d.idle, x.Name)
			delete(d.closed, x.Name)
			continue
		}
		left = append(left, *x)
	}
	d.pilots = left
	for i := range d.pilots {
		x, m, c := &d.pilots[i], d.machines.Machine(d.pilots[i].Name), d.copy(d.pilots[i].Name)
		if why, late := x.Useless(now, &c, &m, d.pool.Start, wait); why != "" {
			d.giveBack(now, supply.Cancel{Name: x.Name, Why: why})
			x.Late = late && x.Cancelled != 0
		}
		if closing, is := x.Shorter(now, &c, &m, d.pool.HandOver, d.closed[x.Name]); is {
			d.machines.Close(x.Name, closing)
			d.closed[x.Name] = closing
		}
	}
}

func (d *Driver) end(e supply.Ending) {
	if e.How == supply.Failed || e.How == supply.Vanished {
		d.lent.Failed++
	}
	d.endings = append(d.endings, e)
	d.endings = d.endings[max(0, len(d.endings)-supply.MostEndings):]
}

// tell sends the zone a new sight; fresh: the host was looked at for it.
func (d *Driver) tell(fresh bool) {
	s := &supply.Sight{Number: 1, Pool: d.pool.Pool, Seen: d.seen, Silent: d.silent, Blind: d.pool.Blind,
		Endings: slices.Clone(d.endings)}
	if d.sight != nil {
		s.Number = d.sight.Number + 1
	}
	if d.silent == "" {
		s.Gaps = slices.Clone(d.gaps)
	}
	for i := range d.pilots {
		x := &d.pilots[i]
		m, c := d.machines.Machine(x.Name), d.copy(x.Name)
		s.Pilots = append(s.Pilots, x.Standing(&c, &m, d.idle[x.Name]))
	}
	d.sight, d.fresh, d.last = s, fresh, nil
	d.send(s)
}

// Ordered obeys the zone's answer to the newest sight, once.
func (d *Driver) Ordered(now quantity.Instant, o *supply.Order) {
	if d.sight == nil || o.Number != d.sight.Number || d.last != nil {
		return
	}
	if d.last = o; !d.fresh && len(o.Ask)+len(o.Cancel) > 0 {
		d.see(now)
		return
	}
	is := make(map[string]quantity.Instant, len(o.Idle))
	for _, name := range o.Idle {
		if is[name] = d.idle[name]; is[name] == 0 {
			is[name] = now
		}
	}
	d.idle = is
	for _, c := range o.Cancel {
		d.giveBack(now, c)
	}
	for _, length := range o.Ask {
		if !d.ask(now, length) {
			break // the host would say the same of the next
		}
	}
	if len(o.Cancel)+len(o.Ask) > 0 {
		d.at, d.passes = max(now, d.before.Add(rest)), now
	}
}

// ask asks for a pilot; false: it was not had, or nobody knows.
func (d *Driver) ask(now quantity.Instant, length time.Duration) bool {
	invariant.Check(len(d.pilots) < d.pool.Most, "pool %s: more than %d pilots are asked for", d.pool.Name, d.pool.Most)
	x := entry{Record: pilot.Record{Name: d.name(), Length: length, Asked: now}}
	d.lent.Asked++
	err := d.host.submit(now, x.Name, length)
	if err != nil && d.host.silent(now) == nil {
		d.lent.Refused++
		d.end(supply.Ending{Name: x.Name, How: supply.Refused, Length: length, Asked: now, Ended: now,
			Limited: errkind.Of(err) == errkind.Exhausted, Why: err.Error()})
		return false
	}
	d.pilots = append(d.pilots, x)
	return err == nil
}

// name draws one that nobody has had.
func (d *Driver) name() string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	d.drawn++
	draw := prng.New(d.seed, prng.Name("pilot"), prng.Name(d.pool.Name), d.drawn)
	var b strings.Builder
	for range 8 {
		b.WriteByte(letters[draw.IntN(len(letters))])
	}
	return d.pool.Name + "-" + b.String()
}

// giveBack ends a pilot. It is counted until its host does not have it.
func (d *Driver) giveBack(now quantity.Instant, c supply.Cancel) {
	i := slices.IndexFunc(d.pilots, func(x entry) bool { return x.Name == c.Name })
	if i < 0 || d.pilots[i].Cancelled != 0 || d.host.silent(now) != nil {
		return
	}
	d.pilots[i].Cancelled, d.pilots[i].Why = now, c.Why
	j := d.host.find(c.Name)
	switch {
	case j == nil:
	case j.Began == 0:
		d.host.end(now, j)
	default:
		j.Ends = min(j.Ends, now.Add(killWait))
		d.machines.Told(j, j.Ends.Sub(now))
	}
}

// pass has the host start what waits, and returns when it does so again, as far as is known now: Never if only after a change.
func (d *Driver) pass(now quantity.Instant) (next quantity.Instant) {
	next = quantity.Never
	if p := quantity.Instant(d.pool.Pass); p > 0 && now%p != 0 {
		return now + p - now%p
	}
	for _, j := range d.host.start(now) {
		d.lent.Granted++
		d.machines.Began(j)
	}
	if slices.ContainsFunc(d.host.jobs, func(j *Job) bool { return j.Began == 0 && j.Ended == 0 }) {
		for i := range d.pool.Gaps {
			if at := d.pool.Gaps[i].Start; at > now {
				next = min(next, at)
			}
		}
		for _, t := range d.host.taken {
			if t.until > now {
				next = min(next, t.until)
			}
		}
	}
	return next
}

// Gone is that what ran of a pilot is gone, and its room another's.
func (d *Driver) Gone(now quantity.Instant, j *Job) {
	d.host.end(now, j)
	d.passes = now
}
