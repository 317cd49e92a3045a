package sim

import (
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/sim/skew"
)

// faults carries out what goes wrong.
type faults struct {
	*ground
	machine    *machine
	negotiated *negotiated
	// restarted lets a party go on whose daemon was started again.
	restarted func(p int)
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

// factLog is what a fresh actor reads after a crash: facts, now and then replaced by a snapshot as in a journal.
type factLog struct {
	facts []protocol.Fact
	limit int
}

// leastLog is how many facts are kept before a snapshot replaces them.
const leastLog = 4096

func (f *faults) begin() {
	o := &f.o.Faults
	for _, x := range o.Schedule {
		f.list = append(f.list, struck{Fault: x, party: f.struckBy(&x)})
		f.events.Put(max(x.At, f.now), event{kind: strikes, index: int32(len(f.list) - 1)})
	}
	for i := range o.Random {
		from, to := f.node, f.berth()
		switch o.Random[i].Kind {
		case ZoneCrash:
			from, to = len(f.gates), f.node
		case GateCrash:
			from, to = 0, len(f.gates)
		case DaemonCrash:
			from = f.withDaemon()
			to = from + 1
		default: // on every node
		}
		for p := from; p < to; p++ {
			f.list = append(f.list, struck{Fault: o.Random[i].Fault, party: p, rate: &o.Random[i]})
			f.next(int32(len(f.list) - 1))
		}
	}
	for i := range f.list {
		if f.list[i].Kind.crash() {
			f.logs = make([]factLog, len(f.parties))
		}
	}
	if o.Offset == 0 && o.Drift == 0 {
		return
	}
	for p := f.node; p < f.berth(); p++ {
		draw := prng.New(f.o.Seed, forClock, f.parties[p].key)
		off := time.Duration((2*draw.Float64() - 1) * float64(o.Offset))
		f.parties[p].clock = skew.New(f.now, off, int64((2*draw.Float64()-1)*float64(o.Drift)))
	}
}

// struckBy is the party that a scheduled fault happens to.
func (f *faults) struckBy(x *Fault) int {
	at := protocol.Address{Role: protocol.Node, ID: string(x.Node)}
	switch x.Kind {
	case ZoneCrash:
		at = protocol.Address{Role: protocol.Zone, ID: string(x.Zone)}
	case GateCrash:
		at = protocol.Address{Role: protocol.Gate, ID: string(x.Gate)}
	default:
	}
	if p, known := f.index[at]; known {
		return p
	}
	return f.withDaemon() // a DaemonCrash that names no node
}

// withDaemon is the node of the gates' and zones' process; where there is none, the last zone.
func (f *faults) withDaemon() int { return min(f.node, f.berth()-1) }

func (f *faults) isZone(p int) bool { return p >= len(f.gates) && p < f.node }

// next draws when a random fault comes again, and for how long.
func (f *faults) next(i int32) {
	x := &f.list[i]
	draw := prng.New(f.o.Seed, forFault, uint64(i), f.parties[x.party].key, x.count)
	x.At = max(x.At, f.now).Add(time.Duration(draw.Exp() * float64(x.rate.Every)))
	x.For = max(time.Millisecond, time.Duration(draw.Exp()*float64(x.rate.For)))
	x.count++
	f.events.Put(x.At, event{kind: strikes, index: i})
}

// strike begins a fault. The next one of a rate is drawn when it is over.
func (f *faults) strike(i int32) {
	x := &f.list[i]
	p := &f.parties[x.party]
	switch x.Kind {
	case NodeCrash:
		f.machine.shake(x.party, x.Keep)
		f.takeDown(x.party, x.For)
	case ZoneCrash, GateCrash:
		f.takeDown(x.party, x.For)
	case DaemonCrash:
		for p := range f.node {
			f.takeDown(p, x.For)
		}
		f.machine.shake(x.party, true)
		f.takeDown(x.party, x.For)
	case Partition:
		p.cut[inbound]++
		p.cut[outbound]++
	case PartitionIn:
		p.cut[inbound]++
	case PartitionOut:
		p.cut[outbound]++
	case ClockSet:
		f.setClock(x.party, x.Offset, x.Drift)
	}
	if x.For > 0 {
		f.events.Put(f.now.Add(x.For), event{kind: passes, index: i})
	}
}

// pass ends a fault.
func (f *faults) pass(i int32) {
	x := &f.list[i]
	p := &f.parties[x.party]
	switch x.Kind {
	case NodeCrash, ZoneCrash, GateCrash:
		f.boot(x.party)
	case DaemonCrash:
		for p := range f.node {
			f.boot(p)
		}
		f.boot(x.party)
	case Partition:
		p.cut[inbound]--
		p.cut[outbound]--
	case PartitionIn:
		p.cut[inbound]--
	case PartitionOut:
		p.cut[outbound]--
	case ClockSet:
		f.setClock(x.party, 0, 0)
	}
	if x.rate != nil {
		f.next(i)
	}
}

// takeDown ends a party's daemon: messages to it are lost until it is up again, and so is what it had not written down.
func (f *faults) takeDown(p int, d time.Duration) {
	x := &f.parties[p]
	if f.isZone(p) && !x.down {
		f.negotiated.forget(x.Actor)
	}
	x.up = max(f.now.Add(d), x.up)
	x.down = true
	f.wakes.Set(p, quantity.Never)
}

// boot starts a party's daemon again from its facts, unless another fault keeps it down.
func (f *faults) boot(p int) {
	x := &f.parties[p]
	if !x.down || x.up > f.now {
		return
	}
	x.down = false
	was := x.Actor.Digest()
	x.Actor = f.o.Rebuild(x.Address)
	for i := range f.logs[p].facts {
		x.Actor.Apply(f.logs[p].facts[i])
	}
	if is := x.Actor.Digest(); is != was {
		invariant.Check(false, "%s had the digest %016x before its crash; its facts fold to %016x", actor.Name(x.Address), was, is)
	}
	f.restarted(p)
}

// setClock sets a node's clock. What was to happen by it is looked at again.
func (f *faults) setClock(p int, offset time.Duration, drift int64) {
	x := &f.parties[p]
	x.clock.Set(f.now, offset, drift)
	if !x.down {
		f.wakes.Set(p, f.now) // the tick asks for the next one
	}
	f.machine.rearm(p)
}

// keep writes a fact down.
func (f *faults) keep(p int, x *protocol.Fact) {
	if f.logs != nil {
		f.logs[p].facts = append(f.logs[p].facts, *x)
	}
}

// compact replaces a long log by a snapshot.
func (f *faults) compact(p int) {
	if f.logs == nil || len(f.logs[p].facts) < max(leastLog, f.logs[p].limit) {
		return
	}
	l := &f.logs[p]
	if a, ok := f.parties[p].Actor.(capture.Source); ok {
		l.facts = capture.All(a)
	}
	l.limit = 2 * len(l.facts)
}
