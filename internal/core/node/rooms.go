package node

import (
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// room is what probes ask of one slice. All rooms of a node lie beside each other, so that a decision does not read every slice and its
// timeline: of most it is known.
type room struct {
	capacity quantity.Amount
	// until is when the free time that now lies in ends, if it is free.
	until quantity.Instant
	// class of what it holds, if that is of one.
	class flow.Class
	holds bool
	free  bool
	// stands: it is so until the slice changes, or until it is no longer free for MinGap.
	stands bool
}

// roomAt is the room of the slice at a place; good until the slice changes.
func (n *Node) roomAt(now quantity.Instant, i int) *room {
	p := n.probes
	if len(p.rooms) != len(n.slices) {
		p.rooms = make([]room, len(n.slices))
		for place, s := range n.slices {
			s.place = place
		}
	}
	r := &p.rooms[i]
	if !r.stands || r.free && (r.until <= now || r.until.Sub(now) < n.cfg.MinGap) {
		n.lookAt(now, n.slices[i], r)
	}
	return r
}

// lookAt takes down what is so of a slice now.
func (n *Node) lookAt(now quantity.Instant, s *slice, r *room) {
	r.capacity = s.desc.Offered()[trp.Memory]
	r.class, r.holds = n.probes.cfg.Flow.Classes.Holds(r.capacity)
	r.until, r.free = n.freeNow(now, s)
	sold := s.time.Sold()
	// What was sold before now is in the way until it is taken out, even past its end.
	r.stands = r.free || len(sold) > 0 && sold[0].Start <= now
}

// dim says that a slice has changed, dimAll that all have.
func (p *probes) dim(s *slice) {
	if p != nil && s.place < len(p.rooms) {
		p.rooms[s.place].stands = false
	}
}

func (p *probes) dimAll() {
	if p != nil {
		p.rooms = p.rooms[:0]
	}
}
