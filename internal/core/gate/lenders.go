package gate

import (
	"cmp"
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// A gang that may lie in several zones has its home in one that could hold it alone, if there is any; else in one that has some slices for it, and borrows those of
// others. The gate knows what slices every zone has, and names whom to ask (docs/adr/0045).

// forLenders names the stream in which zones that are alike are ordered.
const forLenders = 2

// couldLend is how many slices of zone i could run the job, whatever else it needs.
func (g *Gate) couldLend(spec *job.Spec, queue, i int) int {
	if g.drained[g.cfg.Zones[i].ID] || len(g.inventory.zones) == 0 {
		return 0
	}
	return atomizer.Fitting(spec, &g.inventory.zones[i].kinds, g.longest(queue))
}

// couldLead is with how many slices zone i could be home to a gang that lies in several: all of it counts towards its share of the queue's cap.
func (g *Gate) couldLead(spec *job.Spec, queue, i int) int {
	if !g.mayHold(spec, queue, i) {
		return 0
	}
	return g.couldLend(spec, queue, i)
}

// reaches says whether a job may lie in several zones, and as many as it may lie in have enough slices for it.
func (g *Gate) reaches(spec *job.Spec, queue int) bool {
	return spec.Topology == job.SameCluster && spec.Slices > 1 && g.acrossZones(spec, queue) >= spec.Slices
}

// acrossZones is how many slices could run a job in as many zones as a gang may lie in, where these are most.
func (g *Gate) acrossZones(spec *job.Spec, queue int) (most int) {
	var each []int
	for i := range g.cfg.Zones {
		each = append(each, g.couldLend(spec, queue, i))
	}
	slices.SortFunc(each, func(a, b int) int { return cmp.Compare(b, a) })
	for _, n := range each[:min(len(each), protocol.MostLenders)] {
		most += n
	}
	return most
}

// unled says why no zone could be home to a gang that may lie in several, with what would be; empty if one could, or may.
func (g *Gate) unled(spec *job.Spec, queue int) (why, nearest string) {
	capped := false
	for i := range g.cfg.Zones {
		if g.inventory.zones[i].heard < len(g.cfg.Zones[i].Nodes) || g.couldLead(spec, queue, i) > 0 {
			return "", ""
		}
		capped = capped || g.couldLend(spec, queue, i) > 0
	}
	if !capped {
		return "", ""
	}
	q := g.queues[queue]
	return fmt.Sprintf("all of it counts in its home zone, and no zone's share of queue %s's cap of %d is as large as what it needs at once", q.Name, q.Cap),
		fmt.Sprintf("a cap of at least %d, or none", spec.Slices*len(g.cfg.Zones))
}

// scattered says why no zones together could ever run a gang that may lie in several, and what would fit; empty if they could.
func (g *Gate) scattered(spec *job.Spec) (why, nearest string) {
	queue, found := g.findQueue(spec.Queue)
	if most := g.acrossZones(spec, queue); found && most > 0 && most < spec.Slices {
		return fmt.Sprintf("it needs %d slices, and no %d zones together have more than %d that could run it", spec.Slices, min(protocol.MostLenders, len(g.cfg.Zones)), most),
			fmt.Sprintf("slices: %d", most)
	}
	return "", ""
}

// candidate is a zone that may be named, with how many fragments it said that it has free, and its place in the job's own order.
type candidate struct {
	protocol.Lender
	free int
	draw uint64
}

// nameLenders names to a job's home the zones that could lend slices for it: those that have most for it first, then those that have most free by what they last
// said, then in an order of the job's own, so that not all go to the same ones.
func (g *Gate) nameLenders(now quantity.Instant, in *protocol.Message, l *protocol.LenderList, out *protocol.Out) {
	e := g.find(in.Job)
	if e == nil || e.over() {
		return
	}
	queue, found := g.findQueue(e.spec.Queue)
	if !found {
		return
	}
	var list []candidate
	for i := range g.cfg.Zones {
		id := g.cfg.Zones[i].ID
		n := min(g.couldLend(e.spec, queue, i), e.spec.Slices)
		free, alive := g.freeIn(now, i, e.spec)
		if own := in.From == g.zone(id); n == 0 || !own && (!alive || slices.Contains(l.Without, id)) {
			continue
		}
		draw := prng.New(forLenders, prng.Name(string(e.id)), prng.Name(string(id)), l.Seq)
		list = append(list, candidate{protocol.Lender{Zone: id, Slices: n}, min(free, e.spec.Slices), draw.Uint64()})
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.Slices, a.Slices), cmp.Compare(b.free, a.free), cmp.Compare(a.draw, b.draw), cmp.Compare(a.Zone, b.Zone))
	})
	answer := &protocol.LenderList{Seq: l.Seq}
	for _, c := range list {
		if len(answer.Zones) < protocol.MostLenders {
			answer.Zones = append(answer.Zones, c.Lender)
		}
	}
	g.send(out, protocol.Message{Kind: protocol.Lenders, To: in.From, Job: in.Job, Body: answer})
}

// freeIn is how many fragments large enough for a job a zone said that it has free, and whether it counts as alive: without digests nobody knows better.
func (g *Gate) freeIn(now quantity.Instant, i int, spec *job.Spec) (free int, alive bool) {
	if g.dealer == nil {
		return 0, true
	}
	z, known := g.dealer.cfg.Index(g.cfg.Zones[i].ID)
	class, held := g.dealer.class(spec)
	if !known || !held {
		return 0, true
	}
	return int(g.dealer.splitter.Digest(z).Free[class]), g.dealer.splitter.Alive(now, z)
}

// class of a job's first piece.
func (d *dealer) class(spec *job.Spec) (flow.Class, bool) {
	v := atomizer.View{Spec: spec, Learned: &protocol.Learned{}}
	return d.cfg.Flow.Classes.Of(atomizer.LeastDemand(&v, reference))
}
