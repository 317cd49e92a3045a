package play

import (
	"slices"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/sim"
)

// Reservations of kind foreign are others' holds as an inventory reports them: soft, all of a slice's at a time, each time any of them
// changes. They are gone when they end, like a stay that ends when announced.

// holds tells the nodes of them.
func holds(s *scenario.Scenario, world *sim.Sim, from protocol.Address) {
	told := map[string]bool{}
	for i := range s.Reservations {
		of := &s.Reservations[i]
		if of.Kind != protocol.ForForeign || told[string(of.Slice)] {
			continue
		}
		told[string(of.Slice)] = true
		var times []quantity.Instant
		var list []*scenario.Reservation
		for k := range s.Reservations {
			if r := &s.Reservations[k]; r.Kind == protocol.ForForeign && r.Slice == of.Slice {
				times, list = append(times, r.At), append(list, r)
				if r.End != quantity.Never {
					times = append(times, r.End)
				}
			}
		}
		slices.Sort(times)
		for _, at := range slices.Compact(times) {
			said := &protocol.Intrusion{Slice: of.Slice}
			for _, r := range list {
				if r.At > at || r.End <= at {
					continue
				}
				h := r.Reservation
				h.Slice, h.Start, h.Source = "", h.Start.Add(epoch), "scenario"
				if h.End != quantity.Never {
					h.End = h.End.Add(epoch)
				}
				said.Closures = append(said.Closures, h)
			}
			world.At(at.Add(epoch), protocol.Message{Kind: protocol.Foreign, From: from,
				To: protocol.Address{Role: protocol.Node, ID: string(of.Node)}, Body: said})
		}
	}
}
