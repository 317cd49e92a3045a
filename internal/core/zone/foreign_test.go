package zone

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/policy/shortest"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestSlicesOfOtherZonesAreLetGo once nothing of the zone's is there: over time its jobs run on any number of them.
func TestSlicesOfOtherZonesAreLetGo(t *testing.T) {
	cfg, err := search.Config{Flow: flow.Config{Classes: flow.Classes{1 << 30}},
		Zones: []search.Zone{{ID: "z", Nodes: []job.NodeID{"m"}}}}.Checked()
	if err != nil {
		t.Fatal(err)
	}
	z, err := New(Config{ID: "z", Policy: shortest.Policy{}, Market: &auction.Config{}, Search: cfg})
	if err != nil {
		t.Fatal(err)
	}
	table, err := trp.Compile(trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: 100, Mean: 1 << 20}}}, 100, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	now, out := quantity.Instant(1e9), protocol.Out{}
	z.Recover(now, &out)
	spec := &job.Spec{Name: "a", Queue: "q", Kind: job.Items, Total: 100, Grid: 1, Parallelism: 2, PerUnit: time.Second, Safe: table,
		MaxFailures: 1000}
	z.Step(now, protocol.Message{Kind: protocol.Adopt, From: protocol.Address{Role: protocol.Gate}, Job: "a", Epoch: 1, Generation: 1,
		Body: &protocol.Adoption{Since: 1, At: now, Spec: spec, Queue: &protocol.Queue{Name: "q", Weight: 1}}}, &out)
	for i := range 40 {
		now = now.Add(time.Hour) // long enough that nothing is kept from the job
		name := fmt.Sprint("m/", i)
		from, token := protocol.Address{Role: protocol.Node, ID: "m"}, job.Token{Epoch: 1, Seq: uint64(i + 1)}
		win := protocol.Message{Kind: protocol.Winning, From: from, Job: "a", Session: 1, Body: &protocol.Prize{
			Place: protocol.Place{Token: token, Node: "m", Slice: protocol.Slice{ID: job.SliceID(name + "/a"), Speed: 1000,
				Capacity: trp.Vector{trp.Memory: 1 << 30}}, Start: now, End: now.Add(time.Minute), Expiry: now.Add(time.Second)},
			Plan: protocol.Plan{Run: time.Second, Wall: time.Second, Round: 1, Window: 1}, Range: job.Range{To: 1},
			Demand: trp.Vector{trp.Memory: 1 << 20}, Speed: 1000, Bid: &protocol.Bid{},
		}}
		if z.Step(now, win, &out); i < 40 && z.sites.Find(job.SliceID(name+"/a")) == nil {
			t.Fatalf("the job runs on %s, and the zone does not know it", name)
		}
		z.Step(now, protocol.Message{Kind: protocol.Result, From: from, Job: "a", Epoch: 1, Generation: 1, Token: token,
			Body: &protocol.Conclusion{
				Range: job.Range{To: 1}, Result: &job.Result{Outcome: job.Stopped, Start: now, End: now},
			}}, &out)
		win.Body.(*protocol.Prize).Range, win.Body.(*protocol.Prize).Token = job.Range{From: 500, To: 600},
			job.Token{Epoch: 2, Seq: uint64(i + 1)}
		z.Step(now, win, &out) // one that can not be true
	}
	if n := len(z.sites.IDs()); n > 0 {
		t.Errorf("%d slices are kept on which there is nothing", n)
	}
}
