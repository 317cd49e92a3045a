package world

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// plain is the world again as one would write it without a thought of speed: one list of what is to come, searched from end to end,
// a struct for each slice, tasks that it remembers for ever. It shares with World the draws and nothing else.
type plain struct {
	t    *rapid.T
	o    Options
	c    *swarm.Cluster
	m    swarm.Mechanism
	now  quantity.Instant
	here swarm.Place

	future []due
	number int
	nodes  []plainNode
	tasks  map[swarm.TaskID]*plainTask
	ids    []swarm.TaskID // the last of each slot
	spare  []int          // slots whose task is over and past its deadline, as World uses them again: draws may hang on an id
	dead   []int          // by zone: how often it has died, negative while it is dead
	cut    []bool
	comes  []uint64
	sent   uint64
	jobs   uint64

	log     []string
	waiting int
	told    map[string]int // within the window: kinds of messages, reports, digests, lost
	refused [4]int64
	used    []int64 // by zone, slice-nanoseconds of the window
	left    []int64
}

// due is something to come: at an instant, at first what the heap would hold, then deadlines, then arrivals.
type due struct {
	at     quantity.Instant
	rank   int
	number int
	do     func()
}

type plainNode struct {
	slices     []plainSlice
	told, view uint8
}

type plainSlice struct {
	rigid bool
	owed  time.Duration
	held  bool
	task  *plainTask
}

type plainTask struct {
	swarm.Task
	length     time.Duration
	node, slot int
	state      taskState
	past       bool
}

// admit gives a task an id.
func (p *plain) admit(t *plainTask) {
	slot := len(p.ids)
	if n := len(p.spare); n > 0 {
		slot, p.spare = p.spare[n-1], p.spare[:n-1]
	} else {
		p.ids = append(p.ids, 0)
	}
	t.ID = swarm.NewTaskID(uint32(slot), uint32(p.ids[slot]>>32)+1)
	p.ids[slot], p.tasks[t.ID] = t.ID, t
}

// forget gives the slot of a task free.
func (p *plain) forget(t *plainTask) {
	if t.state == over && t.past {
		p.spare = append(p.spare, t.ID.Slot())
	}
}

func (p *plain) put(at quantity.Instant, rank int, do func()) {
	p.number++
	p.future = append(p.future, due{at, rank, p.number, do})
}

func (p *plain) later(d time.Duration, do func()) { p.put(p.now.Add(d), 0, do) }

func newPlain(t *rapid.T, o Options) *plain {
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	p := &plain{t: t, o: o, c: &o.Cluster, here: nowhere, told: map[string]int{}, tasks: map[swarm.TaskID]*plainTask{}}
	for n := range p.c.Nodes() {
		all := p.c.All(int32(n))
		p.nodes = append(p.nodes, plainNode{make([]plainSlice, len(p.c.Slots(int32(n)))), all, all})
	}
	zones := p.c.Zones
	p.dead, p.cut, p.comes, p.used, p.left = make([]int, zones), make([]bool, zones), make([]uint64, zones), make([]int64, zones),
		make([]int64, zones)
	var err error
	p.m, err = o.Kind.New(swarm.Setup{
		Seed: keyed(o.Seed, forMechanism), Cluster: p.c, Gates: o.Gates, Period: o.Period, Delay: o.Network.Delay + o.Network.Jitter,
		Decision: o.Decision, Patience: o.Flow.Patience,
	}, p)
	if err != nil {
		t.Fatal(err)
	}
	p.put(o.Until, -1, func() {}) // the window is over before anything else happens then
	if o.Rigid.Share > 0 {
		gap, count := o.rigidGap()
		for z := range zones {
			s := prng.New(o.Seed, forRigid, uint64(z))
			for range poisson(&s, count) {
				p.rigid(z)
			}
			p.later(exponential(&s, gap), func() { p.nextRigid(z, gap) })
		}
	}
	p.nextJob()
	p.begin()
	for _, f := range o.Faults.Zones {
		p.put(f.At, 0, func() { p.strike(f) })
		p.put(f.At.Add(f.For), 0, func() { p.pass(f) })
	}
	if o.Kind.Reports || o.Kind.Digests {
		for z := range zones {
			p.put(quantity.Instant(int64(o.Period)*int64(z)/int64(zones)), 0, func() { p.tick(z) })
		}
	}
	return p
}

// play lets everything happen.
func (p *plain) play() {
	for p.now < p.o.Until || p.waiting > 0 {
		first := slices.MinFunc(p.future, func(a, b due) int {
			switch {
			case a.at != b.at:
				return int(min(1, max(-1, a.at-b.at)))
			case a.rank != b.rank:
				return a.rank - b.rank
			default:
				return a.number - b.number
			}
		})
		p.future = slices.DeleteFunc(p.future, func(d due) bool { return d.number == first.number })
		p.goOn(first.at)
		first.do()
		p.here = nowhere
	}
}

// goOn lets time pass, and counts what is used in it.
func (p *plain) goOn(to quantity.Instant) {
	from, until := max(p.now, p.o.From), min(to, p.o.Until)
	for n := range p.nodes {
		z := n / p.c.PerZone
		if p.dead[z] < 0 || until <= from {
			continue
		}
		for _, s := range p.nodes[n].slices {
			if s.task != nil {
				p.used[z] += int64(until - from)
			}
			if !s.rigid || s.task != nil || s.held {
				p.left[z] += int64(until - from)
			}
		}
	}
	p.now = to
}

func (p *plain) count(what string) {
	if p.now >= p.o.From && p.now < p.o.Until {
		p.told[what]++
	}
}

func (p *plain) zone(at swarm.Place) int {
	switch role, i := p.c.Whose(at); role {
	case swarm.Node:
		return int(i) / p.c.PerZone
	case swarm.Zone:
		return int(i)
	default:
		return -1
	}
}

// enter goes to a place that is alive.
func (p *plain) enter(at swarm.Place) bool {
	if z := p.zone(at); z >= 0 && p.dead[z] < 0 {
		return false
	}
	p.here = at
	return true
}

func (p *plain) carry(from, to swarm.Place, do func()) bool {
	p.sent++
	late := p.o.Network.Delay
	s := prng.New(p.o.Seed, forMessage, p.sent)
	if p.o.Network.Loss > 0 && int64(s.IntN(Million)) < p.o.Network.Loss {
		p.count("lost")
		return false
	}
	if p.o.Network.Jitter > 0 {
		late += exponential(&s, p.o.Network.Jitter)
	}
	if a, b := p.zone(from), p.zone(to); a != b && (a >= 0 && p.cut[a] || b >= 0 && p.cut[b]) {
		p.count("lost")
		return false
	}
	p.later(late, do)
	return true
}

func (p *plain) startable(id swarm.TaskID) (*plainTask, swarm.Outcome) {
	t := p.tasks[id]
	out := swarm.Started
	switch {
	case t.Deadline <= p.now:
		out = swarm.Over
	case t.state != waits:
		out = swarm.Elsewhere
	default:
		return t, out
	}
	p.refused[out]++
	return nil, out
}

func (p *plain) land(t *plainTask, node, slot int) {
	p.waiting--
	p.log = append(p.log, fmt.Sprintf("%d: job %d class %d lands on %d/%d", p.now, t.Job, t.Class, node, slot))
	p.occupy(t, node, slot)
}

func (p *plain) occupy(t *plainTask, node, slot int) {
	t.state, t.node, t.slot = runs, node, slot
	p.nodes[node].slices[slot].task = t
	length := t.length
	if p.o.Faults.Stragglers > 0 && int64(keyed(p.o.Seed, forNode, uint64(node))%Million) < p.o.Faults.Stragglers {
		length = time.Duration(quantity.MulDiv(int64(length), p.o.Faults.Slow, 1000))
	}
	p.later(length, func() {
		if t.state == runs {
			p.leave(t, "ran")
			p.here = p.c.At(int32(node))
			p.m.Changed(p.now, int32(node), t.ID)
		}
	})
}

func (p *plain) leave(t *plainTask, fate string) {
	t.state = over
	p.nodes[t.node].slices[t.slot].task = nil
	p.vacated(t.node, t.slot)
	if t.Job > 0 {
		p.log = append(p.log, fmt.Sprintf("%d: job %d %s", p.now, t.Job, fate))
	}
	p.forget(t)
}

// vacated gives a slice that nothing runs on to the rigid job that has claimed it.
func (p *plain) vacated(node, slot int) {
	s := &p.nodes[node].slices[slot]
	if !s.rigid {
		return
	}
	p.later(s.owed, func() {
		s.rigid = false
		if p.enter(p.c.At(int32(node))) {
			p.m.Changed(p.now, int32(node), 0)
		}
	})
}

func (p *plain) nextRigid(z int, gap time.Duration) {
	p.rigid(z)
	s := prng.New(p.o.Seed, forRigid, uint64(z), p.comes[z])
	p.later(exponential(&s, gap), func() { p.nextRigid(z, gap) })
}

func (p *plain) rigid(z int) {
	p.comes[z]++
	s := prng.New(p.o.Seed, forRigid, uint64(z), p.comes[z])
	s.Uint64()
	width, begin, length := 1+s.IntN(p.o.Rigid.Width), s.IntN(p.c.PerZone), exponential(&s, p.o.Rigid.Mean)
	touched := map[int]bool{}
	for range width {
		var classes []uint8 // of every slice that nobody has claimed, in ascending order
		for n := z * p.c.PerZone; n < (z+1)*p.c.PerZone; n++ {
			for i, s := range p.nodes[n].slices {
				if !s.rigid {
					classes = append(classes, p.c.Slots(int32(n))[i])
				}
			}
		}
		if len(classes) == 0 {
			break
		}
		slices.Sort(classes)
		class := classes[s.IntN(len(classes))]
		node, slot := p.open(z, begin, class)
		x := &p.nodes[node].slices[slot]
		x.rigid, x.owed = true, length
		if !x.held && x.task == nil {
			p.vacated(node, slot)
		}
		touched[node] = true
	}
	for n := range p.nodes {
		if touched[n] && p.enter(p.c.At(int32(n))) {
			p.m.Changed(p.now, int32(n), 0)
		}
	}
}

// open is the slice that rigid work takes of a class.
func (p *plain) open(z, begin int, class uint8) (node, slot int) {
	for _, any := range []bool{false, true} {
		for k := range p.c.PerZone {
			n := z*p.c.PerZone + (begin+k)%p.c.PerZone
			for i, s := range p.nodes[n].slices {
				if p.c.Slots(int32(n))[i] == class && !s.rigid && (any || !s.held && s.task == nil) {
					return n, i
				}
			}
		}
	}
	p.t.Fatal("no slice is left")
	return 0, 0
}

func (p *plain) nextJob() {
	p.jobs++
	s := prng.New(p.o.Seed, forJob, p.jobs)
	if at := p.now.Add(exponential(&s, p.o.jobGap())); at < p.o.Until {
		p.put(at, 3, p.arrive)
	}
}

func (p *plain) arrive() {
	s := prng.New(p.o.Seed, forJob, p.jobs)
	s.Uint64()
	gate := int32(s.IntN(p.o.Gates))
	var classes []uint8
	for class, weight := range p.o.Flow.Mix {
		classes = append(classes, slices.Repeat([]uint8{uint8(class)}, int(weight))...)
	}
	class := classes[s.IntN(len(classes))]
	mean, patience, rank, long := p.o.Flow.Mean, p.o.Flow.Patience, 1, int64(s.IntN(Million)) < p.o.Flow.LongShare
	if long {
		mean, patience, rank = p.o.Flow.LongMean, p.o.Flow.LongPatience, 2
	}
	var job []swarm.Task
	for range p.o.Flow.Batch {
		t := &plainTask{state: waits, length: exponential(&s, mean), Task: swarm.Task{
			Job: p.jobs, Arrived: p.now, Deadline: p.now.Add(patience), Gate: gate, Class: class, Long: long,
		}}
		p.admit(t)
		job = append(job, t.Task)
		p.waiting++
		p.put(t.Deadline, rank, func() {
			if t.past = true; t.state == waits {
				p.waiting--
				t.state = over
				p.log = append(p.log, fmt.Sprintf("%d: job %d expired", p.now, t.Job))
				p.forget(t)
				p.here = p.c.GateAt(gate)
				p.m.Expired(p.now, t.Task)
			} else {
				p.forget(t)
			}
		})
	}
	p.nextJob()
	p.here = p.c.GateAt(gate)
	p.m.Arrive(p.now, gate, job)
}

// begin puts the tasks on slices that run at time 0.
func (p *plain) begin() {
	if !p.o.Flow.Begun {
		return
	}
	short, long := p.o.running()
	sum := int64(0)
	for _, weight := range p.o.Flow.Mix {
		sum += weight
	}
	for z := range p.c.Zones {
		s := prng.New(p.o.Seed, forBegun, uint64(z))
		touched := map[int]bool{}
		for class := len(p.c.Classes) - 1; class >= 0; class-- {
			for i, count := range []int64{short, long} {
				for range poisson(&s, quantity.MulDiv(count, p.o.Flow.Mix[class], sum)) {
					t := &plainTask{length: exponential(&s, []time.Duration{p.o.Flow.Mean, p.o.Flow.LongMean}[i]), past: true}
					p.place(t, z, s.IntN(p.c.PerZone), class, touched)
				}
			}
		}
		for n := range p.nodes {
			if touched[n] && p.enter(p.c.At(int32(n))) {
				p.m.Changed(p.now, int32(n), 0)
			}
		}
	}
}

func (p *plain) place(t *plainTask, z, begin, class int, touched map[int]bool) {
	for ; class < len(p.c.Classes); class++ {
		for k := range p.c.PerZone {
			n := z*p.c.PerZone + (begin+k)%p.c.PerZone
			for i, of := range p.c.Slots(int32(n)) {
				if int(of) == class && p.Free(int32(n))&(1<<i) != 0 {
					p.admit(t)
					p.occupy(t, n, i)
					touched[n] = true
					return
				}
			}
		}
	}
}

func (p *plain) strike(f ZoneFault) {
	z := int(f.Zone)
	if f.Cut {
		p.cut[z] = true
		return
	}
	if p.dead[z] < 0 {
		return
	}
	p.dead[z] = -p.dead[z] - 1
	for n := z * p.c.PerZone; n < (z+1)*p.c.PerZone; n++ {
		for i := range p.nodes[n].slices {
			if t := p.nodes[n].slices[i].task; t != nil {
				p.leave(t, "is lost")
			}
		}
		for i := range p.nodes[n].slices {
			if s := &p.nodes[n].slices[i]; s.held {
				s.held = false
				p.vacated(n, i)
			}
		}
		p.nodes[n].told, p.nodes[n].view = 0, 0
	}
}

func (p *plain) pass(f ZoneFault) {
	z := int(f.Zone)
	if f.Cut {
		p.cut[z] = false
		return
	}
	if p.dead[z] >= 0 {
		return
	}
	p.dead[z] = -p.dead[z]
	p.here = p.c.ZoneAt(f.Zone)
	p.m.Reset(p.now, f.Zone)
	for n := z * p.c.PerZone; n < (z+1)*p.c.PerZone; n++ {
		p.here = p.c.At(int32(n))
		p.m.Changed(p.now, int32(n), 0)
	}
}

func (p *plain) tick(z int) {
	p.later(p.o.Period, func() { p.tick(z) })
	if p.dead[z] < 0 {
		return
	}
	at := p.c.ZoneAt(int32(z))
	for n := z * p.c.PerZone; n < (z+1)*p.c.PerZone; n++ {
		free := p.Free(int32(n))
		if free == p.nodes[n].told {
			continue
		}
		p.nodes[n].told = free
		p.count("reports")
		p.carry(p.c.At(int32(n)), at, func() {
			if p.enter(at) {
				p.nodes[n].view = free
				p.m.Report(p.now, int32(z), swarm.Report{Node: int32(n), Free: free})
			}
		})
	}
	if p.o.Kind.Digests {
		p.later(min(p.o.Period/2, p.o.Network.Delay+4*p.o.Network.Jitter+1), func() { p.digest(z) })
	}
}

func (p *plain) digest(z int) {
	at := p.c.ZoneAt(int32(z))
	if !p.enter(at) {
		return
	}
	d := swarm.Digest{Zone: int32(z), Sent: p.now}
	for n := z * p.c.PerZone; n < (z+1)*p.c.PerZone; n++ {
		for i, of := range p.c.Slots(int32(n)) {
			if p.nodes[n].view&(1<<i) != 0 {
				d.Free[of]++
			}
		}
	}
	if teller, ok := p.m.(swarm.Teller); ok {
		if !teller.Tell(p.now, int32(z), &d) {
			return
		}
	}
	for g := range int32(p.o.Gates) {
		p.count("digests")
		p.carry(at, p.c.GateAt(g), func() {
			p.here = p.c.GateAt(g)
			p.m.Digest(p.now, g, &d)
		})
	}
}
