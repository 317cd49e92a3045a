package laminar

import (
	"math/bits"
	"time"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// zone is its nodes as it knows them, and its tickets that wait.
type zone struct {
	nodes   *flow.Directory
	lot     *flow.Lot
	heard   uint64 // numbers what nodes say
	digests uint64
	woken   []flow.TicketID
	// said is the last digest that was sent.
	said flow.Digest
	// resting are the tickets that wait here for room.
	resting resting
}

// zones search among their nodes for the tickets that are there, and are home to tasks.
type zones struct {
	ground
	zones []zone
}

func newZones(at ground) *zones {
	m := &zones{ground: at, zones: make([]zone, at.c.Zones)}
	for z := range m.zones {
		m.zones[z].lot = flow.NewLot()
		m.begin(int32(z), true)
	}
	return m
}

// begin makes what a zone knows anew. At the start of the world all slices are free, and everybody knows it; later nothing is known.
func (m *zones) begin(z int32, known bool) {
	x := &m.zones[z]
	x.resting, x.said = resting{}, flow.Digest{}
	x.nodes = flow.NewDirectory(m.cfg, flow.ZoneID(z), m.c.PerZone, 0)
	for i := range int32(m.c.PerZone) {
		node := z*int32(m.c.PerZone) + i
		switch {
		case m.v == Blind: // they look free, and stay so
			x.nodes.Report(flow.NodeID(i), &flow.Summary{Version: 1, Usable: true, Free: m.fragments(node, m.c.All(node))})
		case known:
			m.told(z, node, m.c.All(node))
		}
	}
}

// told records a node's free slices.
func (m *zones) told(z, node int32, free uint8) {
	if x := &m.zones[z]; m.v != Blind {
		x.heard++
		x.nodes.Report(flow.NodeID(node-z*int32(m.c.PerZone)), &flow.Summary{Version: x.heard, Usable: true, Free: m.fragments(node, free)})
	}
}

// report records a node's report.
func (m *zones) report(now quantity.Instant, zone int32, r swarm.Report) {
	m.told(zone, r.Node, r.Free)
	m.next(now, zone, r.Node, r.Free)
}

// next lets who rests here and gives up first ask, now that a node has room.
func (m *zones) next(now quantity.Instant, z, node int32, free uint8) {
	if free == 0 || m.v == Blind {
		return
	}
	x := &m.zones[z]
	slots := m.c.Slots(node)
	if e := x.resting.take(m.pool, flow.Class(slots[bits.Len8(free)-1])); e != nil {
		e.search.Next = now
		m.act(now, z, e, m.loop.Next(now, &e.search, x.nodes))
	}
}

// wakeAnyway is after how many digests one ticket is woken though its home has no room: others may have.
const wakeAnyway = 10

// tell adds to a digest the demand, cumulated from the largest class. It is the zone's beat: some parked tickets are woken.
func (m *zones) tell(now quantity.Instant, z int32, d *swarm.Digest) bool {
	x := &m.zones[z]
	own := x.nodes.Digest(now)
	var budget [flow.MaxClasses]int
	x.digests++
	for c := range m.cfg.Classes {
		d.Told[c] = uint16(min(own.Demand[c], 1<<16-1))
		if budget[c] = int(max(0, min(own.Room(flow.Class(c)), int64(m.cfg.Wakes)))); x.digests%wakeAnyway == 0 {
			budget[c] = max(budget[c], 1)
		}
	}
	for c := range m.cfg.Classes { // what it has heard since the reports, too
		d.Free[c] = uint16(own.Free[c])
		if c+1 < len(m.cfg.Classes) {
			d.Free[c] -= uint16(own.Free[c+1])
		}
	}
	m.wake(now, z, budget)
	return m.news(now, z, &own)
}

// news says whether a digest tells the gates enough to be sent: its room for some class is another by more than a quarter, or they would
// soon take the zone for dead.
func (m *zones) news(now quantity.Instant, z int32, own *flow.Digest) bool {
	x := &m.zones[z]
	fresh := now.Sub(x.said.At) >= m.cfg.Stale/2 || own.News(&x.said)
	if fresh {
		x.said = *own
	}
	return fresh
}

// wake lets some parked tickets search again.
func (m *zones) wake(now quantity.Instant, z int32, budget [flow.MaxClasses]int) {
	x := &m.zones[z]
	if x.lot.Len() == 0 {
		return
	}
	x.woken = x.lot.Wake(budget, x.woken[:0])
	for _, id := range x.woken {
		e := m.ofTask(swarm.TaskID(id))
		e.parked = false
		e.move++
		m.act(now, z, e, m.loop.Wake(now, &e.search))
	}
}

// hear handles a zone's message.
func (m *zones) hear(now quantity.Instant, z int32, in swarm.Message) {
	if in.Kind == answer || in.Kind == leased || in.Kind == freed {
		node := int32(in.From)
		_, free := unpack(in.B)
		if m.c.Zone(node) == z {
			m.told(z, node, free)
			defer m.next(now, z, node, free)
		}
	}
	e := m.get(in.X)
	if e == nil || in.Kind == freed {
		return
	}
	d := m.zones[z].nodes
	switch in.Kind {
	case adopt:
		m.adopted(now, z, e)
	case search:
		if e.search.Phase == flow.Drawing {
			m.act(now, z, e, m.loop.Arrive(now, &e.search, d))
		}
	case answer:
		slot, _ := unpack(in.B)
		switch {
		case e.move != in.A || e.search.Phase != flow.Asking:
		case slot < 0:
			m.act(now, z, e, m.loop.Refused(now, &e.search, d))
		default:
			m.loop.Granted(&e.search, d)
			m.landed(now, z, e, int32(in.From), int8(slot), uint32(in.C))
		}
	case silent:
		switch _, lives := m.port.Task(e.task); {
		case e.move != in.A || e.search.Phase != flow.Asking:
		case m.v != Direct:
			m.act(now, z, e, m.loop.Refused(now, &e.search, d))
		case lives: // it may have started: the same node is asked until it has said
			m.ask(e, z*int32(m.c.PerZone)+int32(e.search.Node), m.cfg.ProbeTimeout)
		default:
			m.loop.Leave(&e.search, d)
			m.drop(e)
		}
	case rests:
		if e.move == in.A && e.search.Phase == flow.Searching {
			m.act(now, z, e, m.loop.Next(now, &e.search, d))
		}
	case found:
		if e.search.Phase == flow.Landed && !e.claimed {
			e.node, e.slot, e.hold = in.A, int8(in.B), uint32(in.C)
			m.claim(e)
		}
	case leased:
		if yes, _ := unpack(in.B); e.move == in.A && e.search.Phase == flow.Landed {
			if yes == 1 {
				m.drop(e)
			} else {
				e.claimed = false
				m.act(now, z, e, m.loop.Lost(now, &e.search))
			}
		}
	case unsaid:
		if e.move == in.A && e.search.Phase == flow.Landed {
			m.say(e, time.Duration(in.B)*time.Microsecond*2)
		}
	case back:
		if e.search.Phase == flow.Parked && !e.parked {
			m.park(now, z, e)
		}
	case due:
		if e.parked {
			m.unpark(z, e)
			m.drop(e)
		}
	case away:
		if e.trips == in.A && !e.parked && !e.claimed && !e.void {
			m.takeBack(now, z, e)
		}
	}
}

// adopted is a task that has its home here from now on.
func (m *zones) adopted(now quantity.Instant, z int32, e *ticket) {
	e.owned = true
	if e.search.Kind == flow.Lasting {
		m.port.Send(swarm.Message{Kind: adopted, To: m.gateOf(e), X: e.id})
	}
	if e.search.Phase == flow.Drawing && e.search.Draws == 0 && e.search.Episode == 0 {
		m.act(now, z, e, m.loop.Arrive(now, &e.search, m.zones[z].nodes))
	}
}

// gateOf is where a ticket's task arrived.
func (m *zones) gateOf(e *ticket) swarm.Place {
	t, _ := m.port.Task(e.task)
	return m.c.GateAt(t.Gate)
}

// act does what the loop says, in a zone.
func (m *zones) act(now quantity.Instant, z int32, e *ticket, next flow.Move) {
	if _, lives := m.port.Task(e.task); !lives && next.Act != flow.Ask && next.Act != flow.Rest {
		m.drop(e)
		return
	}
	e.move++
	switch next.Act {
	case flow.Ask:
		m.ask(e, z*int32(m.c.PerZone)+int32(next.Node), next.At.Sub(now))
	case flow.Rest:
		m.zones[z].resting.put(e)
		m.port.After(next.At.Sub(now), swarm.Message{Kind: rests, X: e.id, A: e.move})
	case flow.Draw:
		m.leave(z, e)
		m.port.Send(swarm.Message{Kind: again, To: m.gateOf(e), X: e.id})
	case flow.Park, flow.Expire:
		switch {
		case e.void || e.search.Why == flow.PastDeadline:
			m.drop(e)
		case m.v == Forgetful && e.search.Why == flow.OutOfHops:
			e.search.Phase = flow.Parked
			m.port.Send(swarm.Message{Kind: renewed, To: m.gateOf(e), X: e.id})
		case next.Act == flow.Expire:
			m.drop(e)
		case e.home == z:
			m.park(now, z, e)
		default:
			m.port.Send(swarm.Message{Kind: back, To: m.c.ZoneAt(e.home), X: e.id})
		}
	}
}

func (m *zones) ask(e *ticket, node int32, wait time.Duration) {
	short := int32(0) // of room: the node is to say when it has some
	if m.zones[m.c.Zone(node)].resting.any(m.pool) {
		short = 1
	}
	m.port.Send(swarm.Message{Kind: probe, To: m.c.At(node), Task: e.task, X: e.id, A: e.move, C: short})
	m.port.After(wait, swarm.Message{Kind: silent, X: e.id, A: e.move})
}

// leave lets a ticket go from its home, which looks after it.
func (m *zones) leave(z int32, e *ticket) {
	if e.home == z && e.search.Kind == flow.Lasting && m.v != Direct {
		e.trips++
		m.port.After(m.cfg.Patience+2*m.cfg.ProbeTimeout+m.cfg.Stale, swarm.Message{Kind: away, X: e.id, A: e.trips})
	}
}

func (m *zones) park(now quantity.Instant, z int32, e *ticket) {
	x := &m.zones[z]
	e.parked = true
	e.move++
	x.lot.Add(&e.search)
	if e.search.Deadline != 0 {
		m.port.After(max(0, e.search.Deadline.Sub(now)), swarm.Message{Kind: due, X: e.id})
	}
}

func (m *zones) unpark(z int32, e *ticket) {
	x := &m.zones[z]
	x.lot.Remove(e.search.ID)
	e.parked = false
}

// landed is a grant for a ticket that searches here.
func (m *zones) landed(_ quantity.Instant, z int32, e *ticket, node int32, slot int8, hold uint32) {
	switch {
	case e.void || m.v == Direct:
		m.drop(e) // the grant lapses, or it runs
	case e.home == z:
		e.node, e.slot, e.hold = node, slot, hold
		m.claim(e)
	default:
		e.move++
		m.port.Send(swarm.Message{Kind: found, To: m.c.ZoneAt(e.home), Task: e.task, X: e.id, A: node, B: int32(slot), C: int32(hold)})
	}
}

// claim is the home's: the place is the task's, and no other is looked for until the node has said no.
func (m *zones) claim(e *ticket) {
	e.claimed = true
	e.move++
	m.say(e, m.retry)
}

// say redeems, and again until there is an answer.
func (m *zones) say(e *ticket, wait time.Duration) {
	wait = min(wait, time.Second)
	m.port.Send(swarm.Message{Kind: redeem, To: m.c.At(e.node), Task: e.task, X: e.id, A: e.move, B: int32(e.slot), C: int32(e.hold)})
	m.port.After(wait, swarm.Message{Kind: unsaid, X: e.id, A: e.move, B: int32(wait / time.Microsecond)})
}

// takeBack gives a task whose ticket is lost another one. One that searches somewhere still is void, and ends where it is.
func (m *zones) takeBack(now quantity.Instant, z int32, old *ticket) {
	t, lives := m.port.Task(old.task)
	episode := old.search.Episode + 1
	switch old.search.Phase {
	case flow.Searching, flow.Asking:
		if old.search.Zone == flow.ZoneID(z) { // it has come back to search here
			m.leave(z, old)
			return
		}
		old.void = true
	case flow.Drawing, flow.Landed, flow.Parked, flow.Expired:
		m.drop(old)
	}
	if lives {
		m.renew(now, z, &t, episode)
	}
}

// renew is another ticket for a task that has its home here.
func (m *zones) renew(now quantity.Instant, z int32, t *swarm.Task, episode uint16) {
	e := m.create(t)
	e.home, e.owned, e.confirmed, e.search.Episode = z, true, true, episode
	m.act(now, z, e, m.loop.Begin(now, &e.search))
}

// reset: what was searched here is lost. The home knows its tasks, and what it has claimed.
func (m *zones) reset(now quantity.Instant, z int32) {
	n := len(m.tickets)
	for i := range n {
		e := &m.tickets[i]
		if e.task == 0 {
			continue
		}
		searches := e.search.Phase == flow.Searching || e.search.Phase == flow.Asking
		here := searches && int32(e.search.Zone) == z
		t, lives := m.port.Task(e.task)
		own, episode := e.home == z && e.owned && !e.void && lives, e.search.Episode+1
		if m.v == Direct && searches && !here {
			continue
		}
		switch {
		case e.parked && e.home == z:
			m.unpark(z, e)
			m.drop(e)
		case e.claimed && e.home == z:
			m.say(e, m.retry)
			own = false
		case here && !own && !e.void && lives:
			e.search.Phase = flow.Drawing // nowhere: its home misses it
		case here, own && !searches:
			m.drop(e)
		case own:
			e.void = true
		}
		if own {
			m.renew(now, z, &t, episode)
		}
	}
	m.begin(z, false)
}
