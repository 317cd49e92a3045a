package homes

import (
	"cmp"
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// A gang that may lie in several zones has its home in one that could hold it alone, if there is any; else in one that has some slices for
// it, and borrows those of others. The gate knows what slices every zone has, and names whom to ask (docs/adr/0045).

// forLenders names the stream in which zones that are alike are ordered.
const forLenders = 2

// Across reports whether the slices of several zones are enough for a job, if it may span them.
func (h *Homes) Across(spec *job.Spec) bool {
	if h == nil || len(h.zones) == 1 {
		return false
	}
	queue := h.queues.Find(spec.Queue)
	return queue != nil && h.acrossZones(spec, queue) >= spec.Slices
}

// Scattered says why no zones could ever run a gang that may lie in several, and what would fit; empty if they could. Judges: it is such a
// gang.
func (h *Homes) Scattered(spec *job.Spec) (why, nearest string, judges bool) {
	if h == nil || len(h.zones) == 1 || spec.Topology != job.SameCluster {
		return "", "", false
	}
	queue := h.queues.Find(spec.Queue)
	if queue == nil {
		return "", "", true
	}
	if most := h.acrossZones(spec, queue); most > 0 && most < spec.Slices {
		return fmt.Sprintf("it needs %d slices, and no %d zones together have more than %d that could run it", spec.Slices,
				min(protocol.MostLenders, len(h.zones)), most),
			fmt.Sprintf("slices: %d", most), true
	}
	return "", "", true
}

// candidate is a zone that may be named, with how many fragments it said that it has free, and its place in the job's own order.
type candidate struct {
	protocol.Lender
	free int
	draw uint64
}

// Lenders names to a job's home the zones that could lend slices for it: those with most for it first, then those with most free by their
// last digest, then in an order of the job's own, so that not all ask the same ones.
func (h *Homes) Lenders(now quantity.Instant, id job.ID, spec *job.Spec, home job.ZoneID, l *protocol.LenderList) *protocol.LenderList {
	queue := h.queues.Find(spec.Queue)
	if queue == nil {
		return nil
	}
	var list []candidate
	for i := range h.zones {
		zone := h.zones[i].ID
		n := min(h.couldLend(spec, queue, i), spec.Slices)
		free, alive := h.freeIn(now, i, spec)
		if n == 0 || zone != home && (!alive || slices.Contains(l.Without, zone)) {
			continue
		}
		draw := prng.New(forLenders, prng.Name(string(id)), prng.Name(string(zone)), l.Seq)
		list = append(list, candidate{protocol.Lender{Zone: zone, Slices: n}, min(free, spec.Slices), draw.Uint64()})
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.Slices, a.Slices), cmp.Compare(b.free, a.free), cmp.Compare(a.draw, b.draw),
			cmp.Compare(a.Zone, b.Zone))
	})
	answer := &protocol.LenderList{Seq: l.Seq}
	for _, c := range list {
		if len(answer.Zones) < protocol.MostLenders {
			answer.Zones = append(answer.Zones, c.Lender)
		}
	}
	return answer
}
