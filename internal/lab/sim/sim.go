package sim

import (
	"context"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/sim/resident"
)

// Sim is one simulation. It is not safe for concurrent use.
type Sim struct {
	ground
	options Options
	out     protocol.Out
	steps   uint64

	faults     faults
	machine    machine
	hosts      hosts
	guests     guests
	pilots     pilots
	agents     agents
	teller     teller
	negotiated negotiated
	arrivals   arrivals
}

// maxBatch is how many inputs share a round, as in the live shell.
const maxBatch = 256

// maxRounds at one instant: beyond it actors are assumed never to come to rest.
const maxRounds = 100_000

// breath is how many rounds pass between two looks at the context and two words of progress.
const breath = 4096

// New makes a simulation whose actors have been recovered at Start. Facts of an earlier life are to be applied before. An
// error of kind Invalid lists everything that is wrong with the options.
func New(o Options) (*Sim, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	places := o.berths()
	s := &Sim{options: o}
	s.ground = ground{
		o: &s.options, now: o.Start, index: map[protocol.Address]int{},
		network: network{Network: o.Network, seed: o.Seed, sent: map[[2]int]uint64{}},
	}
	s.assemble()
	for i := range o.Gates {
		s.gates = append(s.gates, o.Gates[i].ID)
		s.add(protocol.Address{Role: protocol.Gate, ID: string(o.Gates[i].ID)}, o.Gates[i].Gate)
	}
	for i := range o.Zones {
		s.add(protocol.Address{Role: protocol.Zone, ID: string(o.Zones[i].ID)}, o.Zones[i].Zone)
	}
	s.node = len(s.parties)
	for i := range o.Nodes {
		s.add(protocol.Address{Role: protocol.Node, ID: string(o.Nodes[i].ID)}, o.Nodes[i].Actor)
	}
	for range places {
		s.parties = append(s.parties, party{trouble: trouble{down: true, up: quantity.Never}})
		s.wakes.Add()
	}
	s.machine.number(places)
	s.faults.begin()
	s.hosts.begin()
	s.guests.begin()
	s.pilots.begin()
	for p := range s.berth() {
		s.recover(p)
	}
	for p := range s.node {
		s.pilots.lend(p)
	}
	for p := s.node; p < s.berth(); p++ {
		s.inventory(p, nil)
	}
	s.dispatch()
	return s, s.arrivals.pull()
}

// assemble connects the parts.
func (s *Sim) assemble() {
	at, runs := &s.ground, map[job.Token]*run{}
	s.arrivals = arrivals{ground: at, slots: map[job.ID]int32{}}
	s.teller = teller{ground: at, jobs: &s.arrivals, runs: runs, gangs: map[job.Token][]protocol.Member{}}
	s.machine = machine{
		ground: at, jobs: &s.arrivals, teller: &s.teller, runs: runs, places: map[job.SliceID]place{}, memory: &s.hosts, guests: &s.guests,
		programs: resident.New(s.hosts.waits),
	}
	s.hosts = hosts{ground: at, jobs: &s.arrivals, machine: &s.machine, HostMemory: s.o.Memory}
	s.guests = guests{ground: at, machine: &s.machine, House: s.o.Guests, asked: map[int]bool{}}
	s.pilots = pilots{ground: at, machine: &s.machine, of: s.o.Lenders, boot: s.boarded, named: map[string]*pilot{}, in: map[int]*pilot{}}
	if s.teller.ended = s.pilots.ended; s.o.Lenders != nil {
		s.teller.standing = map[job.Token]bool{}
	}
	s.agents = agents{ground: at, jobs: &s.arrivals, of: map[job.ID]*attendant{}}
	s.bidder = s.agents.hear
	s.faults = faults{ground: at, machine: &s.machine, negotiated: &s.negotiated, restarted: s.restarted}
}

// restarted lets a party go on whose daemon was started again.
func (s *Sim) restarted(p int) {
	s.recover(p)
	switch {
	case p >= s.node:
		s.inventory(p, s.machine.found(p))
	case p >= len(s.gates):
		s.agents.again(p)
	}
	if p < s.node {
		s.pilots.again(p)
	}
	s.dispatch()
}

// boarded lets a pilot's node begin.
func (s *Sim) boarded(p int) {
	if s.faults.logs != nil {
		s.faults.logs[p] = factLog{}
	}
	s.recover(p)
	s.inventory(p, nil)
	s.dispatch()
}

func (s *Sim) add(at protocol.Address, a protocol.Actor) {
	s.index[at] = len(s.parties)
	s.parties = append(s.parties, party{Party: actor.Party{Address: at, Actor: a}, key: uint64(at.Role)<<56 ^ prng.Name(at.ID)})
	s.wakes.Add()
}

func (s *Sim) recover(p int) {
	from := [2]int{len(s.out.Facts), len(s.out.Effects)}
	s.parties[p].Actor.Recover(s.local(p), &s.out)
	s.stepped(p, from)
}

// inventory is what the executor tells a node that has booted.
func (s *Sim) inventory(p int, found []protocol.Found) {
	stock := &protocol.Stock{}
	if p >= s.berth() {
		stock = s.pilots.stock(p)
	} else {
		stock.Slices = s.o.Nodes[p-s.node].Slices
	}
	stock.Found = found
	s.enqueue(&protocol.Message{
		Kind: protocol.Inventory, From: protocol.Address{Role: protocol.Executor, ID: s.parties[p].Address.ID}, To: s.parties[p].Address,
		Body: stock,
	})
	s.guests.again(p)
}

// Now is the present virtual time.
func (s *Sim) Now() quantity.Instant { return s.now }

// Steps is how many inputs were taken so far.
func (s *Sim) Steps() uint64 { return s.steps }

// Live is how many jobs of the source have come and are not over.
func (s *Sim) Live() int { return s.arrivals.live }

// Actor is the actor at an address as it is now: a crash replaces it. It is nil if there is none.
func (s *Sim) Actor(a protocol.Address) protocol.Actor {
	if p, ok := s.index[a]; ok {
		return s.parties[p].Actor
	}
	return nil
}

// At makes m arrive at t, or now if t has passed. Inputs for the same instant arrive in the order of the calls. What comes
// from a person while its receiver is down is tried again when it is up.
func (s *Sim) At(t quantity.Instant, m protocol.Message) {
	s.events.Put(max(t, s.now), event{kind: arrives, index: s.mail.post(&m)})
}

// Run goes on until nothing is left to happen before until; the time is then until. An error of kind Unknown means that
// the actors never come to rest at one instant, which is a bug of theirs; an error of the source or the context is wrapped.
// After any error what the observer has heard so far is whole and in order; runs that still hold slices have not ended.
func (s *Sim) Run(ctx context.Context, until quantity.Instant) error {
	return s.run(ctx, until, false)
}

// RunOut goes on until the source is dry and all its jobs are over, at most to limit, and says whether they are. The time
// is then that of the last verdict; without a limit it is the last event where nothing is left to happen. Errors are those of Run.
func (s *Sim) RunOut(ctx context.Context, limit quantity.Instant) (bool, error) {
	err := s.run(ctx, limit, true)
	return s.over(), err
}

// over reports whether the source is dry, the observer has the end of everything that came of it, and all pilots were given back.
func (s *Sim) over() bool { return s.arrivals.dry && len(s.arrivals.slots) == 0 && s.pilots.over() }

func (s *Sim) run(ctx context.Context, until quantity.Instant, toTheLast bool) error {
	rounds := 0 // at now
	for turn := 0; ; turn++ {
		if turn%breath == 0 {
			if err := ctx.Err(); err != nil {
				return errkind.Errorf(errkind.Unavailable, "simulation: stopped at %v: %w", s.now.Time(), err)
			}
			if s.o.Progress != nil {
				s.o.Progress(s.now, s.arrivals.live)
			}
		}
		if s.round() {
			if rounds++; rounds > maxRounds {
				return errkind.Errorf(errkind.Unknown, "at %v the actors do not come to rest: %d rounds and still something to do",
					s.now.Time(), rounds)
			}
			continue
		}
		rounds = 0
		if toTheLast && s.over() {
			return nil
		}
		next := min(s.events.Next(), s.wakes.Next())
		if next == quantity.Never && until == quantity.Never {
			return nil // the time stays that of the last event, so that jobs which still wait have waited until then and not for ever
		}
		if next > until {
			s.now = max(s.now, until)
			return nil
		}
		s.now = max(s.now, next)
		for s.events.Next() <= s.now {
			if err := s.happen(s.events.Take()); err != nil {
				return err
			}
		}
	}
}

func (s *Sim) happen(e event) error {
	switch e.kind {
	case arrives:
		s.arrive(e.index)
	case ends:
		s.machine.due(e.run, e.version)
	case parts:
		s.machine.part(e.index)
	case submits:
		return s.arrivals.submit()
	case strikes:
		s.faults.strike(e.index)
	case passes:
		s.faults.pass(e.index)
	case attends:
		s.agents.remind(e.index)
	case beats:
		s.hosts.beat(e.index)
	case visits:
		s.guests.visit(e.index)
	case lends:
		s.pilots.happen(s.pilots.pools[e.index])
	case turns:
		s.pilots.turn(s.pilots.list[e.index])
	}
	return nil
}

// round is one turn of the live loop: inputs, ticks, then effects. It says whether there was anything to do.
func (s *Sim) round() bool {
	n := min(maxBatch, len(s.queue.list)-s.queue.head)
	for range n {
		i := s.queue.next()
		p, known := s.index[s.mail.messages[i].To]
		if !known || s.parties[p].down { // it went down in this instant
			s.arrive(i)
			continue
		}
		s.step(p, s.mail.messages[i])
		s.mail.drop(i)
	}
	for _, p := range s.wakes.Due(s.now) {
		s.step(p, actor.Tick(s.parties[p].Address))
		n++
	}
	s.dispatch()
	return n > 0
}

func (s *Sim) step(p int, m protocol.Message) {
	from := [2]int{len(s.out.Facts), len(s.out.Effects)}
	if s.o.Archive != nil {
		m = s.recalled(p, m)
	}
	if m.Kind == protocol.Foreign {
		s.machine.intruded(p, m.Body.(*protocol.Intrusion))
	}
	s.parties[p].Actor.Step(s.local(p), m, &s.out)
	s.steps++
	s.stepped(p, from)
}

func (s *Sim) stepped(p int, from [2]int) {
	for i := from[0]; i < len(s.out.Facts); i++ {
		s.fact(p, &s.out.Facts[i])
	}
	for i := from[1]; i < len(s.out.Effects); i++ {
		s.out.Effects[i].From = s.parties[p].Address
	}
	if s.o.Stepped != nil {
		s.o.Stepped(s.now, s.parties[p].Party)
	}
	s.faults.compact(p)
}

func (s *Sim) fact(p int, f *protocol.Fact) {
	f.Actor = s.parties[p].Address
	s.faults.keep(p, f)
	if f.Actor.Role == protocol.Zone {
		s.negotiated.sold(f)
		s.agents.learn(f)
		s.teller.heard(f)
	}
	if s.o.Fact != nil {
		s.o.Fact(s.now, f)
	}
}

func (s *Sim) dispatch() {
	for i := range s.out.Effects {
		m := &s.out.Effects[i]
		from := s.index[m.From]
		switch m.To.Role {
		case protocol.Gate, protocol.Zone, protocol.Node:
			if to, ok := s.index[m.To]; ok {
				s.send(from, to, m)
			}
		case protocol.Executor:
			s.machine.do(m)
		case protocol.Archive:
			s.file(m)
		case protocol.Bidder:
			s.agents.tell(m)
		case protocol.Provider:
			s.pilots.ordered(m.Body.(*supply.Order))
		case protocol.Timer:
			s.wakes.Set(from, min(s.wakes.At(from), max(s.now, s.parties[from].clock.When(m.Body.(*protocol.Moment).At))))
		case protocol.Person:
			s.arrivals.answered(m)
			if s.o.Reply != nil {
				s.o.Reply(s.now, m)
			}
		}
	}
	clear(s.out.Effects)
	clear(s.out.Facts)
	s.out.Reset()
	if s.told > 0 {
		if s.o.Observer != nil {
			s.o.Observer.Sent(s.told)
		}
		s.told = 0
	}
}

// FinishPilots adds what is under way of pilots to what the lenders record; the run is over.
func (s *Sim) FinishPilots() { s.pilots.finish() }

// Survival is what became of subjobs where memory ran out.
func (s *Sim) Survival() measure.Survival { return s.hosts.tallied }

// Negotiation is what the market has done so far; all 0 where the zone does not negotiate.
func (s *Sim) Negotiation() measure.Negotiation {
	n := s.negotiated
	for p := 1; p < s.node; p++ {
		n.forget(s.parties[p].Actor)
	}
	return measure.Negotiation{
		Rounds: n.past.Rounds, Calls: n.past.Calls, Missed: n.past.Missed, Variants: n.past.Variants, Denied: n.past.Denied,
		Awards: n.awards, Withdrawn: n.past.Withdrawn, Weight: n.weight, AgentMessages: s.agents.said,
		Waits: n.told.Waits, Sooner: n.told.Sooner, Later: n.told.Later,
		Value: n.past.Value, Bound: n.past.Bound, Regret: n.past.Regret,
	}
}
