package fgd

import (
	"math"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/fgd"
	"sluice.dev/sluice/internal/lab/planner/place"
)

// Columns of a curve: 0% to 130% arrived.
const Columns = Load130 + 1

// Curve is what one run shows.
type Curve struct {
	// Allocated and Fragmented by the percent that has arrived. Allocated is in percent of all GPUs, Fragmented the
	// fragmentation F in percent of what is idle. Column c is the mean over the arrivals after which the arrived share,
	// what was dropped included, rounds to c (halves to the even number); where there is none, over those of its
	// neighbours; NaN where there are none either.
	Allocated, Fragmented [Columns]float64
	// End is Allocated after the last arrival.
	End float64
	// Placed and Dropped pods.
	Placed, Dropped int
}

// Last is Allocated at 130%, or at the end of a workload so coarse that no arrival comes near that.
func (c *Curve) Last() float64 {
	if last := c.Allocated[Load130]; !math.IsNaN(last) {
		return last
	}
	return c.End
}

// Setup is one run: which pods arrive in which order, and which goes first where scores tie.
type Setup struct {
	Workload *Workload
	Arrivals []int32
	Ranks    []int32
	Seed     uint64
}

// Draw is the run of a seed. Runs of one seed share arrivals and ranks, whatever the planner.
func (w *Workload) Draw(seed uint64) Setup {
	return Setup{Workload: w, Arrivals: w.Arrivals(seed), Ranks: w.Ranks(seed), Seed: seed}
}

// Run lets the pods arrive under a planner.
func Run(kind planner.Kind, s Setup) (*Curve, error) {
	w := s.Workload
	p, err := kind.New(planner.Options{Cluster: w.Cluster, Seed: s.Seed, Ranks: s.Ranks, Typical: w.Typical})
	if err != nil {
		return nil, errkind.Errorf(errkind.Of(err), "planner %s on workload %s: %w", kind.Name, w.Name, err)
	}
	curve := &Curve{}
	meter := newMeter(w)
	var sums counts
	var out planner.Out
	arrived, allocated := int64(0), int64(0)
	for i, pod := range s.Arrivals {
		t := w.Pods[pod]
		t.ID = planner.ID(i)
		out.Reset()
		p.Arrive(0, t)
		p.Plan(0, &out)
		arrived += asked(&t)
		switch {
		case len(out.Decisions) == 0:
			p.Leave(0, t.ID)
			curve.Dropped++
		case len(out.Decisions) == 1 && out.Decisions[0].Task == t.ID && out.Decisions[0].Verb == planner.Start:
			allocated += asked(&t)
			meter.start(&t, out.Decisions[0].Node, out.Devices)
			curve.Placed++
		case len(out.Decisions) == 1 && out.Decisions[0].Task == t.ID && out.Decisions[0].Verb == planner.Never:
			curve.Dropped++
		default:
			return nil, errkind.Errorf(errkind.Unsupported,
				"planner %s decides on other tasks than the one that arrived; this experiment is for placement planners", kind.Name)
		}
		sums.add(w, arrived, allocated, meter.fragmented())
	}
	sums.means(curve)
	curve.End = 100 * float64(allocated) / float64(w.Capacity)
	return curve, nil
}

// meter follows the fragmentation of the cluster.
type meter struct {
	state     *place.State
	fragments *fgd.Fragments
	sum, idle int64
}

func newMeter(w *Workload) *meter {
	m := &meter{state: place.NewState(w.Cluster), fragments: fgd.NewFragments(w.Typical)}
	for i := range m.state.Nodes {
		m.sum += m.fragments.Of(&m.state.Nodes[i])
		m.idle += m.state.Nodes[i].Value()
	}
	return m
}

func (m *meter) start(t *planner.Task, node int32, devices []planner.Device) {
	n := &m.state.Nodes[node]
	m.sum -= m.fragments.Of(n)
	m.idle -= n.Value()
	m.state.Take(node, t, devices)
	m.sum += m.fragments.Of(n)
	m.idle += n.Value()
}

// fragmented is F in percent of the idle capacity.
func (m *meter) fragmented() float64 {
	if m.idle == 0 {
		return 0
	}
	return 100 * float64(m.sum) / float64(m.fragments.Total) / float64(m.idle)
}

// counts gathers arrivals by column.
type counts struct {
	events                [Columns + 1]float64
	allocated, fragmented [Columns + 1]float64
}

func (c *counts) add(w *Workload, arrived, allocated int64, fragmented float64) {
	column := int(math.RoundToEven(100 * float64(arrived) / float64(w.Capacity)))
	if column > Columns {
		return
	}
	c.events[column]++
	c.allocated[column] += 100 * float64(allocated) / float64(w.Capacity)
	c.fragmented[column] += fragmented
}

func (c *counts) means(curve *Curve) {
	for column := range Columns {
		from, to := column, column
		if c.events[column] == 0 {
			from, to = max(column-1, 0), column+1
		}
		var events, allocated, fragmented float64
		for i := from; i <= to; i++ {
			events += c.events[i]
			allocated += c.allocated[i]
			fragmented += c.fragmented[i]
		}
		curve.Allocated[column], curve.Fragmented[column] = allocated/events, fragmented/events
	}
}
