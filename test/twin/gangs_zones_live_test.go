package twin_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/host"
)

// ensemble is a troupe that may lie in several zones.
func ensemble(t failer, name job.ID, walltime time.Duration, width int) *job.Spec {
	s := troupe(t, name, walltime, width)
	s.Topology = job.SameCluster
	return s
}

// newLiveEnsemble is a daemon of two zones and three nodes, of which the first zone has four slices and the second one.
func newLiveEnsemble(t *testing.T) *live {
	l := newLive(t)
	l.build = several(t, 2, 3, nil)
	l.options = func(o *host.Options) { o.NoTape, o.Inventory = true, fixed(fourGPUs()) }
	return l
}

// acrossZones counts the claims whose members are on the nodes of both zones: n-2 is alone in the second.
func acrossZones(facts []protocol.Fact) (n int) {
	for i := range facts {
		if s, ok := facts[i].Body.(*protocol.Sale); ok && len(s.Members) > 1 &&
			slices.ContainsFunc(s.Members, func(m protocol.Member) bool { return m.Node == nodeID+"-2" }) {
			n++
		}
	}
	return n
}

// TestGangsAcrossZonesKilledAtEveryAppend: the home, the zone that lends and all nodes die before and after each fact, those of what is
// reserved among them.
func TestGangsAcrossZonesKilledAtEveryAppend(t *testing.T) {
	t.Parallel()
	var last *live
	killedAtEveryAppend(t, func() (*live, []arrival) {
		last = newLiveEnsemble(t)
		return last, []arrival{{0, spec(t, "count", job.Items, 203, 100*time.Millisecond)},
			{time.Second, ensemble(t, "all", 40*time.Second, 5)}, {2 * time.Second, ensemble(t, "trio", 30*time.Second, 3)}}
	})
	if n := acrossZones(last.facts); n < 1 {
		t.Errorf("%d claims have members in both zones: the test shows less than it should", n)
	}
}

// TestTwinsWithGangsAcrossZones: live and simulated zones place the same gangs on the same slices, and the tape replays.
func TestTwinsWithGangsAcrossZones(t *testing.T) {
	jobs := append(scenario(t), arrival{31*time.Second + 13, ensemble(t, "all", 97*time.Second, 5)},
		arrival{43*time.Second + 17, ensemble(t, "trio", 61*time.Second, 3)})
	facts, simulated := gangTwins(t, newLiveEnsemble(t), jobs)
	if n := acrossZones(facts); n < 1 || n != acrossZones(simulated) {
		t.Errorf("%d claims have members in both zones live, and %d simulated", n, acrossZones(simulated))
	}
}

// TestAGangIsExplained as long as it waits for zones to lend, and by its members when it runs.
func TestAGangIsExplained(t *testing.T) {
	l := newLiveEnsemble(t)
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		if err := l.open(); err != nil {
			t.Fatal(err)
		}
		says := func(want ...string) {
			t.Helper()
			e, err := l.host.Explain(ctx, "all")
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range want {
				if !strings.Contains(e.Summary, part) {
					t.Errorf("it says %q, and nothing of %q", e.Summary, part)
				}
			}
		}
		for i, s := range []*job.Spec{troupe(t, "first", time.Minute, 2), ensemble(t, "all", 40*time.Second, 5)} {
			if _, err := l.host.Submit(ctx, string(s.Name), s, nil); err != nil {
				t.Fatal(i, err)
			}
			time.Sleep(3 * time.Second)
		}
		says("too few slices for all 5 of it", "4 of zone local-1", "1 of zone local-2", "they are kept")
		time.Sleep(70 * time.Second)
		says("running on 3 nodes", "member 0: n-1/gpu0", "member 1: n-2/gpu1", "member 2: n-3/gpu2/a")
		if err := l.stop(); err != nil {
			t.Fatal(err)
		}
	})
}
