package world

import (
	"math/bits"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// rigids is the rigid work. When it comes, how many slices of each class it takes in which zone, and for how long, is a function of
// the seed: over time all mechanisms have the same leftover.
type rigids struct {
	gap   time.Duration             // mean, in a zone
	count []uint64                  // by zone: jobs that have come
	left  [][swarm.MaxClasses]int64 // by zone and class: slices that no job has claimed
	owed  []time.Duration           // by slice: how long a job is to have one that it has claimed and on which a task runs
	job   []int32                   // scratch: the slices of a job
}

func (w *World) beginRigid() {
	r := &w.rigids
	if w.o.Rigid.Share == 0 {
		return
	}
	r.count, r.left, r.owed = make([]uint64, w.c.Zones), make([][swarm.MaxClasses]int64, w.c.Zones), make([]time.Duration, len(w.on))
	for n := range int32(w.c.Nodes()) {
		for _, class := range w.c.Slots(n) {
			r.left[w.c.Zone(n)][class]++
		}
	}
	var count int64
	r.gap, count = w.o.rigidGap()
	for z := range int32(w.c.Zones) {
		s := prng.New(w.o.Seed, forRigid, uint64(z))
		for range poisson(&s, count) { // exponential lengths have no memory: these are as good as new
			w.rigidComes(z)
		}
		w.events.Put(w.now.Add(exponential(&s, r.gap)), event{kind: rigidIn, index: z})
	}
}

// rigidArrives lets a zone's next job come and draws when the one after it does.
func (w *World) rigidArrives(z int32) {
	w.rigidComes(z)
	s := prng.New(w.o.Seed, forRigid, uint64(z), w.rigids.count[z])
	w.events.Put(w.now.Add(exponential(&s, w.rigids.gap)), event{kind: rigidIn, index: z})
}

// rigidComes claims slices for a zone's next job. The class of each is drawn by what of the zone nobody has claimed. Of that class
// the first that is free is taken, from a node on round the zone; if none is, the first that runs a task: no other task is started
// there, and the job has the slice when that task has ended, from then on as long as any other.
func (w *World) rigidComes(z int32) {
	r := &w.rigids
	r.count[z]++
	s := prng.New(w.o.Seed, forRigid, uint64(z), r.count[z])
	s.Uint64() // the gap behind it
	width, begin, length := 1+s.IntN(w.o.Rigid.Width), int32(s.IntN(w.c.PerZone)), exponential(&s, w.o.Rigid.Mean)
	left := &r.left[z]
	r.job = r.job[:0]
	for range width {
		sum := int64(0)
		for _, n := range left {
			sum += n
		}
		if sum == 0 {
			break // it has all of the zone
		}
		nth, class := int64(s.IntN(int(sum))), uint8(0)
		for nth >= left[class] {
			nth -= left[class]
			class++
		}
		left[class]--
		node, slot := w.find(z, begin, class)
		at := node*w.stride + int32(slot)
		w.rigid[node] |= 1 << slot
		r.owed[at] = length
		if w.busy[node]&(1<<slot) == 0 {
			w.vacated(node, slot)
		}
		r.job = append(r.job, at)
	}
	slices.Sort(r.job)
	last := int32(-1)
	for _, at := range r.job {
		if node := at / w.stride; node != last && w.enter(w.c.At(node)) {
			w.m.Changed(w.now, node, 0)
			last = node
		}
	}
}

// find is a slice of a class in a zone that nobody has claimed, a free one if there is one.
func (w *World) find(z, begin int32, class uint8) (node int32, slot int8) {
	perZone := int32(w.c.PerZone)
	for _, busy := range [2]bool{false, true} {
		for k := range perZone {
			node = z*perZone + (begin+k)%perZone
			open := w.c.Exact(node, class) &^ w.rigid[node]
			if !busy {
				open &^= w.busy[node]
			}
			if open != 0 {
				return node, int8(bits.TrailingZeros8(open))
			}
		}
	}
	w.must("rigid work finds no slice of class %d in zone %d", class, z)
	return 0, 0
}

// vacated gives a slice that nothing runs on to the job that has claimed it.
func (w *World) vacated(node int32, slot int8) {
	if x := w.settle(w.c.Zone(node)); !x.dead {
		x.leftover--
	}
	at := node*w.stride + int32(slot)
	w.events.Put(w.now.Add(w.rigids.owed[at]), event{kind: rigidOut, index: at})
}

// rigidLeaves gives a slice back.
func (w *World) rigidLeaves(at int32) {
	node, slot := at/w.stride, int8(at%w.stride)
	z := w.c.Zone(node)
	w.rigid[node] &^= 1 << slot
	w.rigids.left[z][w.c.Slots(node)[slot]]++
	if x := w.settle(z); !x.dead {
		x.leftover++
		w.here = w.c.At(node)
		w.m.Changed(w.now, node, 0)
	}
}

// claimed says whether a slice is to go to rigid work.
func (w *World) claimed(node int32, slot int8) bool { return w.rigid[node]&(1<<slot) != 0 }

// never is a length of time in which nothing comes.
const never = time.Duration(quantity.Never)
