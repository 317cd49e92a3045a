package backfill

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/ranking"
	"sluice.dev/sluice/internal/core/trp"
)

// park is many slices on many nodes whose time changes, and a planner that surveys them.
type park struct {
	now    quantity.Instant
	pl     *Planner
	floor  *market.Floor
	slices []*parkSlice
	draw   func(int) int
}

// parkSlice is one of its slices; parkJob a job that looks for a place.
type (
	parkSlice struct {
		id    job.SliceID
		node  job.NodeID
		gaps  []protocol.Gap
		floor window.Slice
		kept  Slice
	}
	parkJob struct {
		rigidJob
		avoids []*Slice
		// asked counts the slices of which it was asked whether it avoids them.
		asked int
	}
)

func (s *parkSlice) Name() job.SliceID                { return s.id }
func (s *parkSlice) Node() job.NodeID                 { return s.node }
func (s *parkSlice) Version() uint64                  { return 1 }
func (s *parkSlice) Usable() bool                     { return true }
func (s *parkSlice) Class() *window.Class             { return s.floor.Class() }
func (s *parkSlice) At() int                          { return s.floor.At() }
func (s *parkSlice) Reserved() []protocol.Reservation { return nil }
func (s *parkSlice) Resident() *protocol.Resident     { return nil }

func (s *parkSlice) Safe(quantity.Instant) quantity.Instant { return quantity.Never }

func (s *parkSlice) Location() (rack, block string) { return stands(s.node) }

func (s *parkSlice) Unsold(now quantity.Instant, out []protocol.Gap) []protocol.Gap {
	return s.Free(now, out)
}

func (s *parkSlice) Lasting(quantity.Instant) bool { return true }

func (s *parkSlice) InDoubt(quantity.Instant) bool { return false }

func (s *parkSlice) Free(now quantity.Instant, out []protocol.Gap) []protocol.Gap {
	out = out[:0]
	for _, g := range s.gaps {
		if g.Start = max(g.Start, now); g.Start < g.End {
			out = append(out, g)
		}
	}
	return out
}

func (d *parkJob) Avoids(s *Slice) bool {
	d.asked++
	return slices.Contains(d.avoids, s)
}

// newPark is one without a slice.
func newPark(draw func(int) int) *park {
	p := &park{now: quantity.Instant(time.Hour), floor: market.NewFloor(market.FloorConfig{Policy: fifo.Policy{}}, nil), draw: draw}
	p.pl = New(Config{Discipline: Discipline{Reserve: 1, Overtake: true}, Retry: time.Second, AskTTL: time.Second}, p.floor, &fake{})
	return p
}

// be is what a slice is: one of a few classes. Two of them differ in speed, two in nothing but their name.
func (p *park) be() protocol.Slice {
	c := p.draw(5)
	return protocol.Slice{
		Profile:  []string{"small", "medium", "large", "large", "other"}[c],
		Capacity: trp.Vector{quantity.Amount([]int64{4, 8, 16, 16, 8}[c] << 30)},
		Speed:    []int64{250, 500, 1000, 700, 500}[c],
	}
}

// show has the planner take in a slice as it is now.
func (p *park) show(s *parkSlice, is protocol.Slice) {
	is.ID = s.id
	p.pl.Place(&s.kept, p.floor.Place(&s.floor, &is), false)
	p.pl.InvalidateSlice(&s.kept)
}

// add puts a slice on a node, a new one or one that is there.
func (p *park) add(nodes int) {
	s := &parkSlice{id: job.SliceID(fmt.Sprintf("s%04d-%d", p.draw(10000), len(p.slices))),
		node: job.NodeID(fmt.Sprintf("n%04d", p.draw(nodes)))}
	s.floor.Supply, s.kept.Supply = s, s
	s.gaps = p.gaps()
	p.slices = append(p.slices, s)
	p.show(s, p.be())
}

// gaps are free from now on, or later, for good or for a while, or not at all. Few instants, so that many places are as good.
func (p *park) gaps() (list []protocol.Gap) {
	at := p.now
	for range p.draw(4) {
		at = at.Add(time.Duration(p.draw(4)) * time.Minute)
		if p.draw(3) == 0 {
			return append(list, protocol.Gap{Start: at, End: quantity.Never})
		}
		end := at.Add(time.Duration(1+p.draw(5)) * time.Minute)
		list, at = append(list, protocol.Gap{Start: at, End: end}), end.Add(time.Minute)
	}
	return list
}

// job is one with a walltime or none, of one slice or several, that is as fast on every slice or not, and may avoid some.
func (p *park) job() *Job {
	d := &parkJob{rigidJob: rigidJob{&job.Spec{
		Name: "j", Queue: "default", Kind: job.Rigid, Total: 1, Grid: 1, Parallelism: 1, Slices: 1, Deadline: quantity.Never,
		Walltime: time.Duration(1+p.draw(20)) * 30 * time.Second,
		Safe:     trp.Table{Bounds: []int64{1}, Least: [][]quantity.Amount{{quantity.Amount([]int64{1, 6, 12, 20}[p.draw(4)] << 30)}}},
	}}}
	switch p.draw(4) {
	case 0:
		d.spec.Slices = 1 + p.draw(4)
	case 1:
		d.spec.Walltime = 0
	}
	if d.spec.Slices == 1 && p.draw(2) == 0 || d.spec.Walltime > 0 && p.draw(3) == 0 {
		for _, profile := range []string{"small", "medium", "large"} {
			if p.draw(2) == 0 {
				d.spec.Speeds = append(d.spec.Speeds, job.SpeedOn{Profile: profile, Permille: int64(p.draw(4) * 400)})
			}
		}
	}
	for range p.draw(3) {
		d.avoids = append(d.avoids, &p.slices[p.draw(len(p.slices))].kept)
	}
	return &Job{Demand: d}
}

// change lets something happen: time goes by, slices become free or taken, others, or new, and reserved jobs get places.
func (p *park) change(nodes int) {
	s := p.slices[p.draw(len(p.slices))]
	switch p.draw(12) {
	case 0:
		p.add(nodes)
	case 1:
		p.show(s, p.be())
	case 2:
		// the order of all slices may change with the next
		p.show(s, protocol.Slice{Profile: "small", Capacity: trp.Vector{5 << 30}, Speed: 250})
	case 3:
		s.node = p.slices[p.draw(len(p.slices))].node
		p.pl.Place(&s.kept, window.Stayed, true)
	case 4, 5:
		s.kept.placed = p.gaps()
	case 6, 7:
		p.now = p.now.Add(time.Duration(1+p.draw(90)) * time.Second)
	default:
		s.gaps = p.gaps()
		p.pl.InvalidateSlice(&s.kept)
	}
}

// TestTheEarliestPlaceIsTheOneThatAScanFinds: whatever happens, for every job, the openings lead to the same slices at the same time as
// a look at every node.
func TestTheEarliestPlaceIsTheOneThatAScanFinds(t *testing.T) {
	none, later, wide := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		p := newPark(func(n int) int {
			seed = seed*6364136223846793005 + 1442695040888963407
			return int(seed>>33) % n
		})
		nodes := rapid.SampledFrom([]int{1, 3, 20, 300}).Draw(rt, "nodes")
		for range nodes + rapid.IntRange(1, 2*nodes+4).Draw(rt, "slices") {
			p.add(nodes)
		}
		for range rapid.IntRange(1, 60).Draw(rt, "searches") {
			for range p.draw(6) {
				p.change(nodes)
			}
			p.pl.survey.resurvey(p.now)
			j := p.job()
			p.pl.survey.findFits(p.now, j)
			got, ok := p.pl.survey.earliest(p.now, j)
			want, wanted := p.pl.survey.scan(p.now, j)
			if ok != wanted || !got.same(&want) || got.Speed != want.Speed {
				rt.Fatalf("at %d, of %d slices by width and %v:\nindexed %v %s\nplain   %v %s", p.now, j.width(), j.Spec().Speeds, ok,
					shown(&got), wanted, shown(&want))
			}
			if wrong := p.pl.survey.openings.audit(p.pl.survey.nodes); wrong != "" {
				rt.Fatalf("at %d %s", p.now, wrong)
			}
			switch {
			case !ok:
				none++
			case got.Start > p.now:
				later++
			}
			if ok && j.width() > 1 {
				wide++
			}
		}
	})
	if t.Logf("none %d, later %d, of several slices %d", none, later, wide); min(none, later, wide) == 0 && !t.Failed() {
		t.Error("a case was never met")
	}
}

// audit says what the lists of openings have but no node, or the other way round.
func (x *openings) audit(nodes []*node) string {
	for _, k := range x.kinds {
		entered := map[opening]int{}
		for _, n := range nodes {
			for _, o := range n.openings[k.at] {
				entered[o]++
			}
		}
		for list, begun := range map[*ranking.List[opening]]bool{&k.begunOpenings: true, &k.futureOpenings: false} {
			for o := range list.All() {
				if begun != (o.start <= k.advancedTo) {
					return fmt.Sprintf("an opening from %d on is entered as if begun is %v at %d", o.start, begun, k.advancedTo)
				}
				entered[o]--
			}
		}
		for o, n := range entered {
			if n != 0 {
				return fmt.Sprintf("an opening of node %d from %d to %d is entered %d times too few", o.node.at, o.start, o.end, n)
			}
		}
	}
	return ""
}

// TestASearchLooksAtFewNodes: of a thousand with some idle slices each, and others that are busy until now or then, with gaps before
// that are too short. Left out are jobs without a walltime that have speeds: a node gives them its
// fastest slice, and of the nodes the one with the smallest is preferred, so an opening on a small slice may promise too much.
func TestASearchLooksAtFewNodes(t *testing.T) {
	const nodes, perNode = 1000, 4
	draw := prng.New(1)
	for _, idle := range []int{0, 1, perNode} {
		p := newPark(func(n int) int { return draw.IntN(n) })
		for i := range nodes * perNode {
			p.add(1)
			s := p.slices[i]
			s.node = job.NodeID(fmt.Sprintf("n%04d", i/perNode))
			s.gaps = []protocol.Gap{{Start: p.now, End: quantity.Never}}
			if i%perNode >= idle {
				free := p.now.Add(time.Duration(draw.IntN(int(24 * time.Hour))))
				s.gaps = []protocol.Gap{{Start: p.now, End: p.now.Add(time.Second)}, {Start: free, End: free.Add(time.Second)},
					{Start: free.Add(6 * time.Hour), End: quantity.Never}}
			}
		}
		p.pl.survey.nodesStale = true
		p.pl.survey.resurvey(p.now)
		for range 200 {
			j := p.job()
			d := j.Demand.(*parkJob)
			if d.avoids, d.asked = nil, 0; d.spec.Walltime == 0 {
				d.spec.Speeds = nil
			}
			p.pl.survey.findFits(p.now, j)
			got, _ := p.pl.survey.earliest(p.now, j)
			if asked := d.asked; asked > 8*perNode {
				t.Errorf("%d idle: a job of %d slices looked at %d, and was placed on %s", idle, j.width(), asked, shown(&got))
			}
		}
	}
}

func shown(p *Placement) string {
	var on []string
	for _, s := range p.Slices {
		on = append(on, fmt.Sprintf("%s/%s", s.Node(), s.Name()))
	}
	return fmt.Sprintf("%v from %d to %d at %d", on, p.Start, p.End, p.Speed)
}
