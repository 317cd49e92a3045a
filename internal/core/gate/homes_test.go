package gate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// twoZones: a has two slices of 512 MiB, b one of 512 MiB and three of 2048.
func twoZones(t testing.TB) *desk {
	d := newDeskOf(t, []gate.Zone{{ID: "a", Nodes: []job.NodeID{"n1"}}, {ID: "b", Nodes: []job.NodeID{"n2", "n3"}}})
	d.report("n1", 512, 512)
	d.report("n2", 512, 2048)
	d.report("n3", 2048, 2048)
	return d
}

// report is a node that says what it has, in MiB.
func (d *desk) report(node string, sizes ...int64) {
	stock := &protocol.Stock{}
	m := protocol.Message{Kind: protocol.Inventory, From: protocol.Address{Role: protocol.Node, ID: node}, Body: stock}
	for i, mib := range sizes {
		stock.Slices = append(stock.Slices, protocol.Slice{ID: job.SliceID(fmt.Sprintf("%s/%d", node, i)),
			Capacity: trp.Vector{quantity.Amount(mib << 20)}, Speed: 1000})
	}
	d.step(m)
}

// sent are the receivers of what was said of one kind in the last step.
func (d *desk) sent(k protocol.Kind) (to []string) {
	for i := range d.said {
		if d.said[i].Kind == k {
			to = append(to, d.said[i].To.ID)
		}
	}
	return to
}

func rigid(t testing.TB, name string, mib int64, n int) protocol.Message {
	m := submit(t, name, "r "+name, "d "+name)
	m.Body.(*protocol.Submission).Spec.Kind, m.Body.(*protocol.Submission).Spec.Grid, m.Body.(*protocol.Submission).Spec.Slices = job.Rigid,
		0, n
	table, err := trp.Compile(trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: 100, Mean: quantity.Amount(mib << 20)}}}, 100,
		10_000)
	if err != nil {
		t.Fatal(err)
	}
	m.Body.(*protocol.Submission).Spec.Safe = table
	return m
}

// TestAHomeIsDrawnOnce by what could run the job, whatever else was submitted, and everything about it goes there.
func TestAHomeIsDrawnOnce(t *testing.T) {
	d := twoZones(t)
	count := map[job.ZoneID]int{}
	for i := range 600 {
		name := job.ID(fmt.Sprint("j", i))
		if r := d.call(submit(t, string(name), fmt.Sprint("r", i), fmt.Sprint("d", i))); r.Body.(*protocol.Receipt).Err != nil {
			t.Fatal(r.Body.(*protocol.Receipt).Err)
		}
		count[d.g.Home(name)]++
	}
	if a, b := count["a"], count["b"]; a < 160 || a > 240 || a+b != 600 { // a third of the slices are a's
		t.Errorf("of 600 jobs that every slice can run %d are at home in a, and %d in b", a, b)
	}
	other := twoZones(t)
	for _, i := range []int{599, 3, 77} {
		name := fmt.Sprint("j", i)
		other.call(submit(t, name, "r", name))
		if got, want := other.g.Home(job.ID(name)), d.g.Home(job.ID(name)); got != want {
			t.Errorf("%s is at home in %s alone and in %s among others", name, got, want)
		}
	}
	for i := range 50 {
		name := fmt.Sprint("large", i)
		d.call(rigid(t, name, 1024, 1))
		if home := d.g.Home(job.ID(name)); home != "b" {
			t.Fatalf("%s, which only slices of b could run, is at home in %q", name, home)
		}
		if to := d.sent(protocol.Adopt); !slices.Equal(to, []string{"b"}) {
			t.Fatalf("%v are to adopt %s", to, name)
		}
	}
	zone := protocol.Address{Role: protocol.Zone, ID: "b"}
	d.step(protocol.Message{Kind: protocol.Adopted, From: zone, Job: "large0", Epoch: 1, Generation: 1})
	for _, m := range []protocol.Message{{Kind: protocol.PauseJob, Body: &protocol.Pause{Request: "p", Paused: true}},
		{Kind: protocol.Cancel, Body: &protocol.Cancellation{Request: "c"}}} {
		m.Job = "large0"
		d.call(m)
		if to := d.sent(m.Kind); !slices.Equal(to, []string{"b"}) {
			t.Errorf("message %d goes to %v", m.Kind, to)
		}
	}
	d.step(protocol.Message{Kind: protocol.Closed, From: zone, Job: "large0", Epoch: 1, Generation: 1,
		Body: &protocol.Closing{Verdict: job.Verdict{State: job.Cancelled}, At: d.now}})
	d.call(protocol.Message{Kind: protocol.Requeue, Job: "large0", Body: &protocol.Requeueing{Request: "again"}})
	if d.g.Home("large0") != "b" || !slices.Equal(d.sent(protocol.Adopt), []string{"b"}) {
		t.Errorf("another life of it is at home in %s", d.g.Home("large0"))
	}
}

// TestANextJobOfANameWaitsForTheOldHome, wherever its own is.
func TestANextJobOfANameWaitsForTheOldHome(t *testing.T) {
	d := twoZones(t)
	moved := false
	for i := range 20 {
		name := job.ID(fmt.Sprint("j", i))
		d.call(submit(t, string(name), "first", "one"))
		home, of := d.g.Home(name), d.g.Life(name)
		zone := protocol.Address{Role: protocol.Zone, ID: string(home)}
		d.step(protocol.Message{Kind: protocol.Adopted, From: zone, Job: name, Epoch: 1, Generation: of})
		d.step(protocol.Message{Kind: protocol.Closed, From: zone, Job: name, Epoch: 1, Generation: of,
			Body: &protocol.Closing{Verdict: job.Verdict{State: job.Finished}, At: d.now}})
		m := submit(t, string(name), "second", "two")
		m.Body.(*protocol.Submission).Replace = true
		d.call(m)
		if to := d.sent(protocol.Forget); !slices.Equal(to, []string{string(home)}) || d.find(protocol.Adopt) != nil {
			t.Fatalf("%v are to forget a job of %s, and the next one is sent out: %v", to, home, d.sent(protocol.Adopt))
		}
		d.step(protocol.Message{Kind: protocol.Forgotten, From: zone, Job: name, Generation: of})
		d.step(protocol.Message{Kind: protocol.Purged, From: protocol.Address{Role: protocol.Executor}, Job: name, Generation: of + 1})
		if to := d.sent(protocol.Adopt); !slices.Equal(to, []string{string(d.g.Home(name))}) {
			t.Fatalf("then %v are to adopt the next, whose home is %s", to, d.g.Home(name))
		}
		moved = moved || d.g.Home(name) != home
	}
	if !moved {
		t.Error("every next job has the home of the one before: the test shows nothing")
	}
}

// TestAJobWithoutAKnownPlaceWaitsForItsHome: while nothing is known of the slices a job is accepted, and drawn when a zone is
// known that could run it. The gate asks until it is.
func TestAJobWithoutAKnownPlaceWaitsForItsHome(t *testing.T) {
	d := newDeskOf(t, []gate.Zone{{ID: "a", Nodes: []job.NodeID{"n1"}}, {ID: "b", Nodes: []job.NodeID{"n2", "n3"}}})
	for _, m := range []protocol.Message{rigid(t, "large", 1024, 1), rigid(t, "small", 100, 1), rigid(t, "gone", 100, 1)} {
		if r := d.call(m); r.Body.(*protocol.Receipt).Err != nil || d.find(protocol.Adopt) != nil {
			t.Fatalf("%s: %v, adopt %v", m.Body.(*protocol.Submission).Spec.Name, r.Body.(*protocol.Receipt).Err, d.sent(protocol.Adopt))
		}
	}
	asked := func(want ...string) {
		t.Helper()
		d.now += 100e9
		d.step(protocol.Message{Kind: protocol.Tick})
		if to := d.sent(protocol.Inventory); !slices.Equal(to, want) {
			t.Errorf("%v are asked for what they have, want %v", to, want)
		}
	}
	asked("n1", "n2", "n3")
	d.call(protocol.Message{Kind: protocol.Cancel, Job: "gone", Body: &protocol.Cancellation{Request: "c"}})
	if len(d.sent(protocol.Adopt)) != 1 || d.g.Home("gone") == "" {
		t.Errorf("nobody ends what was cancelled: %v", d.said)
	}
	d.report("n1", 512)
	if d.g.Home("small") != "a" || d.g.Home("large") != "" || !slices.Equal(d.sent(protocol.Adopt), []string{"a"}) {
		t.Errorf("small is at home in %q, large in %q", d.g.Home("small"), d.g.Home("large"))
	}
	asked("n2", "n3")
	d.report("n3", 2048)
	if d.g.Home("large") != "b" {
		t.Errorf("large is at home in %q", d.g.Home("large"))
	}
	d.report("n2", 2048)
	asked()
}

// TestAShareLetsAJobGoHome: a job that was accepted before the nodes reported, and is wider than the share of the only zone that could run
// it, goes there when the cap is raised.
func TestAShareLetsAJobGoHome(t *testing.T) {
	d := newDeskOf(t, []gate.Zone{{ID: "a", Nodes: []job.NodeID{"n1"}}, {ID: "b", Nodes: []job.NodeID{"n2"}}})
	limit := func(n int) {
		d.call(protocol.Message{Kind: protocol.SetQueue, Body: &protocol.QueueSetting{Request: fmt.Sprint("cap ", n),
			Queue: &protocol.Queue{Name: "default", Weight: 1, Cap: n}}})
	}
	limit(3)
	d.call(rigid(t, "pair", 1024, 2))
	d.report("n1", 512)
	d.report("n2", 2048, 2048)
	if d.g.Home("pair") != "" {
		t.Fatalf("a share of 1 in b, and a job that holds 2 is at home in %q", d.g.Home("pair"))
	}
	if limit(4); d.g.Home("pair") != "b" || !slices.Contains(d.sent(protocol.Adopt), "b") {
		t.Errorf("with a share of 2 it is at home in %q", d.g.Home("pair"))
	}
}

// TestWhatNoOneZoneCouldRun is refused with what one could, once all nodes have reported.
func TestWhatNoOneZoneCouldRun(t *testing.T) {
	d := twoZones(t)
	refused := func(m protocol.Message, words ...string) {
		t.Helper()
		r := d.call(m)
		if errkind.Of(r.Body.(*protocol.Receipt).Err) != errkind.Invalid &&
			errkind.Of(r.Body.(*protocol.Receipt).Err) != errkind.Exhausted {
			t.Fatalf("%s is taken: %v", m.Body.(*protocol.Submission).Spec.Name, r.Body.(*protocol.Receipt).Err)
		}
		for _, w := range words {
			if !strings.Contains(r.Body.(*protocol.Receipt).Err.Error(), w) {
				t.Errorf("%q does not say %q", r.Body.(*protocol.Receipt).Err, w)
			}
		}
	}
	gang := func(name string, mib int64, n int) protocol.Message {
		m := rigid(t, name, mib, n)
		m.Body.(*protocol.Submission).Spec.Topology = job.SameZone
		return m
	}
	refused(gang("wide", 100, 5), "5 slices of 100 MiB within one zone, and no zone has more than 4", "slices: 4, or topology: cluster")
	refused(rigid(t, "together", 100, 3), "within one node, and no node has more than 2", "slices: 2, or topology: zone")
	if r := d.call(gang("fits", 100, 4)); r.Body.(*protocol.Receipt).Err != nil || d.g.Home("fits") != "b" {
		t.Errorf("%v, at home in %s", r.Body.(*protocol.Receipt).Err, d.g.Home("fits"))
	}
	d.call(protocol.Message{Kind: protocol.SetQueue,
		Body: &protocol.QueueSetting{Request: "q", Queue: &protocol.Queue{Name: "default", Weight: 1, Cap: 5}}})
	var caps []int
	for i := range d.said {
		if d.said[i].Kind == protocol.QueueChanged {
			caps = append(caps, d.said[i].Body.(*protocol.Queue).Cap)
		}
	}
	if !slices.Equal(caps, []int{3, 2}) || !slices.Equal(d.sent(protocol.QueueChanged), []string{"a", "b"}) {
		t.Errorf("of a cap of 5 the zones are told %v", caps)
	}
	refused(gang("capped", 100, 4), "queue default may hold 5, 3 of them in one of the 2 zones")
	refused(gang("elsewhere", 1024, 3), "where it could queue default's share of its cap of 5 is smaller", "a cap of at least 6")
	zone := func(id string, limit int) protocol.Message {
		return protocol.Message{Kind: protocol.QueueChanged, From: protocol.Address{Role: protocol.Zone, ID: id},
			Body: &protocol.Queue{Name: "default", Weight: 1, Cap: limit}}
	}
	d.step(zone("a", 3))
	d.now = d.now.Add(time.Second)
	d.step(protocol.Message{Kind: protocol.Tick})
	if to := d.sent(protocol.QueueChanged); !slices.Equal(to, []string{"b"}) {
		t.Errorf("a has said what it has, and %v are told again", to)
	}
	if d.step(zone("b", 5)); !slices.Equal(d.sent(protocol.QueueChanged), []string{"b"}) {
		t.Error("b holds to the whole cap, and nobody tells it")
	}
	d.call(protocol.Message{Kind: protocol.SetQueue,
		Body: &protocol.QueueSetting{Request: "q1", Queue: &protocol.Queue{Name: "default", Weight: 1, Cap: 1}}})
	d.call(rigid(t, "one", 100, 1))
	if d.g.Home("one") != "a" {
		t.Errorf("a job whose queue has no share in b is at home in %q", d.g.Home("one"))
	}
}

// TestBadZones are named.
func TestBadZones(t *testing.T) {
	for name, zones := range map[string][]gate.Zone{
		"it needs a zone":        nil,
		`zones[1] is called "a"`: {{ID: "a", Nodes: []job.NodeID{"n"}}, {ID: "a", Nodes: []job.NodeID{"m"}}},
		`zone "b" has no node`:   {{ID: "a", Nodes: []job.NodeID{"n"}}, {ID: "b"}},
		`node "n" is one of`:     {{ID: "a", Nodes: []job.NodeID{"n"}}, {ID: "b", Nodes: []job.NodeID{"n"}}},
	} {
		if _, err := gate.New(gate.Config{Zones: zones}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %v, want %s", zones, err, name)
		}
	}
}

// TestAHomeThatIsNotThere is found before anything is decided.
func TestAHomeThatIsNotThere(t *testing.T) {
	d := twoZones(t)
	for i := range 9 {
		d.call(submit(t, fmt.Sprint("j", i), fmt.Sprint("r", i), fmt.Sprint("d", i)))
	}
	if id, home, found := d.g.Stray(); found {
		t.Fatalf("%s at home in %s is a stray", id, home)
	}
	fewer, err := gate.New(gate.Config{Zones: gate.Alone("a")})
	if err != nil {
		t.Fatal(err)
	}
	first := job.ID("")
	for _, f := range d.facts {
		fewer.Apply(f)
		if f.Kind == protocol.JobAccepted && f.Body.(*protocol.Acceptance).Zone == "b" && (first == "" || f.Job < first) {
			first = f.Job
		}
	}
	if id, home, found := fewer.Stray(); !found || id != first || home != "b" {
		t.Errorf("%s at home in %s (%v), want %s in b", id, home, found, first)
	}
}

// TestWhatIsAcceptedHasAHome, once all nodes have reported: no job is taken in that would wait for a zone that never comes, and its home
// could run it within its share of the cap.
func TestWhatIsAcceptedHasAHome(t *testing.T) {
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 4).Draw(t, "zones")
		var zones []gate.Zone
		for i := range n {
			zones = append(zones, gate.Zone{ID: job.ZoneID(fmt.Sprint("z", i)), Nodes: []job.NodeID{job.NodeID(fmt.Sprint("n", i))}})
		}
		g, err := gate.New(gate.Config{Zones: zones})
		if err != nil {
			t.Fatal(err)
		}
		var out protocol.Out
		sizes := map[job.ZoneID][]int{}
		for _, z := range zones {
			stock := &protocol.Stock{}
			m := protocol.Message{Kind: protocol.Inventory, From: protocol.Address{Role: protocol.Node, ID: string(z.Nodes[0])},
				Body: stock}
			for i := range rapid.IntRange(0, 4).Draw(t, "slices") {
				gib := rapid.IntRange(1, 3).Draw(t, "GiB")
				sizes[z.ID] = append(sizes[z.ID], gib)
				stock.Slices = append(stock.Slices, protocol.Slice{ID: job.SliceID(fmt.Sprint(z.ID, i)),
					Capacity: trp.Vector{quantity.Amount(gib << 30)}, Speed: 1000})
			}
			g.Step(1, m, &out)
		}
		limit := rapid.IntRange(0, 6).Draw(t, "cap")
		g.Step(1, protocol.Message{Kind: protocol.SetQueue, From: protocol.Address{Role: protocol.Person},
			Body: &protocol.QueueSetting{Queue: &protocol.Queue{Name: "default", Weight: 1, Cap: limit}}}, &out)
		gib, wide := rapid.IntRange(1, 3).Draw(t, "needs"), rapid.IntRange(1, 4).Draw(t, "at once")
		table, err := trp.Compile(trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: 1, Mean: quantity.Amount(gib << 30)}}}, 1,
			10_000)
		if err != nil {
			t.Fatal(err)
		}
		s := &job.Spec{Name: "j", Queue: "default", Kind: job.Rigid, Total: 1, Slices: wide, Walltime: time.Minute, Safe: table,
			MaxFailures: 3}
		home := g.Draw(s)
		could := map[job.ZoneID]bool{} // by brute force
		known := false
		for i, z := range zones {
			fit := 0
			for _, size := range sizes[z.ID] {
				known = true
				if size >= gib {
					fit++
				}
			}
			share := limit / n
			if i < limit%n {
				share++
			}
			could[z.ID] = fit >= wide && (limit == 0 || share >= wide)
		}
		accept := *s // the same from what is remembered, before and after something else is known
		for range 2 {
			g.Step(2, protocol.Message{Kind: protocol.Submit, From: protocol.Address{Role: protocol.Person},
				Body: &protocol.Submission{Request: "r", Digest: "d", Spec: &accept}}, &out)
			if got := g.Home("j"); g.Life("j") > 0 && got != home {
				t.Fatalf("the home is %q, a look before said %q", got, home)
			}
		}
		switch err := g.Check(1, s); {
		case home != "" && !could[home]:
			t.Fatalf("%d slices of %d GiB with a cap of %d: the home is %s, which has %v", wide, gib, limit, home, sizes)
		case err == nil && home == "" && known:
			t.Fatalf("%d slices of %d GiB with a cap of %d are accepted, and no zone could run them: %v", wide, gib, limit, sizes)
		case err != nil && home != "":
			t.Fatalf("%d slices of %d GiB with a cap of %d are refused, and %s could run them: %v: %v", wide, gib, limit, home, sizes, err)
		case home != "":
			accepted++
		}
	})
	if accepted == 0 {
		t.Error("nothing was ever accepted: the test shows nothing")
	}
}
