package twin_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy/fair"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/host"
	"sluice.dev/sluice/internal/lab/sim"
)

// fourGPUs are small and large in turn; gpu2 is cut in two.
func fourGPUs() (list []protocol.Slice) {
	kinds := machine("")
	for i, id := range []job.SliceID{"gpu0", "gpu1", "gpu2/a", "gpu2/b", "gpu3"} {
		s := kinds[[]int{0, 1, 0, 0, 1}[i]]
		s.ID = id
		list = append(list, s)
	}
	return list
}

// several makes actors of so many zones and nodes as the daemon does.
func several(t failer, zones, nodes int, archive *filing.Config) func() actor.Set {
	config, err := arrangement.Choice{
		Policy: fair.Policy{}, Mechanism: "sja", Horizon: 10 * time.Minute, Node: nodeID, Zones: zones, Nodes: nodes, Archive: archive,
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

// newLiveZones is a daemon of two zones and three nodes on four GPUs.
func newLiveZones(t *testing.T) *live {
	l := newLive(t)
	l.build = several(t, 2, 3, nil)
	l.options = func(o *host.Options) { o.Inventory = fixed(fourGPUs()) }
	return l
}

// busier is scenario with more jobs, so that each zone has several.
func busier(t failer) []arrival {
	jobs := scenario(t)
	for i := range 9 {
		jobs = append(jobs, arrival{time.Duration(37+i)*time.Second + 11, spec(t, job.ID(fmt.Sprint("more", i)), job.Items, int64(301+20*i),
			230*time.Millisecond+3)})
	}
	return jobs
}

// TestTwinsInZones: several zones and nodes of one process award as the same ones in the simulator do, and the tape replays.
func TestTwinsInZones(t *testing.T) {
	jobs, l := busier(t), newLiveZones(t)
	var start quantity.Instant
	synctest.Test(t, func(t *testing.T) { start = runLive(t, l, jobs, 0) })
	checkOnce(t, l.facts, jobs)
	set := l.build()
	o := sim.Options{Gates: set.Gates, Zones: set.Zones}
	for i := range set.Nodes {
		o.Nodes = append(o.Nodes, sim.Node{ID: set.Nodes[i].ID, Actor: set.Nodes[i].Node})
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
	homes := map[string]int{}
	for _, f := range l.facts {
		if f.Kind == protocol.Claimed {
			homes[f.Actor.ID]++
		}
	}
	if len(homes) != 2 {
		t.Errorf("claims by zone: %v; want two zones", homes)
	}
	done, err := sim.Replay(l.openTape(0), l.build().Parties(), nil)
	if err != nil || done.Compared < 100 {
		t.Errorf("the tape replays %d calls: %v", done.Compared, err)
	}
}

// TestZonesComeBack: a daemon of several zones that is killed again and again finishes what it had, with the archive on and with snapshots.
func TestZonesComeBack(t *testing.T) {
	jobs, l := busier(t), newLiveZones(t)
	l.archives(time.Second)
	l.build = several(t, 2, 3, &filing.Config{Keep: time.Second})
	l.options = func(o *host.Options) { o.Inventory, o.SnapshotRecords = fixed(fourGPUs()), 20 }
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		if err := l.open(); err != nil {
			t.Fatal(err)
		}
		for _, a := range jobs {
			if _, err := l.host.Submit(ctx, a.request(), a.spec, nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(7 * time.Second)
			if err := l.stop(); err != nil {
				t.Fatal(err)
			}
			if err := l.open(); err != nil {
				t.Fatal(err)
			}
		}
		if !l.finished(len(jobs), 2*time.Hour) {
			t.Error("not all jobs ended")
		}
		for _, a := range jobs {
			if j, err := l.host.Job(ctx, a.spec.Name); err != nil || j.State != job.Finished {
				t.Errorf("%s: %v %v", a.spec.Name, j.State, err)
			}
		}
		if err := l.stop(); err != nil {
			t.Fatal(err)
		}
	})
	checkOnce(t, l.facts, jobs)
}

// TestZonesKilledAtEveryAppend: as TestKilledAtEveryAppend, with two zones that both have jobs.
func TestZonesKilledAtEveryAppend(t *testing.T) {
	t.Parallel()
	jobs := []arrival{
		{0, spec(t, "one", job.Items, 103, 100*time.Millisecond)}, {time.Second, spec(t, "two", job.Steps, 61, 130*time.Millisecond)},
		{2 * time.Second, spec(t, "other", job.Items, 81, 110*time.Millisecond)},
	}
	var last *live
	killedAtEveryAppend(t, func() (*live, []arrival) {
		last = newLive(t)
		last.build = several(t, 2, 2, nil)
		last.options = func(o *host.Options) { o.NoTape, o.Inventory = true, fixed(fourGPUs()) }
		return last, jobs
	})
	homes := map[string]bool{}
	for _, f := range last.facts {
		if f.Kind == protocol.Claimed {
			homes[f.Actor.ID] = true
		}
	}
	if len(homes) != 2 {
		t.Errorf("only %v have jobs: the test shows less than it should", homes)
	}
}

// TestWhatZonesShow: lists, queues, windows and reservations are of all zones and nodes.
func TestWhatZonesShow(t *testing.T) {
	jobs, l := busier(t), newLiveZones(t)
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		if err := l.open(); err != nil {
			t.Fatal(err)
		}
		if err := l.host.SetQueue(ctx, "q", protocol.Queue{Name: "default", Weight: 1, Cap: 4}); err != nil {
			t.Fatal(err)
		}
		for _, a := range jobs {
			if _, err := l.host.Submit(ctx, a.request(), a.spec, nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		page, err := l.host.Jobs(ctx, status.JobQuery{Limit: 4})
		if err != nil || len(page.Jobs) != 4 || page.Older != len(jobs)-4 || page.Jobs[3].Name != jobs[len(jobs)-1].spec.Name {
			t.Errorf("a page of the newest: %v, %d older, %v", page.Jobs, page.Older, err)
		}
		queues, err := l.host.Queues(ctx)
		if err != nil || len(queues) != 1 || queues[0].Pending+queues[0].Running != len(jobs) || queues[0].Queue.Cap != 4 ||
			queues[0].Held == 0 || queues[0].Held > 4 {
			t.Errorf("queues %+v, %v", queues, err)
		}
		list, err := l.host.Slices(ctx)
		var names []string
		for _, s := range list {
			names = append(names, string(s.Slice.ID))
		}
		if want := "n-1/gpu0 n-1/gpu3 n-2/gpu1 n-3/gpu2/a n-3/gpu2/b"; err != nil || strings.Join(names, " ") != want {
			t.Errorf("slices %v, %v; want %s", names, err, want)
		}
		zones, err := l.host.Zones(ctx)
		if err != nil || len(zones) != 2 || zones[0].Slices != 4 || zones[1].Slices != 1 || zones[0].Homed+zones[1].Homed != len(jobs) ||
			zones[0].Running+zones[1].Running == 0 ||
			zones[0].Waiting+zones[0].Running != zones[0].Homed || !slices.Equal(zones[0].Nodes, []job.NodeID{"n-1", "n-3"}) {
			t.Errorf("zones %+v, %v", zones, err)
		}
		for _, a := range jobs {
			e, err := l.host.Explain(ctx, a.spec.Name)
			if err != nil || e.Home != zones[0].ID && e.Home != zones[1].ID {
				t.Errorf("%s has its home in %q: %v", a.spec.Name, e.Home, err)
			}
		}
		dry := spec(t, "dry", job.Items, 100, time.Second)
		if e, err := l.host.DryRun(ctx, dry); err != nil || e.Home == "" {
			t.Errorf("a dry run in %q: %v", e.Home, err)
		}
		r := protocol.Reservation{Kind: protocol.ForDrain, Start: quantity.At(time.Now().Add(time.Hour)), End: quantity.Never}
		made, err := l.host.Reserve(ctx, "r", r)
		if err != nil || len(made) != 5 {
			t.Fatalf("%d reservations on five slices: %v", len(made), err)
		}
		if again, err := l.host.Reserve(ctx, "r", r); err != nil || len(again) != 5 || again[4].ID != made[4].ID {
			t.Errorf("the same again: %v, %v", again, err)
		}
		ids := map[uint64]bool{}
		for _, m := range made {
			ids[m.ID] = true
			if err := l.host.Unreserve(ctx, "", m.ID); err != nil {
				t.Errorf("reservation %d on %s: %v", m.ID, m.Slice, err)
			}
		}
		if len(ids) != 5 {
			t.Errorf("five reservations have the ids %v", ids)
		}
		r.Slice = "n-3/gpu2/b"
		if made, err := l.host.Reserve(ctx, "one", r); err != nil || len(made) != 1 || made[0].Slice != r.Slice {
			t.Errorf("one slice: %v, %v", made, err)
		}
		if _, err := l.host.Release(ctx, "", "n-2/gpu1"); err != nil {
			t.Errorf("a slice of the second node: %v", err)
		}
		if _, err := l.host.Release(ctx, "", "elsewhere/gpu1"); errkind.Of(err) != errkind.NotFound {
			t.Errorf("a slice of no node: %v", err)
		}
		if err := l.stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestZonesAreKept: a directory of several zones and nodes is refused with fewer of them, with more nodes and by a build that knows one
// of each, and opens with another zone more as long as its nodes stay.
func TestZonesAreKept(t *testing.T) {
	l := newLiveZones(t)
	reopen := func(zones, nodes int) error {
		l.build = several(t, zones, nodes, nil)
		err := l.open()
		if err == nil {
			err = l.stop()
		}
		return err
	}
	synctest.Test(t, func(t *testing.T) {
		if err := l.open(); err != nil {
			t.Fatal(err)
		}
		for _, a := range busier(t) {
			if _, err := l.host.Submit(context.Background(), a.request(), a.spec, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.stop(); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			zones, nodes int
			want         string
		}{{1, 1, "zone local-1 is missing, and it was never drained: put it back into zones: of --config (zones: [local-1, local-2])"},
			{2, 2, "facts of node n-3"}, {2, 4, "was begun with node n-1, node n-2, node n-3"}, {2, 3, ""}} {
			if err := reopen(c.zones, c.nodes); c.want == "" && err != nil || c.want != "" &&
				(errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%d zones, %d nodes: %v, want %q", c.zones, c.nodes, err, c.want)
			}
		}
		if err := reopen(3, 3); err != nil {
			t.Errorf("with a zone more: %v", err)
		}
	})
	format, err := os.ReadFile(filepath.Join(l.dir, "FORMAT"))
	if err != nil || strings.TrimSpace(string(format)) == "sluice data 11" {
		t.Errorf("the directory says %q, which an older build would open: %v", format, err)
	}
}
