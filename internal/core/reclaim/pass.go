package reclaim

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// pass is one call of Decide: rooms caches machines that were looked at, looks counts searches.
type pass struct {
	*Keeper
	now     quantity.Instant
	costs   Costs
	looks   int
	rooms   map[string]*room
	changed map[string]bool
	more    bool // searches are left for the next pass
}

// keep and drop are the only ways in which places come and go.
func (p *pass) keep(g *Place) {
	p.places[g.Wish] = g
	if g.Group != "" {
		p.early++
	}
	p.touch(g.Machine)
}

func (p *pass) drop(g *Place) {
	delete(p.places, g.Wish)
	if g.Group != "" {
		p.early--
	}
	p.touch(g.Machine)
}

// touch notes that the places on a machine have changed.
func (p *pass) touch(machine string) {
	p.changed[machine] = true
	delete(p.rooms, machine)
	p.reorder(map[string]bool{machine: true})
}

// room is a machine as it is for those who want something now.
func (p *pass) room(m *Machine) *room {
	if p.rooms[m.Name] == nil {
		p.rooms[m.Name] = newRoom(m, p.now, p.on[m.Name], p.costs)
	}
	return p.rooms[m.Name]
}

// again is when the next pass is due: soon where searches are left, or somebody is about to have waited long enough for room that seems to
// be there.
func (p *pass) again() quantity.Instant {
	switch {
	case p.more:
		return p.now.Add(200 * time.Millisecond)
	case len(p.roomy) > 0:
		return p.now.Add(time.Second)
	case p.Idle():
		return quantity.Never
	}
	return p.now.Add(rests)
}
