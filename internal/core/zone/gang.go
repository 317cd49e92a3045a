package zone

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/award"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/zone/sites"
)

// askNodes makes the ledger ask for slices of several nodes: of each node in order of its id, and of the smallest slices of each first.
func (z *Zone) askNodes(now quantity.Instant, j *home.Job, on []*backfill.Slice, p award.Piece, out *protocol.Out) {
	on = slices.Clone(on)
	slices.SortStableFunc(on, func(a, b *backfill.Slice) int {
		return cmp.Or(cmp.Compare(a.Node(), b.Node()), cmp.Compare(a.At(), b.At()))
	})
	var members []protocol.Member
	var places []home.Basis
	var also []job.SliceID
	for i, s := range on {
		if i > 0 {
			also = append(also, s.Name())
		}
		if len(members) == 0 || members[len(members)-1].Node != s.Node() {
			members = append(members, protocol.Member{Node: s.Node()})
			places = append(places, home.Basis{Version: s.Version()})
		}
		last := len(members) - 1
		members[last].Slices++
		if r := s.For(j.ID); r != nil {
			places[last].Reservation = r.ID
		}
	}
	a := newAsk(j, sites.Planned(on[0]), also, p)
	a.Gang(members, places)
	z.ask(now, a, places[0].Reservation, out)
}
