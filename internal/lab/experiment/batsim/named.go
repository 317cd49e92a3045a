package batsim

import (
	"math/bits"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
)

// namedEASY is EASY as Batsim's own scheduler has it: the head's reservation is for certain hosts, the lowest numbers that
// are free all through it, and a job behind it may not use those hosts beyond the reserved start even where others would
// do. It differs from planner easy in that alone, and exists to show that this alone explains the differences.
func namedEASY() planner.Kind {
	return planner.Kind{Name: "easy by host", Summary: "EASY whose reservation names hosts, as in Batsim", New: newNamed}
}

// named is the planner. Hosts are bits of a word.
type named struct {
	hosts   uint64
	tasks   map[planner.ID]*namedTask
	queue   []*namedTask
	running []*namedTask
	head    namedTask // the reservation; its task is queue[0] if reserved
	ended   bool
	tested  int // how many of the queue had their turn
}

type namedTask struct {
	planner.Task
	hosts      uint64
	start, end quantity.Instant
}

func newNamed(o planner.Options) (planner.Planner, error) {
	n := 0
	for _, node := range o.Cluster.Nodes {
		n += len(node.Devices)
	}
	if n < 1 || n > 64 {
		return nil, errkind.Errorf(errkind.Invalid, "easy by host: %d hosts, and it serves 1 to 64", n)
	}
	return &named{hosts: 1<<n - 1, tasks: map[planner.ID]*namedTask{}}, nil
}

func (p *named) Arrive(_ quantity.Instant, t planner.Task) {
	k := &namedTask{Task: t}
	p.tasks[t.ID] = k
	p.queue = append(p.queue, k)
}

// Leave is of running tasks: nobody withdraws a job of the reference.
func (p *named) Leave(_ quantity.Instant, id planner.ID) {
	for i, k := range p.running {
		if k.ID == id {
			p.running = append(p.running[:i], p.running[i+1:]...)
			break
		}
	}
	delete(p.tasks, id)
	p.ended = true
}

// free is the hosts that no running job holds in [from, until) according to plan.
func (p *named) free(from quantity.Instant) uint64 {
	free := p.hosts
	for _, k := range p.running {
		if k.end > from {
			free &^= k.hosts
		}
	}
	return free
}

// lowest n of some hosts.
func lowest(hosts uint64, n int32) uint64 {
	rest := hosts
	for range n {
		rest &= rest - 1
	}
	return hosts &^ rest
}

func enough(hosts uint64, n int32) bool { return bits.OnesCount64(hosts) >= int(n) }

func (p *named) Plan(now quantity.Instant, out *planner.Out) {
	if p.ended {
		p.tested = 0
	}
	p.ended = false
	for len(p.queue) > 0 && p.tested == 0 {
		head := p.queue[0]
		free := p.free(now)
		if !enough(free, head.Devices) {
			p.reserve(now, head)
			p.tested = 1
			break
		}
		p.start(now, 0, lowest(free, head.Devices), out)
	}
	for p.tested < len(p.queue) {
		k := p.queue[p.tested]
		free := p.free(now)
		if now.Add(k.Run[0]) > p.head.start {
			free &^= p.head.hosts
		}
		if enough(free, k.Devices) {
			p.start(now, p.tested, lowest(free, k.Devices), out)
		} else {
			p.tested++
		}
	}
}

// reserve gives the head the first planned end from which on enough hosts are free, and the lowest of them.
func (p *named) reserve(now quantity.Instant, head *namedTask) {
	p.head = namedTask{start: quantity.Never}
	for _, k := range p.running {
		at := max(k.end, now+1)
		if free := p.free(at); at < p.head.start && enough(free, head.Devices) {
			p.head = namedTask{start: at, hosts: lowest(free, head.Devices)}
		}
	}
}

func (p *named) start(now quantity.Instant, i int, hosts uint64, out *planner.Out) {
	k := p.queue[i]
	p.queue = append(p.queue[:i], p.queue[i+1:]...)
	k.hosts, k.start, k.end = hosts, now, now.Add(k.Run[0])
	p.running = append(p.running, k)
	from := len(out.Devices)
	for rest := hosts; rest != 0; rest &= rest - 1 {
		out.Devices = append(out.Devices, planner.Device(bits.TrailingZeros64(rest)))
	}
	out.Start(k.ID, 0, int32(bits.TrailingZeros64(hosts)), from)
}

func (p *named) Reservations(_ quantity.Instant, out []planner.Reservation) []planner.Reservation {
	return out
}
