package twin_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy/fair"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/host"
	"sluice.dev/sluice/internal/lab/sim"
)

// searching makes actors of so many zones and nodes in which tickets search, as the daemon does.
func searching(t failer, zones, nodes int) func() actor.Set {
	var capacities []quantity.Amount
	for _, s := range fourGPUs() {
		capacities = append(capacities, s.Capacity[trp.Memory])
	}
	config, err := arrangement.Choice{
		Policy: fair.Policy{}, Mechanism: arrangement.Laminar, Horizon: 10 * time.Minute, Node: nodeID, Zones: zones, Nodes: nodes,
		Capacities: capacities,
	}.Config()
	if err != nil {
		t.Fatalf("%v", err)
	}
	build, err := config.Build()
	if err != nil {
		t.Fatalf("%v", err)
	}
	return build
}

// newLiveSearch is a daemon of two zones and three nodes on four GPUs, in which tickets search.
func newLiveSearch(t *testing.T) *live {
	l := newLive(t)
	l.build = searching(t, 2, 3)
	l.options = func(o *host.Options) { o.Inventory = fixed(fourGPUs()) }
	return l
}

// TestTwinsWithTickets: under laminar too the daemon awards as the simulator does, jobs land in zones that are not their homes, and the
// tape replays.
func TestTwinsWithTickets(t *testing.T) {
	jobs, l := busier(t), newLiveSearch(t)
	var start quantity.Instant
	synctest.Test(t, func(t *testing.T) { start = runLive(t, l, jobs, 0) })
	checkOnce(t, l.facts, jobs)
	set := l.build()
	o := sim.Options{Gates: set.Gates, Zones: set.Zones}
	zoneOf := map[job.NodeID]job.ZoneID{}
	for i := range set.Nodes {
		o.Nodes = append(o.Nodes, sim.Node{ID: set.Nodes[i].ID, Actor: set.Nodes[i].Node})
		zoneOf[set.Nodes[i].ID] = set.Nodes[i].Zone
	}
	for i, s := range fourGPUs() { // the GPUs in turn
		n := &o.Nodes[[]int{0, 1, 2, 2, 0}[i]]
		s.ID = job.SliceID(n.ID) + "/" + s.ID
		n.Slices = append(n.Slices, s)
	}
	simulated := runSim(t, start, jobs, o)
	checkOnce(t, simulated, jobs)
	if a, b := awards(l.facts), awards(simulated); !slices.Equal(a, b) {
		t.Errorf("live and simulated awards differ:\n%s\n\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
	away := 0
	for _, f := range l.facts {
		if s, ok := f.Body.(*protocol.Sale); ok && string(zoneOf[s.Node]) != f.Actor.ID {
			away++
		}
	}
	if away == 0 {
		t.Error("no job has landed outside its home's zone: the story shows nothing")
	}
	done, err := sim.Replay(l.openTape(0), l.build().Parties(), nil)
	if err != nil || done.Compared < 100 {
		t.Errorf("the tape replays %d calls: %v", done.Compared, err)
	}
}

// TestTicketsKilledAtEveryAppend: a daemon in which tickets search is killed at every append, and ends what it had as one that was not.
func TestTicketsKilledAtEveryAppend(t *testing.T) {
	t.Parallel()
	killedAtEveryAppend(t, func() (*live, []arrival) {
		l := newLiveSearch(t)
		l.options = func(o *host.Options) { o.Inventory, o.NoTape = fixed(fourGPUs()), true }
		return l, small(t)
	})
}
