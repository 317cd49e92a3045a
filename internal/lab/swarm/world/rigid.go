package world

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/lab/swarm"
)

// rigids is the rigid work. When it comes, how many slices of each class it takes in which zone, and for how long, is a function of
// the seed: over time all mechanisms have the same leftover.
type rigids struct {
	*stage
	gap   time.Duration             // mean, in a zone
	count []uint64                  // by zone: jobs that have come
	left  [][swarm.MaxClasses]int64 // by zone and class: slices that no job has claimed
	owed  []time.Duration           // by slice: how long a job is to have one that it has claimed and on which a task runs
	job   []int32                   // scratch: the slices of a job
}

func (w *rigids) begin() {
	if w.o.Rigid.Share == 0 {
		return
	}
	w.count, w.left, w.owed = make([]uint64, w.c.Zones), make([][swarm.MaxClasses]int64, w.c.Zones), make([]time.Duration, len(w.on))
	for n := range int32(w.c.Nodes()) {
		for _, class := range w.c.Slots(n) {
			w.left[w.c.Zone(n)][class]++
		}
	}
	var count int64
	w.gap, count = w.o.rigidGap()
	for z := range int32(w.c.Zones) {
		s := prng.New(w.o.Seed, forRigid, uint64(z))
		for range poisson(&s, count) { // exponential lengths have no memory: these are as good as new
			w.comes(z)
		}
		w.events.Put(w.now.Add(exponential(&s, w.gap)), event{kind: rigidIn, index: z})
	}
}

// arrives lets a zone's next job come and draws when the one after it does.
func (w *rigids) arrives(z int32) {
	w.comes(z)
	s := prng.New(w.o.Seed, forRigid, uint64(z), w.count[z])
	w.events.Put(w.now.Add(exponential(&s, w.gap)), event{kind: rigidIn, index: z})
}

// comes claims slices for a zone's next job. The class of each is drawn by what of the zone nobody has claimed. Of that class
// the first that is free is taken, from a node on round the zone; if none is, the first that runs a task: no other task is started
// there, and the job has the slice when that task has ended, from then on as long as any other.
func (w *rigids) comes(z int32) {
	w.count[z]++
	s := prng.New(w.o.Seed, forRigid, uint64(z), w.count[z])
	s.Uint64() // the gap behind it
	width, begin, length := 1+s.IntN(w.o.Rigid.Width), int32(s.IntN(w.c.PerZone)), exponential(&s, w.o.Rigid.Mean)
	left := &w.left[z]
	w.job = w.job[:0]
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
		w.owed[at] = length
		if w.busy[node]&(1<<slot) == 0 {
			w.vacated(node, slot)
		}
		w.job = append(w.job, at)
	}
	slices.Sort(w.job)
	last := int32(-1)
	for _, at := range w.job {
		if node := at / w.stride; node != last {
			w.changed(node, 0)
			last = node
		}
	}
}

// vacated gives a slice that nothing runs on to the job that has claimed it.
func (w *rigids) vacated(node int32, slot int8) {
	if x := w.settle(w.c.Zone(node), w.now); !x.dead {
		x.leftover--
	}
	at := node*w.stride + int32(slot)
	w.events.Put(w.now.Add(w.owed[at]), event{kind: rigidOut, index: at})
}

// leaves gives a slice back.
func (w *rigids) leaves(at int32) {
	node, slot := at/w.stride, int8(at%w.stride)
	z := w.c.Zone(node)
	w.rigid[node] &^= 1 << slot
	w.left[z][w.c.Slots(node)[slot]]++
	if x := w.settle(z, w.now); !x.dead {
		x.leftover++
		w.changed(node, 0)
	}
}
