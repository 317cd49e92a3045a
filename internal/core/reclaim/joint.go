package reclaim

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/job"
)

// A wish for several devices gets the set whose subjobs are cheapest to stop, and all of them get their notice at once. Choosing greedily,
// one device after the other, could stop more for the second than both together need.

const (
	// maxPrices bounds the sets of devices, partial ones too, priced on one machine for one combination of alternatives; twice as many
	// while none was found. The first set tried is the greedy one; the result is optimal if the bound is not reached.
	maxPrices = 1024
	// maxChoices bounds the combinations of firstAvailable alternatives tried on one machine.
	maxChoices = 16
)

// option is one alternative of a request, with the devices of a machine that satisfy it.
type option struct {
	*Choice
	// claim is the number of its claim.
	claim int
	fit   []pick
	// short: there are too few.
	short bool
}

// pick is a device chosen for an option.
type pick struct {
	pool *freePool
	d    *poolDevice
	opt  *option
}

// joint is a branch-and-bound search for the cheapest devices for all requests of a wish.
type joint struct {
	options []*option
	all     freePools
	tried   int

	found bool
	best  []pick
	stops []job.SliceID
	cost  stopCost
}

// devices adds to a place the cheapest devices for all wants, and the subjobs to stop for them; false if there are none. Alternatives are
// tried in order of preference; the first combination that fits is taken. bounded: devices, or combinations, were left out.
func (all freePools) devices(wants []want, pl *Place) (found, bounded bool) {
	options := make([][]*option, len(wants))
	for k := range wants {
		for i := range wants[k].choices {
			options[k] = append(options[k], all.option(&wants[k].choices[i], wants[k].claim))
		}
	}
	chosen := make([]int, len(wants))
	for range maxChoices {
		j := &joint{all: all, options: make([]*option, len(wants))}
		none := false
		for k, i := range chosen {
			j.options[k] = options[k][i]
			none = none || j.options[k].short
		}
		if !none {
			j.search(0, 0, nil, nil)
		}
		bounded = bounded || j.tried > maxPrices
		if j.found {
			for _, p := range j.best {
				pl.Devices = append(pl.Devices, DeviceRef{p.pool.Name, p.d.Name})
			}
			pl.Stops, pl.Cost = append(pl.Stops, j.stops...), pl.Cost.Plus(j.cost.Cost)
			return true, bounded
		}
		k := len(chosen) - 1
		for ; k >= 0; k-- { // the next combination, the last request's choices first
			if chosen[k]++; chosen[k] < len(options[k]) {
				break
			}
			chosen[k] = 0
		}
		if k < 0 {
			return false, bounded
		}
	}
	return false, true
}

// option finds the devices that satisfy a choice. A free device that only may match does not count: the scheduler would have allocated it
// already. A choice of all wants every matching device, and none may be uncertain.
func (all freePools) option(c *Choice, claim int) *option {
	a := &option{Choice: c, claim: claim}
	for _, x := range all {
		for k := range x.devices {
			d := &x.devices[k]
			if !d.Here {
				continue
			}
			m := c.match(x.Pool, d.Device)
			no := d.Barred || d.taken
			switch {
			case m == noMatch:
			case c.N == 0 && (no || m == maybe):
				a.short = true
				return a
			case no, m == maybe && d.slice == "" && suffices(x.left, d.uses):
			default:
				a.fit = append(a.fit, pick{x, d, a})
			}
		}
	}
	a.short = len(a.fit) == 0 || int64(len(a.fit)) < min(c.N, maxDevices)
	return a
}

// picked reports whether a device is among picks.
func picked(picks []pick, d *poolDevice) bool {
	return slices.ContainsFunc(picks, func(p pick) bool { return p.d == d })
}

// alike reports whether a device meets its claim's constraints together with those picked before.
func (p *pick) alike(before []pick) bool {
	for _, c := range p.opt.Alike {
		mine, there := p.d.attribute(c.Domain, c.Name, p.pool.Driver)
		if !there {
			return false
		}
		for i := range before {
			q := &before[i]
			if q.opt.claim != p.opt.claim || !slices.ContainsFunc(q.opt.Alike, func(o Alike) bool { return o.Number == c.Number }) {
				continue
			}
			if other, _ := q.d.attribute(c.Domain, c.Name, q.pool.Driver); other != mine {
				return false
			}
		}
	}
	return true
}

// search extends picks with the n-th device of the k-th option. Devices in barred (by index into option.fit) were tried in this position
// before: sets have no order.
func (j *joint) search(k int, n int64, picks []pick, barred []bool) {
	for k < len(j.options) && j.options[k].N > 0 && n >= min(j.options[k].N, maxDevices) {
		k, n, barred = k+1, 0, nil
	}
	if k == len(j.options) {
		if cost, ok := j.price(picks, nil); ok && (!j.found || cost.compare(j.cost) < 0) {
			j.found, j.best, j.cost, j.stops = true, slices.Clone(picks), cost, j.stops[:0]
			j.price(picks, &j.stops)
		}
		return
	}
	a := j.options[k]
	if a.N == 0 {
		for i := range a.fit {
			if p := &a.fit[i]; picked(picks, p.d) || !p.alike(picks) {
				return
			}
			picks = append(slices.Clip(picks), a.fit[i])
		}
		j.search(k+1, 0, picks, nil)
		return
	}
	type child struct {
		at   int
		cost stopCost
	}
	var list []child
	next := append(slices.Clip(picks), pick{})
	for i := range a.fit {
		p := &a.fit[i]
		if barred != nil && barred[i] || picked(picks, p.d) || !p.alike(picks) {
			continue
		}
		if j.tried++; j.tried > maxPrices && (j.found || j.tried > 2*maxPrices) {
			return
		}
		next[len(picks)] = *p
		if cost, ok := j.price(next, nil); ok {
			list = append(list, child{i, cost})
		}
	}
	slices.SortStableFunc(list, func(a, b child) int { return a.cost.compare(b.cost) })
	own := make([]bool, len(a.fit))
	copy(own, barred)
	for _, c := range list {
		if j.found && c.cost.compare(j.cost) >= 0 {
			return // adding devices never lowers the cost, and the list is sorted
		}
		j.search(k, n+1, append(slices.Clip(picks), a.fit[c.at]), own)
		own[c.at] = true
	}
}

// price is the cost of allocating all of these devices; false if they can't be allocated together. Unless stops is nil the subjobs to stop
// are appended to it.
func (j *joint) price(picks []pick, stops *[]job.SliceID) (cost stopCost, ok bool) {
	for _, x := range j.all {
		c, enough := x.price(picks, stops)
		if !enough {
			return cost, false
		}
		cost = cost.plus(c)
	}
	return cost, true
}

// price sums the prices of a pool's devices over groups that share counters (poolDevice.part); the price of each group is computed once and
// cached.
func (x *freePool) price(picks []pick, stops *[]job.SliceID) (cost stopCost, ok bool) {
	x.chosen = x.chosen[:0]
	for i := range picks {
		if p := &picks[i]; p.pool == x && len(p.d.uses) > 0 {
			x.chosen = append(x.chosen, p.d.at)
		}
	}
	slices.SortFunc(x.chosen, func(a, b int) int {
		return cmp.Or(cmp.Compare(x.devices[a].part, x.devices[b].part), cmp.Compare(a, b))
	})
	for from := 0; from < len(x.chosen); {
		to := from + 1
		for to < len(x.chosen) && x.devices[x.chosen[to]].part == x.devices[x.chosen[from]].part {
			to++
		}
		x.key = x.key[:0]
		for _, k := range x.chosen[from:to] {
			x.key = append(x.key, byte(k), byte(k>>8), byte(k>>16))
		}
		known, there := x.prices[string(x.key)]
		if !there {
			known = x.compute(x.chosen[from:to])
			x.prices[string(x.key)] = known
		}
		if !known.ok {
			return cost, false
		}
		if stops != nil {
			*stops = append(*stops, known.stops...)
		}
		cost, from = cost.plus(known.cost), to
	}
	return cost, true
}

// compute finds the cheapest subjobs that free the counters these devices lack.
func (x *freePool) compute(devices []int) (p priced) {
	need := map[int]int64{}
	for _, k := range devices {
		for _, u := range x.devices[k].uses {
			need[u.Counter] += u.N
		}
	}
	var short []int64
	var who []int
	at := map[int]int{}
	for _, counter := range sortedKeys(need) {
		if lacks := need[counter] - x.left[counter]; lacks > 0 {
			at[counter] = len(short)
			short, who = append(short, lacks), append(who, x.users[counter]...)
		}
	}
	if len(short) == 0 {
		return priced{ok: true}
	}
	slices.Sort(who)
	who = slices.Compact(who)
	pieces := make([]Piece, len(who))
	for i, k := range who {
		pieces[i] = Piece{Frees: make([]int64, len(short)), Cost: x.devices[k].cost}
		for _, u := range x.devices[k].uses {
			if s, is := at[u.Counter]; is {
				pieces[i].Frees[s] += u.N
			}
		}
	}
	set, ok := Choose(short, pieces)
	x.bounded = x.bounded || set.Bounded
	p.cost, p.ok = stopCost{set.Cost, len(set.Pieces)}, ok
	for _, i := range set.Pieces {
		p.stops = append(p.stops, x.devices[who[i]].slice)
	}
	return p
}
