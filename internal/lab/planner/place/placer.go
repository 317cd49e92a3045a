package place

import (
	"math/bits"
	"slices"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
)

// Placer is a planner.Planner that starts a waiting task as soon as some place has room for it, and chooses the place by
// score. Tasks that do not fit wait in the order they came; those behind may overtake them.
type Placer struct {
	scorer Scorer
	random bool
	seed   uint64
	state  *State
	// empty is the cluster with nothing on it.
	empty *State
	// order is the nodes by rank; rankOf the reverse.
	order, rankOf []int32
	// tier is added to the score of a place on a device of a class.
	tier [planner.MaxClasses]int16
	// bySize is the classes, the smallest devices first.
	bySize []uint8

	byKey      map[key]int32
	shapes     []*shape
	freeShapes []int32
	shapeLimit int

	// changes counts the changes of nodes. log has the rank that the last ones were of, changed the last one of each rank.
	changes uint64
	log     []int32
	changed []uint64

	tasks   []entry
	arrived uint64
	// ready are the shapes to try, by the arrival of their first task; blocked are those that wait for something to leave.
	ready   []turn
	blocked []*shape
	left    bool
	refused []planner.ID
}

// Settings is what a kind adds.
type Settings struct {
	// Scorer makes the scorer for a valid cluster; nil for a placer that draws a place uniformly among those with room.
	Scorer func(planner.Cluster) Scorer
	// SmallestFirst: a place on a smaller device (less memory, then less weight) is better, whatever the scores.
	SmallestFirst bool
}

// New is a placer for the options, or an error of kind Invalid that lists what is wrong with them.
func New(o planner.Options, with Settings) (planner.Planner, error) {
	if err := Check(o); err != nil {
		return nil, err
	}
	return newPlacer(o, with), nil
}

func newPlacer(o planner.Options, with Settings) *Placer {
	n := len(o.Cluster.Nodes)
	p := &Placer{
		random: with.Scorer == nil, seed: o.Seed,
		state: NewState(o.Cluster), empty: NewState(o.Cluster),
		order: make([]int32, n), rankOf: make([]int32, n),
		byKey: map[key]int32{}, shapeLimit: max(64, cells/n),
		log: make([]int32, 1<<bits.Len(uint(n))), changed: make([]uint64, n),
	}
	if !p.random {
		p.scorer = with.Scorer(o.Cluster)
	}
	for node := range p.rankOf {
		p.rankOf[node] = int32(node)
		if o.Ranks != nil {
			p.rankOf[node] = o.Ranks[node]
		}
		p.order[p.rankOf[node]] = int32(node)
	}
	for class := range o.Cluster.Classes {
		p.bySize = append(p.bySize, uint8(class))
	}
	slices.SortFunc(p.bySize, func(a, b uint8) int { return compareClasses(o.Cluster.Classes, a, b) })
	if with.SmallestFirst {
		p.tiers(o.Cluster.Classes)
	}
	return p
}

// tiers gives classes of equally small devices the same tier, and smaller ones a higher.
func (p *Placer) tiers(classes []planner.Class) {
	tier := int16(0)
	for i := len(p.bySize) - 1; i >= 0; i-- {
		if i < len(p.bySize)-1 {
			a, b := classes[p.bySize[i]], classes[p.bySize[i+1]]
			if a.Memory != b.Memory || a.Weight != b.Weight {
				tier += Best + 1
			}
		}
		p.tier[p.bySize[i]] = tier
	}
}

// nobody is no task.
const nobody planner.ID = -1

// entry is what a placer knows about a task.
type entry struct {
	state state
	// next and prev of those that wait with the same shape.
	next, prev planner.ID
	arrival    uint64
	shape      *shape
	// piece of it that holds each of the devices, or node if there are none.
	piece   planner.Task
	node    int32
	devices []planner.Device
}

type state uint8

const (
	absent state = iota
	waiting
	running
	impossible
)

// Arrive implements planner.Planner.
func (p *Placer) Arrive(_ quantity.Instant, t planner.Task) {
	for int(t.ID) >= len(p.tasks) {
		p.tasks = append(p.tasks, entry{})
	}
	e := &p.tasks[t.ID]
	if e.state != absent {
		invariant.Check(false, "task %d arrives and is there already", t.ID)
	}
	s := p.shapeOf(&t)
	p.arrived++
	*e = entry{state: waiting, next: nobody, prev: s.last, arrival: p.arrived, shape: s, devices: e.devices[:0]}
	if len(s.views) == 0 {
		e.state = impossible
		p.refused = append(p.refused, t.ID)
		return
	}
	if s.last == nobody {
		s.first = t.ID
	} else {
		p.tasks[s.last].next = t.ID
	}
	s.last = t.ID
	p.enqueue(s)
}

// Leave implements planner.Planner.
func (p *Placer) Leave(_ quantity.Instant, id planner.ID) {
	if int(id) >= len(p.tasks) {
		return
	}
	switch e := &p.tasks[id]; e.state {
	case waiting:
		p.unlink(e)
		e.state = absent
	case running:
		p.release(e)
		e.state = absent
		p.left = true
	case impossible:
		p.refused = slices.DeleteFunc(p.refused, func(r planner.ID) bool { return r == id })
		e.state = absent
	case absent:
	}
}

// unlink takes a waiting task out of its shape's queue.
func (p *Placer) unlink(e *entry) {
	s := e.shape
	if e.prev == nobody {
		s.first = e.next
	} else {
		p.tasks[e.prev].next = e.next
	}
	if e.next == nobody {
		s.last = e.prev
	} else {
		p.tasks[e.next].prev = e.prev
	}
}

// Plan implements planner.Planner.
func (p *Placer) Plan(_ quantity.Instant, out *planner.Out) {
	for _, id := range p.refused {
		out.Decisions = append(out.Decisions, planner.Decision{Verb: planner.Never, Task: id})
		p.tasks[id].state = absent
	}
	p.refused = p.refused[:0]
	if p.left {
		p.left = false
		for _, s := range p.blocked {
			s.blocked = false
			p.enqueue(s)
		}
		p.blocked = p.blocked[:0]
	}
	for len(p.ready) > 0 {
		s := p.pop()
		if s.first == nobody {
			continue
		}
		id := s.first
		if !p.start(id, s, out) {
			s.blocked = true
			p.blocked = append(p.blocked, s)
			continue
		}
		e := &p.tasks[id]
		p.unlink(e)
		e.state = running
		p.enqueue(s)
	}
}

// Reservations implements planner.Planner: there are none.
func (p *Placer) Reservations(_ quantity.Instant, out []planner.Reservation) []planner.Reservation {
	return out
}

// stream of random numbers of a task: a function of which arrival it is, so that no other draw moves it.
func (p *Placer) stream(e *entry) prng.Stream {
	return prng.New(p.seed, prng.Name("planner/place"), e.arrival)
}
