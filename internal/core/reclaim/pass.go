package reclaim

import "sluice.dev/sluice/internal/core/quantity"

// pass is one call of Decide. rooms caches machines, searches counts towards maxSearches.
type pass struct {
	*Keeper
	now        quantity.Instant
	costs      Costs
	searches   int
	rooms      map[string]*room
	changed    map[string]bool
	unfinished bool // searches are left for the next pass
}

// keep and drop are the only functions that add and remove places.
func (p *pass) keep(pl *Place) {
	p.places[pl.Wish] = pl
	if pl.Group != "" {
		p.ahead++
	}
	p.touch(pl.Machine)
}

func (p *pass) drop(pl *Place) {
	delete(p.places, pl.Wish)
	if pl.Group != "" {
		p.ahead--
	}
	p.touch(pl.Machine)
}

// touch marks the places on a machine as changed.
func (p *pass) touch(machine string) {
	p.changed[machine] = true
	delete(p.rooms, machine)
	p.relist(machine)
}

// room is the machine as a wish finds it now.
func (p *pass) room(m *Machine) *room {
	if p.rooms[m.Name] == nil {
		p.rooms[m.Name] = newRoom(m, p.now, p.on[m.Name], p.costs)
	}
	return p.rooms[m.Name]
}
