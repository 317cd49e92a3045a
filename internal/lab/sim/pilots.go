package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/departure"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	corepilot "sluice.dev/sluice/internal/core/pilot"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/lab/lender"
	"sluice.dev/sluice/internal/lab/measure"
)

// pilots are machines that host schedulers lend for a while. Each runs in a berth: a party with numbers of slices for the observer that is
// there from the start, and that one pilot after another has, each with a node, an address and slices of its own.
type pilots struct {
	*ground
	machine *machine
	// boot recovers a fresh party and tells it what slices it has.
	boot func(party int)

	of    *lender.Lenders
	lent  *measure.Lent
	pools []*poolOf
	// list are all pilots that hosts have started, by number; named finds them, and in those that are in a berth.
	list  []*pilot
	named map[string]*pilot
	in    map[int]*pilot
}

// poolOf is one pool.
type poolOf struct {
	*lender.Pool
	number int
	driver *lender.Driver
	// first is the first of its berths, as many as it may have pilots.
	first int
	// at is when its next event is due; Never: there is none.
	at quantity.Instant
}

// fleet is the pilots of one pool, as its driver sees them (lender.Machines).
type fleet struct {
	*pilots
	pool *poolOf
}

// pilot is one that its host has started.
type pilot struct {
	job    *lender.Job
	pool   *poolOf
	number int
	state  pilotState
	party  int
	slices []protocol.Slice
	// joined and left are when its machine did so; 0: it has not.
	joined, left quantity.Instant
	// until is when it is gone, as its cluster knows it. called: it was told to end.
	until  quantity.Instant
	called bool
	// looks is when it looks next whether all is handed over, empty in how many looks in a row it was.
	looks quantity.Instant
	empty int
}

// pilotState is how far a pilot is.
type pilotState uint8

const (
	isStarting pilotState = iota
	isUp
	isOver
	isForgotten // its cluster has let go of it
)

// begin opens the pools.
func (l *pilots) begin() {
	if l.of == nil {
		return
	}
	first := l.berth()
	if l.lent = l.of.Lent; l.lent == nil {
		l.lent = &measure.Lent{}
	}
	for i := range l.of.Pools {
		p := &l.of.Pools[i]
		x := &poolOf{Pool: p, number: i, first: first, at: quantity.Never}
		first += p.Most
		at := protocol.Address{Role: protocol.Provider, ID: p.Name}
		x.driver = lender.NewDriver(l.now, p, l.o.Seed, l.lent, fleet{l, x}, func(s *supply.Sight) {
			l.enqueue(&protocol.Message{Kind: protocol.Sighted, From: at, To: l.parties[len(l.gates)].Address, Body: s})
		})
		l.pools = append(l.pools, x)
		l.plan(x)
	}
}

// lend tells a gate or zone what slices pilots may bring.
func (l *pilots) lend(party int) {
	for _, p := range l.pools {
		from := protocol.Address{Role: protocol.Provider, ID: p.Name}
		if l.parties[party].Address.Role == protocol.Gate {
			from.Role = protocol.Node // one that is away
		}
		l.enqueue(&protocol.Message{Kind: protocol.Inventory, From: from, To: l.parties[party].Address,
			Body: &protocol.Stock{Slices: p.Offers(p.Name)}})
	}
}

// again is a gate or zone whose daemon was started again.
func (l *pilots) again(party int) {
	l.lend(party)
	for i := 0; party == len(l.gates) && i < len(l.pools); i++ {
		l.pools[i].driver.Crash(l.now)
		l.plan(l.pools[i])
	}
}

// plan has the next event of a pool happen.
func (l *pilots) plan(x *poolOf) {
	if x.driver.Next() < x.at {
		x.at = max(l.now, x.driver.Next())
		l.events.Put(x.at, event{kind: lends, index: int32(x.number)})
	}
}

// ordered hands a zone's order to its driver.
func (l *pilots) ordered(o *supply.Order) {
	for _, x := range l.pools {
		if x.Name == o.Pool {
			x.driver.Ordered(l.now, o)
			l.plan(x)
		}
	}
}

// happen is that something of a pool is due, unless that was put off.
func (l *pilots) happen(x *poolOf) {
	if x.at <= l.now {
		x.at = quantity.Never
		x.driver.Turn(l.now, !l.parties[len(l.gates)].down)
		l.plan(x)
	}
}

// Machine implements lender.Machines.
func (l fleet) Machine(name string) corepilot.Machine {
	x := l.named[name]
	if x == nil {
		return corepilot.Machine{}
	}
	return corepilot.Machine{Joined: x.joined, Until: x.until, Up: x.state == isUp, Left: x.left}
}

// Began implements lender.Machines.
func (l fleet) Began(j *lender.Job) {
	x := &pilot{job: j, pool: l.pool, number: len(l.list)}
	l.list = append(l.list, x)
	l.named[j.Name] = x
	l.next(x, min(l.now.Add(x.pool.Joins), j.Ends))
}

// Told implements lender.Machines.
func (l fleet) Told(j *lender.Job, grace time.Duration) {
	x := l.named[j.Name]
	if x.state != isUp || grace <= 0 {
		l.gone(x, false)
		return
	}
	if l.next(x, j.Ends); !x.called {
		l.call(x)
	}
}

// Close implements lender.Machines.
func (l fleet) Close(name string, c corepilot.Closing) {
	x := l.named[name]
	if x.state != isUp {
		return
	}
	for i := range x.slices {
		l.enqueue(&protocol.Message{
			Kind: protocol.Reserve, From: protocol.Address{Role: protocol.Person, ID: "pools"}, To: l.parties[x.party].Address,
			Body: &protocol.Booking{Request: fmt.Sprintf("pilot-%s-%d-%d", x.slices[i].ID, c.From, c.Until),
				Reservation: &protocol.Reservation{Kind: protocol.ForReclaim, Slice: x.slices[i].ID, Start: c.From, End: quantity.Never,
					Truncate: true, Source: "its host ends it then"}},
		})
	}
	x.until = min(x.until, c.Until)
}

// next has a pilot look around at an instant.
func (l *pilots) next(x *pilot, at quantity.Instant) {
	l.events.Put(max(l.now, at), event{kind: turns, index: int32(x.number)})
}

// turn does what is due of a pilot.
func (l *pilots) turn(x *pilot) {
	switch x.state {
	case isStarting:
		if l.now >= x.job.Ends {
			l.gone(x, false)
		} else if l.now >= x.job.Began.Add(x.pool.Joins) {
			l.join(x)
		}
	case isUp:
		if l.now >= x.job.Ends {
			l.gone(x, false)
		} else if l.now >= x.looks && (x.called || l.now >= departure.Closes(x.until, x.pool.HandOver)) {
			l.leave(x)
		}
	case isOver:
		if l.now >= x.until.Add(departure.Skew) {
			l.forsake(x)
		}
	case isForgotten:
	}
}

// join puts a pilot's machine into a berth and has it join the cluster.
func (l *pilots) join(x *pilot) {
	p, id := x.pool, job.NodeID(x.job.Name)
	for x.party = p.first; l.in[x.party] != nil; x.party++ {
		invariant.Check(x.party-p.first < p.Most-1, "pool %s: its host runs more than %d pilots", p.Name, p.Most)
	}
	x.state, x.joined, x.until, x.slices = isUp, l.now, x.job.Ends, p.Offers(x.job.Name)
	at := protocol.Address{Role: protocol.Node, ID: string(id)}
	l.in[x.party] = x
	l.machine.house(x.party, at, l.o.Pilot(id, len(l.o.Nodes)+x.number, p.Pool), x.slices)
	l.boot(x.party)
	l.next(x, max(l.now, departure.Closes(x.until, p.HandOver)))
	l.next(x, x.job.Ends)
}

// stock is what the node in a berth is told.
func (l *pilots) stock(party int) *protocol.Stock {
	x := l.in[party]
	return &protocol.Stock{Slices: x.slices, Until: x.until, Leaves: x.called}
}

// call is the signal by which a machine's end is near.
func (l *pilots) call(x *pilot) {
	x.called, x.until = true, min(x.until, l.now.Add(lender.Grace))
	l.machine.say(l.parties[x.party].Address, protocol.Message{Kind: protocol.Inventory, Body: l.stock(x.party)})
	l.look(x)
}

// leave has a machine leave its cluster once all is handed over, or its time is over.
func (l *pilots) leave(x *pilot) {
	if x.empty++; l.parties[x.party].Actor.(actor.Departing).Remaining() > 0 {
		x.empty = 0
	}
	if x.empty >= 2 || l.now >= x.until {
		l.gone(x, true)
		return
	}
	l.look(x)
}

// look has a machine look in a moment whether all is handed over.
func (l *pilots) look(x *pilot) {
	x.looks = l.now.Add(lender.LeaveEvery)
	l.next(x, x.looks)
}

// gone ends a pilot: what runs there is lost. told: it has told its cluster that it leaves; else that lets go of it a while after its end.
func (l *pilots) gone(x *pilot, told bool) {
	if x.state > isUp {
		return
	}
	l.count(x)
	was := x.state
	x.state = isForgotten
	x.pool.driver.Gone(l.now, x.job)
	l.plan(x.pool)
	if was == isStarting { // nobody knows it
		return
	}
	l.machine.shake(x.party, false)
	l.machine.vacate(x.party, x.slices)
	delete(l.in, x.party)
	if told {
		l.forsake(x)
		return
	}
	x.state = isOver
	l.next(x, x.until.Add(departure.Skew))
}

// forsake has gates and zones let go of a machine that has left for good.
func (l *pilots) forsake(x *pilot) {
	x.state, x.left = isForgotten, l.now
	for p := range l.node {
		l.arrive(l.mail.post(&protocol.Message{Kind: protocol.Removed, From: protocol.Address{Role: protocol.Person},
			To: l.parties[p].Address, Body: &protocol.Removal{Node: job.NodeID(x.job.Name)}}))
	}
}

// over reports whether nothing of any pool is left.
func (l *pilots) over() bool {
	return !slices.ContainsFunc(l.pools, func(x *poolOf) bool { return x.driver.Pilots() > 0 }) &&
		!slices.ContainsFunc(l.list, func(x *pilot) bool { return x.state != isForgotten })
}

// ended notes a subjob's time on slices of pilots.
func (l *pilots) ended(party int, p *measure.Piece) {
	if l.of != nil && party >= l.berth() {
		l.lent.Held += p.End.Sub(p.Start) * time.Duration(p.Slices)
		l.lent.Useful += p.Useful * time.Duration(p.Slices)
	}
}

// count adds a pilot's time until now.
func (l *pilots) count(x *pilot) {
	n, joined := time.Duration(len(x.pool.Slices)), cmp.Or(x.joined, l.now)
	l.lent.Time += l.now.Sub(x.job.Began) * n
	l.lent.Starting += joined.Sub(x.job.Began) * n
}

// finish counts what is under way when the run is over.
func (l *pilots) finish() {
	for _, x := range l.list {
		if x.state <= isUp {
			l.count(x)
		}
	}
	for _, x := range l.pools {
		l.lent.Room += x.Room(l.now) * time.Duration(len(x.Slices))
	}
}
