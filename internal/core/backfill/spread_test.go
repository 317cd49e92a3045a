package backfill

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// stands is where the nodes of a park stand: two in a rack, two racks in a block, and every seventh nowhere.
func stands(id job.NodeID) (rack, block string) {
	n := 0
	if _, err := fmt.Sscanf(string(id), "n%d", &n); err != nil || n%7 == 6 {
		return "", ""
	}
	return fmt.Sprint("r", n/2%2), fmt.Sprint("b", n/4)
}

// together says whether two slices share a level, by definition.
func together(a, b *parkSlice, level job.Level) bool {
	rackA, blockA := stands(a.node)
	rackB, blockB := stands(b.node)
	switch {
	case a.node == b.node || level == job.SameZone:
		return true
	case level == job.SameBlock:
		return blockA != "" && blockA == blockB
	case level == job.SameRack:
		return rackA != "" && rackA == rackB && blockA == blockB
	}
	return false
}

// search is every choice of slices by definition: what is best of it.
type search struct {
	p     *park
	j     *Job
	level job.Level
	found bool
	rank  quantity.Instant
	nodes int
}

// choose adds slices from the at-th on to those that are chosen, and looks at every whole choice.
func (x *search) choose(at int, chosen []*parkSlice) {
	if len(chosen) == x.j.width() {
		x.look(chosen)
		return
	}
	for i := at; i < len(x.p.slices); i++ {
		s := x.p.slices[i]
		if !x.p.pl.survey.fits[s.kept.Class().At()] || slices.Contains(x.j.Demand.(*parkJob).avoids, &s.kept) ||
			slices.ContainsFunc(chosen, func(o *parkSlice) bool { return !together(o, s, x.level) }) {
			continue
		}
		x.choose(i+1, append(slices.Clone(chosen), s))
	}
}

// look finds the earliest instant at which all that is chosen is free for as long as the job takes there.
func (x *search) look(chosen []*parkSlice) {
	speed, on := int64(1<<62), map[job.NodeID]bool{}
	var starts []quantity.Instant
	for _, s := range chosen {
		speed = min(speed, s.kept.Class().SpeedOf(x.j.Spec()))
		on[s.node] = true
		for _, g := range x.p.pl.survey.roomFor(&s.kept, 0) {
			starts = append(starts, max(g.Start, x.p.now))
		}
	}
	for _, t := range starts {
		q := Placement{Start: t, End: endAt(x.j.Spec(), t, speed)}
		if slices.ContainsFunc(chosen, func(s *parkSlice) bool {
			r := room{gaps: x.p.pl.survey.roomFor(&s.kept, 0)}
			return !r.free(q.Start, q.End)
		}) {
			continue
		}
		if better := !x.found || q.rank() < x.rank || q.rank() == x.rank && len(on) < x.nodes; better {
			x.found, x.rank, x.nodes = true, q.rank(), len(on)
		}
	}
}

// TestAGangIsPlacedAsCloseAsItCanBe: a place is found iff there is one, on the closest level that has any, no later than the earliest
// there, and on no more nodes than needed at that time on one speed; all choices of slices are tried beside it.
func TestAGangIsPlacedAsCloseAsItCanBe(t *testing.T) {
	met := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		p := newPark(func(n int) int {
			seed = seed*6364136223846793005 + 1442695040888963407
			return int(seed>>33) % n
		})
		for range rapid.IntRange(3, 9).Draw(rt, "slices") {
			p.add(8)
		}
		for range 12 {
			p.change(8)
			if len(p.slices) > 10 {
				return
			}
			p.pl.survey.resurvey(p.now)
			j := p.job()
			j.Demand.(*parkJob).spec.Slices = 2 + p.draw(3)
			j.Demand.(*parkJob).spec.Topology = job.Level(p.draw(4))
			p.pl.survey.findFits(p.now, j)
			got, ok := p.pl.survey.closest(p.now, j)
			var want search
			for level := job.SameNode; !want.found && level <= j.Spec().Topology; level++ {
				want = search{p: p, j: j, level: level}
				want.choose(0, nil)
			}
			if ok != want.found || ok && (got.Level != want.level || got.rank() != want.rank) {
				rt.Fatalf("at %d, %d slices within one %v: %v on level %v, %s; want %v on %v by %d", p.now, j.width(), j.Spec().Topology,
					ok, got.Level, shown(&got), want.found, want.level, want.rank)
			}
			if !ok {
				met["none"]++
				continue
			}
			if nodes := max(1, got.nodes); len(j.Spec().Speeds) == 0 && j.Spec().Walltime > 0 && got.Level > job.SameNode &&
				nodes != want.nodes {
				rt.Fatalf("at %d, %d slices on %d nodes, could be on %d: %s", p.now, j.width(), nodes, want.nodes, shown(&got))
			}
			met[got.Level.String()]++
			if got.Start > p.now {
				met["later"]++
			}
		}
	})
	for _, c := range []string{"none", "node", "rack", "block", "zone", "later"} {
		if met[c] == 0 && !t.Failed() {
			t.Errorf("%s was never met: %v", c, met)
		}
	}
}
