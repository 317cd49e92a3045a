package twin_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/fake"
	"sluice.dev/sluice/internal/host"
	"sluice.dev/sluice/internal/lab/sim"
)

// troupe is a rigid job of so many slices that may lie on several nodes.
func troupe(t failer, name job.ID, walltime time.Duration, width int) *job.Spec {
	s := spec(t, name, job.Rigid, int64(walltime/time.Second), time.Second)
	s.Slices, s.Topology = width, job.SameZone
	return s
}

// gangsOf counts the claims that have members.
func gangsOf(facts []protocol.Fact) (n int) {
	for i := range facts {
		if s, ok := facts[i].Body.(*protocol.Sale); ok && len(s.Members) > 1 {
			n++
		}
	}
	return n
}

// newLiveGangs is a daemon of one zone and three nodes, of which none has more than two slices.
func newLiveGangs(t *testing.T) *live {
	l := newLive(t)
	l.build = several(t, 1, 3, nil)
	l.options = func(o *host.Options) { o.NoTape, o.Inventory = true, fixed(fourGPUs()) }
	return l
}

// TestGangsKilledAtEveryAppend: as TestKilledAtEveryAppend. So the home dies before, between and after its Commits, and each node before
// and after its lease, its start and its result.
func TestGangsKilledAtEveryAppend(t *testing.T) {
	t.Parallel()
	var last *live
	killedAtEveryAppend(t, func() (*live, []arrival) {
		last = newLiveGangs(t)
		return last, []arrival{{0, troupe(t, "wide", 40*time.Second, 5)},
			{time.Second, spec(t, "count", job.Items, 203, 100*time.Millisecond)}, {2 * time.Second, troupe(t, "trio", 30*time.Second, 3)}}
	})
	if n := gangsOf(last.facts); n < 2 {
		t.Errorf("%d claims have members: the test shows less than it should", n)
	}
}

// TestTwinsWithGangs: live and simulated nodes run the same gangs, and the tape replays.
func TestTwinsWithGangs(t *testing.T) {
	jobs := append(scenario(t), arrival{31*time.Second + 13, troupe(t, "wide", 97*time.Second, 5)},
		arrival{43*time.Second + 17, troupe(t, "trio", 61*time.Second, 3)})
	facts, simulated := gangTwins(t, newLiveGangs(t), jobs)
	if n := gangsOf(facts); n < 2 || n != gangsOf(simulated) {
		t.Errorf("%d claims have members live, and %d simulated", n, gangsOf(simulated))
	}
}

// gangTwins plays jobs on live nodes with four GPUs and on simulated ones, which must sell them alike, and replays the tape. It returns
// the facts of both.
func gangTwins(t *testing.T, l *live, jobs []arrival) (facts, simulated []protocol.Fact) {
	t.Helper()
	l.options = func(o *host.Options) { o.Inventory = fixed(fourGPUs()) }
	earlier := func(m *protocol.Message) time.Duration {
		return -time.Duration(m.Body.(*protocol.Work).Plan.Member) * (time.Millisecond + 7)
	} // no two at one instant
	l.model = func(m protocol.Message) fake.Behaviour {
		b := planned(m)
		b.PerUnit += earlier(&m)
		return b
	}
	var start quantity.Instant
	synctest.Test(t, func(t *testing.T) { start = runLive(t, l, jobs, 0) })
	checkOnce(t, l.facts, jobs)
	set := l.build()
	o := sim.Options{Gates: set.Gates, Zones: set.Zones}
	for i := range set.Nodes {
		o.Nodes = append(o.Nodes, sim.Node{ID: set.Nodes[i].ID, Actor: set.Nodes[i].Node})
	}
	for i, s := range fourGPUs() {
		n := &o.Nodes[[]int{0, 1, 2, 2, 0}[i]]
		s.ID = job.SliceID(n.ID) + "/" + s.ID
		n.Slices = append(n.Slices, s)
	}
	o.Model = func(m *protocol.Message) sim.Behaviour {
		b := sim.Planned(m)
		b.PerUnit += earlier(m)
		return b
	}
	simulated = runSim(t, start, jobs, o)
	checkOnce(t, simulated, jobs)
	if a, b := awards(l.facts), awards(simulated); !slices.Equal(a, b) {
		t.Errorf("live and simulated awards differ:\n%s\n\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
	done, err := sim.Replay(l.openTape(0), l.build().Parties(), nil)
	if err != nil || done.Compared < 100 {
		t.Errorf("the tape replays %d calls: %v", done.Compared, err)
	}
	return l.facts, simulated
}
