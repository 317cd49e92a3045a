package gate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Every job has one home, drawn once and kept for all its lives, unless its zone is drained (drain.go). With one zone nothing is drawn.

// Zone is one zone as the gate is configured to know it.
type Zone struct {
	ID job.ZoneID
	// Nodes that offer their slices there. A zone alone needs none named: every node is its own.
	Nodes []job.NodeID
}

// Alone is the list of one zone that every node offers to.
func Alone(id job.ZoneID) []Zone { return []Zone{{ID: id}} }

// forHome names the stream of draws of homes.
const forHome = 1

// validateZones lists what is wrong with the zones.
func validateZones(zones []Zone) (errs []error) {
	if len(zones) == 0 {
		errs = append(errs, errors.New("gate: it needs a zone"))
	}
	ids, nodes := map[job.ZoneID]bool{}, map[job.NodeID]job.ZoneID{}
	for i := range zones {
		z := &zones[i]
		if z.ID == "" || ids[z.ID] {
			errs = append(errs, fmt.Errorf("gate: zones[%d] is called %q; give each zone a name of its own", i, z.ID))
		}
		ids[z.ID] = true
		if len(z.Nodes) == 0 && len(zones) > 1 {
			errs = append(errs, fmt.Errorf("gate: zone %q has no node; name at least one, or leave the zone out", z.ID))
		}
		for _, n := range z.Nodes {
			if other, had := nodes[n]; had {
				errs = append(errs, fmt.Errorf("gate: node %q is one of zone %q and of zone %q; a node offers to one zone", n, other, z.ID))
			}
			nodes[n] = z.ID
		}
	}
	return errs
}

// share is zone i's part of a queue's cap of slices over n zones: 0 for no cap, protocol.NoShare if the cap is too small for all of
// them. Over all zones the shares add up to the cap, and none falls when the cap rises, so a change of the cap that has not reached every zone
// yet never allows more than the larger of the two.
func share(limit, i, n int) int {
	if limit == 0 {
		return 0
	}
	part := limit / n
	if i < limit%n {
		part++
	}
	if part == 0 {
		return protocol.NoShare
	}
	return part
}

// settingsOf is what zone i is to know of a queue.
func (g *Gate) settingsOf(q *queue, i int) *protocol.Queue {
	n := len(g.cfg.Zones)
	if n == 1 || q.Cap == 0 || i >= n { // another gate has all of it
		return q.Queue
	}
	part := *q.Queue
	part.Cap = share(q.Cap, i, n)
	return &part
}

// zoneAt is the place of a zone in the configuration, -1 if it has none.
func (g *Gate) zoneAt(id job.ZoneID) int {
	if len(g.cfg.Zones) == 1 && g.cfg.Zones[0].ID == id {
		return 0
	}
	if i, found := g.places[id]; found {
		return i
	}
	return -1
}

// drawHome draws the home of a job that is accepted: a zone with as much chance as it has slices that could run the job, none if no slice
// of it could. It is empty while no zone is known that could.
func (g *Gate) drawHome(now quantity.Instant, spec *job.Spec, id job.ID, of job.Generation, epoch uint32) job.ZoneID {
	if len(g.cfg.Zones) == 1 {
		return g.cfg.Zones[0].ID
	}
	if g.dealer != nil {
		return g.drawByDigests(now, spec, id, of, epoch)
	}
	return g.drawFrom(g.chancesOf(spec), id, of, epoch)
}

// drawFrom draws with these chances, which are summed up.
func (g *Gate) drawFrom(sums []int, id job.ID, of job.Generation, epoch uint32) job.ZoneID {
	total := sums[len(sums)-1]
	if total == 0 {
		return ""
	}
	at, _ := slices.BinarySearch(sums, homeDraw(id, of, epoch, total)+1)
	return g.cfg.Zones[at].ID
}

// mostChances bounds how many kinds of jobs are remembered with the chances of the zones.
const mostChances = 256

// chancesOf are the chances of zones to be home to a job of these settings, summed up from the first. They are remembered for as long as nothing
// is known of a queue or a slice that was not known before: of a thousand zones each takes most of a microsecond.
func (g *Gate) chancesOf(spec *job.Spec) []int {
	if sums, known := g.chances[spec]; known {
		return sums
	}
	sums := g.sumChances(spec)
	if len(g.chances) >= mostChances {
		clear(g.chances)
	}
	g.chances[spec] = sums
	return sums
}

// sumChances works them out.
func (g *Gate) sumChances(spec *job.Spec) []int {
	queue, found := g.findQueue(spec.Queue)
	invariant.Check(found, "gate: a job is in queue %q, which it does not have", spec.Queue)
	sums, total := make([]int, len(g.cfg.Zones)), 0
	for i := range sums {
		total += g.couldRun(spec, queue, i)
		sums[i] = total
	}
	if total == 0 && g.reaches(spec, queue) {
		for i := range sums {
			total += g.couldLead(spec, queue, i)
			sums[i] = total
		}
	}
	return sums
}

// homeDraw is a number below n for one life of a job, whatever others are drawn.
func homeDraw(id job.ID, of job.Generation, epoch uint32, n int) int {
	draw := prng.New(forHome, prng.Name(string(id)), uint64(of))
	if epoch > 1 { // a job that moves is drawn anew
		draw = prng.New(forHome, prng.Name(string(id)), uint64(of), uint64(epoch))
	}
	return draw.IntN(n)
}

// couldRun is how many slices of zone i could run the job, which is in the queue at that place; 0 if the zone can not run all of it, as far
// as its nodes have reported.
func (g *Gate) couldRun(spec *job.Spec, queue, i int) int {
	if g.drained[g.cfg.Zones[i].ID] {
		return 0
	}
	there, longest := &g.inventory.zones[i].kinds, g.longest(queue)
	if why, _ := atomizer.Impossible(spec, there, longest); why != "" || !g.mayHold(spec, queue, i) {
		return 0
	}
	if spec.Slices > 1 && g.together(spec, spec.Topology, i) < spec.Slices {
		return 0
	}
	return atomizer.Fitting(spec, there, longest)
}

// mayHold says whether zone i's share of the queue's cap has room for as many slices as the job needs at once.
func (g *Gate) mayHold(spec *job.Spec, queue, i int) bool {
	part := share(g.queues[queue].Cap, i, len(g.cfg.Zones))
	return part == 0 || part >= max(1, spec.Slices)
}

// longest is the longest window that jobs of a queue may count on.
func (g *Gate) longest(queue int) time.Duration {
	if most := g.queues[queue].MaxWindow; most > 0 {
		return min(g.cfg.Horizon, most)
	}
	return g.cfg.Horizon
}

// nowhere says why a job that the slices of all zones together could run is possible in none of them, with what would be; empty if it is
// in one, or may be in one whose nodes have not all reported. The queue is its place.
func (g *Gate) nowhere(spec *job.Spec, queue int, longest time.Duration) (why, nearest string) {
	if len(g.cfg.Zones) == 1 {
		return "", ""
	}
	if spec.Topology == job.SameCluster && spec.Slices > 1 {
		return g.unled(spec, queue)
	}
	best, most, capped := -1, -1, false
	for i := range g.inventory.zones {
		z := &g.inventory.zones[i]
		if g.drained[g.cfg.Zones[i].ID] {
			continue
		}
		if z.heard < len(g.cfg.Zones[i].Nodes) {
			return "", ""
		}
		not, _ := atomizer.Impossible(spec, &z.kinds, longest)
		n := atomizer.Fitting(spec, &z.kinds, longest) // of a zone without slices nothing is impossible, and none fits
		switch could := not == "" && n > 0; {
		case could && g.mayHold(spec, queue, i):
			return "", ""
		case could:
			capped = true
		case not != "" && n > most:
			best, most = i, n
		}
	}
	if capped {
		q := g.queues[queue]
		return fmt.Sprintf("it runs in one zone, and where it could queue %s's share of its cap of %d is smaller than what it needs at once", q.Name, q.Cap),
			fmt.Sprintf("a cap of at least %d, or none", max(1, spec.Slices)*len(g.cfg.Zones))
	}
	if best < 0 {
		return "", "" // nobody has a slice
	}
	why, nearest = atomizer.Impossible(spec, &g.inventory.zones[best].kinds, longest)
	return fmt.Sprintf("it runs in one zone, and in none of the %d zones could it; in %s %s", len(g.cfg.Zones), g.cfg.Zones[best].ID, why), nearest
}

// settle draws the homes of jobs that were accepted before a zone was known that could run them.
func (g *Gate) settle(now quantity.Instant, out *protocol.Out) {
	if len(g.homeless) == 0 {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(g.homeless)) {
		e := g.homeless[id]
		if home := g.drawHome(now, e.spec, e.id, e.generation, e.epoch); home != "" {
			g.fact(out, protocol.Fact{Kind: protocol.JobDrawn, Job: e.id, Zone: home, Epoch: e.epoch})
		}
	}
}

// Draw is where a job would have its home if it were accepted now; empty if no zone is known that could run it.
func (g *Gate) Draw(spec *job.Spec) job.ZoneID {
	if _, found := g.findQueue(spec.Queue); !found {
		return ""
	}
	if len(g.cfg.Zones) == 1 {
		return g.cfg.Zones[0].ID
	}
	return g.drawFrom(g.sumChances(spec), spec.Name, g.next(), 1)
}

// Home is the home of the job of this name: empty if there is no such job, or none was drawn yet.
func (g *Gate) Home(id job.ID) job.ZoneID {
	if e := g.find(id); e != nil {
		if m := e.became().moving; m != nil && !g.gone(m.from) { // it knows why it waits
			return m.from
		}
		return e.zone
	}
	return ""
}

// Stray is the first job, by name, that is not over and whose home is none of the configured zones, if there is any: nothing may be decided then. What is over, or is
// to be forgotten, may be of a drained zone that has left: it kept nothing of it.
func (g *Gate) Stray() (id job.ID, home job.ZoneID, found bool) {
	look := func(name job.ID, at job.ZoneID, kept bool) {
		if g.gone(at) && (kept || !g.drained[at]) && (!found || name < id) {
			id, home, found = name, at, true
		}
	}
	//sluice:sorted the first name is found in any order
	for name, e := range g.jobs {
		look(name, e.zone, !e.over())
		if m := e.became().moving; m != nil {
			look(name, m.from, false)
		}
	}
	//sluice:sorted the first name is found in any order
	for name, f := range g.farewells {
		look(name, f.zone, false)
	}
	//sluice:sorted the first name is found in any order
	for of := range g.departures {
		look(of.job, of.from, false)
	}
	return id, home, found
}
