package sim

import (
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// trouble is what is wrong with a party at present.
type trouble struct {
	down bool
	up   quantity.Instant // when it comes back, if it is down
	cut  [2]int           // how many partitions keep its messages from it, and from the others
}

const (
	inbound = iota
	outbound
)

// faults carries out what goes wrong.
type faults struct {
	// list is every scheduled fault, then for each rate one of each node: the one that comes next there.
	list []struck
	// logs are the durable facts of every party, kept where there can be crashes.
	logs []factLog
}

// struck is a fault with where it comes from.
type struck struct {
	Fault
	party int
	rate  *Rate  // nil for a scheduled one
	count uint64 // how many came of the rate before it, on this node
}

// factLog is what a fresh actor is told after a crash: facts, now and then replaced by a snapshot as a journal's are.
type factLog struct {
	facts []protocol.Fact
	limit int
}

// leastLog is how many facts are kept before a snapshot replaces them.
const leastLog = 4096

func (f *faults) begin(s *Sim) {
	o := &s.o.Faults
	for _, x := range o.Schedule {
		f.list = append(f.list, struck{Fault: x, party: s.struckBy(&x)})
		s.events.Put(max(x.At, s.now), event{kind: strikes, index: int32(len(f.list) - 1)})
	}
	for i := range o.Random {
		from, to := s.node, len(s.parties)
		switch o.Random[i].Kind {
		case ZoneCrash:
			from, to = len(s.gates), s.node
		case GateCrash:
			from, to = 0, len(s.gates)
		case DaemonCrash:
			to = from + 1
		default: // on every node
		}
		for p := from; p < to; p++ {
			f.list = append(f.list, struck{Fault: o.Random[i].Fault, party: p, rate: &o.Random[i]})
			f.next(s, int32(len(f.list)-1))
		}
	}
	for i := range f.list {
		if f.list[i].Kind.crash() {
			f.logs = make([]factLog, len(s.parties))
		}
	}
	if o.Offset == 0 && o.Drift == 0 {
		return
	}
	for p := s.node; p < len(s.parties); p++ {
		draw := prng.New(s.o.Seed, forClock, s.parties[p].key)
		off := time.Duration((2*draw.Float64() - 1) * float64(o.Offset))
		s.parties[p].clock = clock{since: s.now, offset: off, ppm: int64((2*draw.Float64() - 1) * float64(o.Drift))}
	}
}

// struckBy is the party that a scheduled fault happens to.
func (s *Sim) struckBy(x *Fault) int {
	at := protocol.Address{Role: protocol.Node, ID: string(x.Node)}
	switch x.Kind {
	case ZoneCrash:
		at = protocol.Address{Role: protocol.Zone, ID: string(x.Zone)}
	case GateCrash:
		at = protocol.Address{Role: protocol.Gate, ID: string(x.Gate)}
	default:
	}
	if p, known := s.index[at]; known {
		return p
	}
	return s.node // a DaemonCrash that names no node
}

func (s *Sim) isZone(p int) bool { return p >= len(s.gates) && p < s.node }

// next draws when a random fault comes again, and for how long.
func (f *faults) next(s *Sim, i int32) {
	x := &f.list[i]
	draw := prng.New(s.o.Seed, forFault, uint64(i), s.parties[x.party].key, x.count)
	x.At = max(x.At, s.now).Add(time.Duration(draw.Exp() * float64(x.rate.Every)))
	x.For = max(time.Millisecond, time.Duration(draw.Exp()*float64(x.rate.For)))
	x.count++
	s.events.Put(x.At, event{kind: strikes, index: i})
}

// strike begins a fault. The next one of a rate is drawn when it is over.
func (s *Sim) strike(i int32) {
	x := &s.faults.list[i]
	p := &s.parties[x.party]
	switch x.Kind {
	case NodeCrash:
		s.machine.shake(x.party, x.Keep)
		s.takeDown(x.party, x.For)
	case ZoneCrash, GateCrash:
		s.takeDown(x.party, x.For)
	case DaemonCrash:
		for p := range s.node {
			s.takeDown(p, x.For)
		}
		s.takeDown(x.party, x.For)
	case Partition:
		p.cut[inbound]++
		p.cut[outbound]++
	case PartitionIn:
		p.cut[inbound]++
	case PartitionOut:
		p.cut[outbound]++
	case ClockSet:
		s.setClock(x.party, x.Offset, x.Drift)
	}
	if x.For > 0 {
		s.events.Put(s.now.Add(x.For), event{kind: passes, index: i})
	}
}

// pass ends a fault.
func (s *Sim) pass(i int32) {
	x := &s.faults.list[i]
	p := &s.parties[x.party]
	switch x.Kind {
	case NodeCrash, ZoneCrash, GateCrash:
		s.boot(x.party)
	case DaemonCrash:
		for p := range s.node {
			s.boot(p)
		}
		s.boot(x.party)
	case Partition:
		p.cut[inbound]--
		p.cut[outbound]--
	case PartitionIn:
		p.cut[inbound]--
	case PartitionOut:
		p.cut[outbound]--
	case ClockSet:
		s.setClock(x.party, 0, 0)
	}
	if x.rate != nil {
		s.faults.next(s, i)
	}
}

// takeDown ends a party's daemon: what is said to it until it is up again is lost, and what it had not written down.
func (s *Sim) takeDown(p int, d time.Duration) {
	x := &s.parties[p]
	if s.isZone(p) && !x.down {
		s.negotiated.forget(x.Actor)
	}
	x.up = max(s.now.Add(d), x.up)
	x.down = true
	s.wakes.set(p, quantity.Never)
}

// boot starts a party's daemon again from its facts, unless another fault keeps it down.
func (s *Sim) boot(p int) {
	x := &s.parties[p]
	if !x.down || x.up > s.now {
		return
	}
	x.down = false
	was := x.Actor.Digest()
	x.Actor = s.o.Rebuild(x.Address)
	for i := range s.faults.logs[p].facts {
		x.Actor.Apply(s.faults.logs[p].facts[i])
	}
	if is := x.Actor.Digest(); is != was {
		invariant.Check(false, "%s had the digest %016x before its crash; its facts fold to %016x", actor.Name(x.Address), was, is)
	}
	s.recover(p)
	if s.isZone(p) {
		s.agents.again(p)
	}
	if p >= s.node {
		s.inventory(p, s.machine.found(p))
	}
	s.dispatch()
}

// setClock sets a node's clock. What was to happen by it is looked at again.
func (s *Sim) setClock(p int, offset time.Duration, drift int64) {
	x := &s.parties[p]
	x.clock.set(s.now, offset, drift)
	if !x.down {
		s.wakes.set(p, s.now) // the tick asks for the next one
	}
	s.machine.rearm(p)
}

// keep writes a fact down.
func (f *faults) keep(p int, x *protocol.Fact) {
	if f.logs != nil {
		f.logs[p].facts = append(f.logs[p].facts, *x)
	}
}

// compact replaces a long log by a snapshot.
func (f *faults) compact(s *Sim, p int) {
	if f.logs == nil || len(f.logs[p].facts) < max(leastLog, f.logs[p].limit) {
		return
	}
	l := &f.logs[p]
	if a, ok := s.parties[p].Actor.(capture.Source); ok {
		l.facts = capture.All(a)
	}
	l.limit = 2 * len(l.facts)
}
