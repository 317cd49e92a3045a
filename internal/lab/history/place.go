package history

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

const (
	crowded     = "a run that found too few free devices on its nodes"
	crowdedDone = "it holds those that were free: the log has more at once than its nodes have"
	yielded     = "a run with a doubtful end whose devices others have"
	yieldedDone = "taken as ended when the first of them began"
	uneven      = "a run whose devices can't lie evenly on its nodes"
	unevenDone  = "as many on each as there is room, in order of the nodes"
	shared      = "a run with shares of devices"
	sharedDone  = "each share holds a whole device"
)

// untyped is the kind of a device whose type is not known.
const untyped = "gpu"

// site is what runs are placed in: the devices of each node, by kind.
type site struct {
	log     *merged
	history *History
	kinds   []Kind
	// rank of a kind (as Book numbers them) in order of their names; hosts are the nodes in order of their names, and at has the place of
	// a node (as Book numbers them) there.
	rank, at []int32
	hosts    []string
	spots    []spot
	// named are the kinds that runs ask for or hold by their name.
	named []bool
	// anywhere: the log does not say where anything ran, and the one spot is all places.
	anywhere bool
	// room is how many devices may be invented yet.
	room int
	// counting: how many devices there are is to be found, and runs of a doubtful end are left out.
	counting bool
	// on are the devices that a run of doubtful end holds.
	on map[*Row][]*device
}

// spot is a node with its pools by kind, in order of kinds; known if its devices were told.
type spot struct {
	pools []*pool
	known bool
}

// pool are the devices of one kind at one spot.
type pool struct {
	kind    int32
	spot    int32
	devices []*device
	// free by number; ends of those that are held, by the end, with some that have ended already or end otherwise.
	free numbers
	ends ends
	// grows: more devices may be invented. measured: some have a use.
	grows, measured bool
}

// device while runs are placed. until is when it is free.
type device struct {
	pool   *pool
	number int32
	until  quantity.Instant
	run    *Row
	held   []held
	// node counts in the nodes by name.
	node int32
	use  *Use
}

// held is a hold whose run is not numbered yet.
type held struct {
	from, to quantity.Instant
	run      *Row
}

// numbers is a heap of the numbers of devices.
type numbers []int32

func (h numbers) Len() int           { return len(h) }
func (h numbers) Less(i, j int) bool { return h[i] < h[j] }
func (h numbers) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *numbers) Push(x any)        { *h = append(*h, x.(int32)) }
func (h *numbers) Pop() (x any)      { n := len(*h) - 1; x, *h = (*h)[n], (*h)[:n]; return x }

// end is when a device may become free.
type end struct {
	at     quantity.Instant
	number int32
}

// ends is a heap of ends.
type ends []end

func (h ends) Len() int { return len(h) }
func (h ends) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].at, h[j].at), cmp.Compare(h[i].number, h[j].number)) < 0
}
func (h ends) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *ends) Push(x any)   { *h = append(*h, x.(end)) }
func (h *ends) Pop() (x any) { n := len(*h) - 1; x, *h = (*h)[n], (*h)[:n]; return x }

func (h *ends) add(e end) { heap.Push(h, e) }
func (h *ends) next() end { return heap.Pop(h).(end) }

// first is the earliest, Never of none.
func (h ends) first() quantity.Instant {
	if len(h) == 0 {
		return quantity.Never
	}
	return h[0].at
}

// take gives a run the free device of the lowest number when it starts, or nil. Of measured ones it is the one that was busy longest while
// it ran.
func (p *pool) take(r *Row) *device {
	if p.available(r.Start) == 0 {
		return nil
	}
	best, longest := 0, time.Duration(-1)
	for i := 0; p.measured && i < len(p.free); i++ {
		busy := time.Duration(0)
		if u := p.devices[p.free[i]].use; u != nil {
			busy = u.Busy.Overlap(r.Start, r.End)
		}
		if busy > longest || busy == longest && p.free[i] < p.free[best] {
			best, longest = i, busy
		}
	}
	return p.devices[heap.Remove(&p.free, best).(int32)]
}

// available is how many devices are free at an instant, which must not be before that of an earlier call.
func (p *pool) available(now quantity.Instant) int32 {
	for p.ends.first() <= now {
		e := p.ends.next()
		if d := p.devices[e.number]; d.until == e.at && d.run != nil {
			d.run = nil
			heap.Push(&p.free, e.number)
		}
	}
	return int32(len(p.free))
}

// invent adds a device to a pool.
func (p *pool) invent() *device {
	d := &device{pool: p, number: int32(len(p.devices))}
	p.devices = append(p.devices, d)
	return d
}

// hold gives a device to a run. With keep it is written down.
func (d *device) hold(r *Row, keep bool) {
	d.run, d.until = r, r.End
	if keep {
		d.held = append(d.held, held{r.Start, r.End, r})
	}
	d.pool.ends.add(end{r.End, d.number})
}

// cut ends a hold early.
func (d *device) cut(now quantity.Instant) {
	if last := &d.held[len(d.held)-1]; last.from < now {
		last.to = now
	} else {
		d.held = d.held[:len(d.held)-1]
	}
	d.until = now
	d.pool.ends.add(end{now, d.number})
}

// pool is a spot's pool of a kind; nil if there is none and none may be invented.
func (s *site) pool(at, kind int32) *pool {
	x := &s.spots[at]
	i, found := slices.BinarySearchFunc(x.pools, kind, func(p *pool, k int32) int { return cmp.Compare(p.kind, k) })
	if found {
		return x.pools[i]
	}
	if x.known {
		return nil
	}
	p := &pool{kind: kind, spot: at, grows: true}
	x.pools = slices.Insert(x.pools, i, p)
	return p
}

// all places the runs in order of their starts.
func (s *site) all(runs []*Row) {
	for _, r := range runs {
		if r.Start == quantity.Never || r.End <= r.Start || s.counting && s.log.doubt[r] {
			continue
		}
		if !s.put(r) && !s.counting {
			s.log.note(crowded, crowdedDone, r)
		}
	}
}

// put places all that a run holds, and says whether it found room.
func (s *site) put(r *Row) bool {
	got := true
	for _, part := range s.history.Loads[r.Load] {
		if part.Milli < 1000 && !s.counting {
			s.log.note(shared, sharedDone, r)
		}
		got = s.part(r, part) && got
	}
	return got
}

// part places the devices of one kind that a run holds, and says whether all found room.
func (s *site) part(r *Row, part Part) bool {
	kind, nodes := part.Kind, s.history.Places[r.Place]
	if s.anywhere {
		return s.give(r, 0, kind, part.Count) == 0
	}
	if len(nodes) == 0 {
		left := part.Count
		for at := int32(0); at < int32(len(s.spots)) && left > 0; at++ {
			left = s.give(r, at, kind, left)
		}
		return left == 0
	}
	n := int32(len(nodes))
	if part.Count%n == 0 {
		left := int32(0)
		for _, at := range nodes {
			left += s.give(r, at, kind, part.Count/n)
		}
		return left == 0
	}
	if !s.counting {
		s.log.note(uneven, unevenDone, r)
	}
	left := part.Count
	for i, at := range nodes {
		share := (left + n - int32(i) - 1) / (n - int32(i)) // the rest, evenly over the nodes that are left
		left -= share - s.give(r, at, kind, share)
	}
	for _, at := range nodes {
		left = s.give(r, at, kind, left)
	}
	return left == 0
}

// give places devices of a kind at a spot, and returns how many found no room. What has no type takes any, first those of which no run
// ever names the type; and of devices without a type any are taken.
func (s *site) give(r *Row, at, kind, count int32) int32 {
	s.pools(at, kind, func(p *pool) bool {
		count = s.from(r, p, count)
		return count > 0
	})
	return count
}

// pools are those of a spot that a run of a kind may take devices from, in that order, until visit returns false.
func (s *site) pools(at, kind int32, visit func(*pool) bool) {
	if p := s.pool(at, kind); p != nil && !visit(p) {
		return
	}
	of := s.kinds[kind].Name == untyped
	for _, named := range []bool{false, true} {
		for _, p := range s.spots[at].pools {
			if p.kind != kind && s.named[p.kind] == named && (of || s.kinds[p.kind].Name == untyped) && !visit(p) {
				return
			}
		}
	}
}

// from takes devices from a pool, also those of runs whose end is doubtful, and returns how many found no room.
func (s *site) from(r *Row, p *pool, count int32) int32 {
	for ; count > 0; count-- {
		d := p.take(r)
		if d == nil && p.grows && s.room > 0 {
			d = p.invent()
			s.room--
		}
		if d == nil && len(s.on) > 0 && !s.log.doubt[r] {
			d = s.claim(p, r)
		}
		if d == nil {
			break
		}
		d.hold(r, !s.counting)
		if s.log.doubt[r] {
			s.on[r] = append(s.on[r], d)
		}
	}
	return count
}

// claim ends a run of a doubtful end that holds a device of the pool, and gives the device. Of several it is the run that began first.
func (s *site) claim(p *pool, r *Row) *device {
	var of *Row
	now := r.Start
	for _, d := range p.devices {
		if d.run != nil && s.log.doubt[d.run] && d.run.Start < now && (of == nil || d.run.Start < of.Start) {
			of = d.run
		}
	}
	if of == nil {
		return nil
	}
	s.log.note(yielded, yieldedDone, of)
	of.End, of.Open = now, false
	for _, d := range s.on[of] {
		if d.run == of {
			d.cut(now)
		}
	}
	delete(s.on, of)
	return p.take(r)
}
