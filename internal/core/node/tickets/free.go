package tickets

import (
	"time"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// free knows of each slice whether and until when it is free now. All of it lies side by side, so that a decision does not read every slice
// and its timeline: of most it is known.
type free struct {
	inventory *inventory.Inventory
	classes   flow.Classes
	minGap    time.Duration
	list      []place // in the order of the slices
	gaps      []protocol.Gap
}

// place is what probes ask of one slice.
type place struct {
	of       *inventory.Slice
	changes  uint64 // of it, when this was found
	capacity quantity.Amount
	// until is when the free time that now lies in ends, if it is free.
	until quantity.Instant
	// class of what it holds, if all is of one.
	class flow.Class
	holds bool
	free  bool
	// stands: it is so until the slice changes, or until it is no longer free for minGap.
	stands bool
}

// at is what is known of the slice at a place; good until the slice changes.
func (f *free) at(now quantity.Instant, i int) *place {
	all := f.inventory.All()
	if len(f.list) != len(all) {
		f.list = make([]place, len(all))
	}
	p, s := &f.list[i], all[i]
	if p.of != s || p.changes != s.Changes() || !p.stands || p.free && (p.until <= now || p.until.Sub(now) < f.minGap) {
		f.look(now, s, p)
	}
	return p
}

// look takes down what is so of a slice now.
func (f *free) look(now quantity.Instant, s *inventory.Slice, p *place) {
	d := s.Desc()
	p.of, p.changes, p.capacity = s, s.Changes(), d.Offered()[trp.Memory]
	p.class, p.holds = f.classes.Holds(p.capacity)
	p.until, p.free = f.now(now, s)
	sold := s.Sold()
	// What was sold before now is in the way until it is taken out, even past its end.
	p.stands = p.free || len(sold) > 0 && sold[0].Start <= now
}

// now is until when a slice is free, if it is now.
func (f *free) now(now quantity.Instant, s *inventory.Slice) (until quantity.Instant, free bool) {
	if _, usable := s.Usable(); !usable {
		return 0, false
	}
	f.gaps, _ = s.Gaps(now, 1, f.minGap, f.gaps[:0])
	if len(f.gaps) == 0 || f.gaps[0].Start > now {
		return 0, false
	}
	return f.gaps[0].End, true
}

// count is how many slices of each class are free now.
func (f *free) count(now quantity.Instant) (n flow.Fragments) {
	for i := range f.inventory.All() {
		if p := f.at(now, i); p.free && p.holds && n[p.class] < 255 {
			n[p.class]++
		}
	}
	return n
}
