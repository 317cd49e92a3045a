package sim

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/reclaim"
	"sluice.dev/sluice/internal/lab/guest"
	"sluice.dev/sluice/internal/lab/measure"
)

// guests are those that have come, by party. They play the inventory that sees them, and the scheduler that serves them.
type guests struct {
	*ground
	machine *machine
	*guest.House
	list []visitor
	// asked are the nodes that are looked at again in this instant.
	asked map[int]bool
	count *measure.Visits
}

// visitor is a guest with what has become of him.
type visitor struct {
	*guest.Guest
	party int
	state guestState
	// has are the slices it is on, and until when.
	has   []job.SliceID
	until quantity.Instant
}

// guestState is how far a guest is.
type guestState uint8

const (
	isToCome guestState = iota
	isWaiting
	isServed
	isGone
)

// begin schedules the arrivals.
func (g *guests) begin() {
	if g.House == nil {
		return
	}
	if g.count = g.Visits; g.count == nil {
		g.count = &measure.Visits{}
	}
	for i := range g.Guests {
		of := &g.Guests[i]
		g.list = append(g.list, visitor{Guest: of, party: g.index[protocol.Address{Role: protocol.Node, ID: string(of.Node)}]})
		g.events.Put(max(g.now, of.At), event{kind: visits, index: int32(i)})
	}
}

// visit is that a guest comes, or that his time or his patience is over; below 0, that the scheduler looks at a node.
func (g *guests) visit(index int32) {
	if index < 0 {
		party := int(-1 - index)
		delete(g.asked, party)
		g.serve(party)
		return
	}
	x := &g.list[index]
	switch {
	case x.state == isToCome:
		x.state = isWaiting
		g.count.Came++
		if x.Patience > 0 {
			g.events.Put(g.now.Add(x.Patience), event{kind: visits, index: index})
		}
		g.tell(x.party, &protocol.Wishes{Wishes: []reclaim.Wish{g.wish(x)}})
	case x.state == isWaiting && x.Patience > 0 && g.now >= x.At.Add(x.Patience):
		x.state = isGone
		g.count.Left++
		g.tell(x.party, &protocol.Wishes{Dropped: []protocol.Dropped{{ID: reclaim.ID(x.Name)}}})
	case x.state == isServed && x.until <= g.now:
		x.state = isGone
		for _, id := range x.has {
			gone := protocol.Message{Kind: protocol.Foreign, Body: &protocol.Intrusion{Slice: id}}
			g.machine.say(g.parties[x.party].Address, gone)
		}
	default:
		return
	}
	g.look(x.party)
}

// look makes the scheduler look at a node, once all that happens in this instant has happened.
func (g *guests) look(party int) {
	if g.House != nil && !g.asked[party] {
		g.asked[party] = true
		g.events.Put(g.now, event{kind: visits, index: int32(-1 - party)})
	}
}

// changed is that a subjob has begun or ended on a node.
func (g *guests) changed(party int) {
	if g.waits(party) {
		g.look(party)
	}
}

func (g *guests) waits(party int) bool {
	return slices.ContainsFunc(g.list, func(x visitor) bool { return x.party == party && x.state == isWaiting })
}

// serve gives waiting guests what is free, the longest waiting first, and tells the node.
func (g *guests) serve(party int) {
	var waiting []*visitor
	for i := range g.list {
		if x := &g.list[i]; x.party == party && x.state == isWaiting {
			waiting = append(waiting, x)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *visitor) int { return cmp.Compare(a.At, b.At) })
	served := &protocol.Wishes{}
	for _, x := range waiting {
		free := g.free(party, x.Profile)
		if len(free) < x.Slices {
			continue
		}
		x.state, x.has, x.until = isServed, free[len(free)-x.Slices:], quantity.Never
		if x.Runs > 0 {
			x.until = g.now.Add(x.Runs)
			g.events.Put(x.until, event{kind: visits, index: int32(g.number(x))})
		}
		g.count.Served++
		g.count.Waited += g.now.Sub(x.At)
		served.Dropped = append(served.Dropped, protocol.Dropped{ID: reclaim.ID(x.Name), Served: true})
		g.occupy(x)
	}
	g.tell(party, served)
}

func (g *guests) number(x *visitor) int {
	return slices.IndexFunc(g.list, func(o visitor) bool { return o.Name == x.Name })
}

// occupy tells the node which slices are in use.
func (g *guests) occupy(x *visitor) {
	end := quantity.Never
	if x.until != quantity.Never {
		end = g.parties[x.party].clock.Shows(x.until)
	}
	for _, id := range x.has {
		hold := protocol.Reservation{Kind: protocol.ForForeign, End: end, Source: "guest " + x.Name}
		g.machine.say(g.parties[x.party].Address, protocol.Message{
			Kind: protocol.Foreign, Body: &protocol.Intrusion{Slice: id, Closures: []protocol.Reservation{hold}},
		})
	}
}

// tell sends a node the changes, with its machine as it is now.
func (g *guests) tell(party int, w *protocol.Wishes) {
	if g.House == nil {
		return
	}
	w.Machines = []reclaim.Machine{g.inventory(party)}
	g.machine.say(g.parties[party].Address, protocol.Message{Kind: protocol.Wished, Body: w})
}

// again says all of it to a node that has booted.
func (g *guests) again(party int) {
	w := &protocol.Wishes{}
	for i := range g.list {
		switch x := &g.list[i]; {
		case x.party != party:
		case x.state == isWaiting:
			w.Wishes = append(w.Wishes, g.wish(x))
		case x.state == isServed:
			g.occupy(x)
		}
	}
	if len(w.Wishes) > 0 {
		g.tell(party, w)
	}
}

func (g *guests) wish(x *visitor) reclaim.Wish {
	return reclaim.Wish{
		ID: reclaim.ID(x.Name), Who: "guest " + x.Name, Equiv: reclaim.Equiv{Owner: cmp.Or(x.Owner, x.Name), Shape: x.Profile},
		Since: g.parties[x.party].clock.Shows(x.At),
		Asks:  []reclaim.Ask{{Resource: x.Profile, N: int64(x.Slices)}},
	}
}

// on is the users of each slice of a node: subjobs that are not gone, and guests.
func (g *guests) on(party int) map[job.SliceID]bool {
	taken := map[job.SliceID]bool{}
	for _, r := range g.machine.on[party] {
		for _, p := range r.places {
			if r.result == nil {
				taken[p.slice.ID] = true
			}
		}
	}
	for i := range g.list {
		if x := &g.list[i]; x.party == party && x.state == isServed {
			for _, id := range x.has {
				taken[id] = true
			}
		}
	}
	return taken
}

// free are the slices of a profile that nobody is on, in order of id.
func (g *guests) free(party int, profile string) (list []job.SliceID) {
	taken := g.on(party)
	for _, s := range g.o.Nodes[party-g.node].Slices {
		if s.Profile == profile && !taken[s.ID] {
			list = append(list, s.ID)
		}
	}
	slices.Sort(list)
	return list
}

// inventory is what is seen of a node: slices of each profile are a counted resource.
func (g *guests) inventory(party int) reclaim.Machine {
	n := &g.o.Nodes[party-g.node]
	m := reclaim.Machine{Name: string(n.ID)}
	sorted := slices.SortedFunc(slices.Values(n.Slices), func(a, b protocol.Slice) int { return cmp.Compare(a.ID, b.ID) })
	others := map[job.SliceID]quantity.Instant{}
	for i := range g.list {
		x := &g.list[i]
		if x.party != party || x.state != isServed {
			continue
		}
		end := x.until
		if end != quantity.Never {
			end = g.parties[party].clock.Shows(end)
		}
		for _, id := range x.has {
			others[id] = end
		}
		m.Tenants = append(m.Tenants, reclaim.Tenant{Asks: []reclaim.Ask{{Resource: x.Profile, N: int64(x.Slices)}}, End: end})
	}
	at := map[string]int{}
	for _, s := range sorted {
		m.Slices = append(m.Slices, reclaim.Slice{ID: s.ID, Notice: g.Notice})
		i, there := at[s.Profile]
		if !there {
			i = len(m.Resources)
			at[s.Profile] = i
			m.Resources = append(m.Resources, reclaim.Resource{Name: s.Profile})
		}
		r := &m.Resources[i]
		r.N, r.Slices, r.Others = r.N+1, append(r.Slices, s.ID), append(r.Others, others[s.ID])
	}
	for _, r := range g.machine.of(party) {
		for _, p := range r.places {
			if r.result == nil {
				m.Tenants = append(m.Tenants, reclaim.Tenant{
					Slice: p.slice.ID, Asks: []reclaim.Ask{{Resource: p.slice.Profile, N: 1}}, Began: r.shown, End: quantity.Never,
				})
			}
		}
	}
	return m
}
