package gate

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestADigestThatIsNoNewsDrawsNothing: which zones could run a job that has no home does not follow from digests, only whether any can be drawn.
func TestADigestThatIsNoNewsDrawsNothing(t *testing.T) {
	cfg, err := search.Config{
		Flow: flow.Config{Classes: flow.Classes{512 << 20, 2048 << 20}}, Zones: []search.Zone{{ID: "a", Nodes: []job.NodeID{"n1"}}, {ID: "b", Nodes: []job.NodeID{"n2"}}},
	}.Checked()
	if err != nil {
		t.Fatal(err)
	}
	g := testGate(t, Config{Zones: []Zone{{ID: "a", Nodes: []job.NodeID{"n1"}}, {ID: "b", Nodes: []job.NodeID{"n2"}}}, Search: cfg})
	now, out := quantity.Instant(1e9), protocol.Out{}
	g.Step(now, protocol.Message{Kind: protocol.Submit, From: protocol.Address{Role: protocol.Person}, Job: "j", Body: &protocol.Submission{Request: "r", Digest: "d", Spec: runnable("j")}}, &out)
	drew := func(z flow.ZoneID, version uint64, after time.Duration) bool {
		now = now.Add(after)
		g.Step(now, protocol.Message{Kind: protocol.ZoneDigest, From: cfg.At(z), Body: &flow.Digest{Zone: z, Alive: true, Version: version, At: now, Free: [flow.MaxClasses]uint32{uint32(version)}}}, &out)
		return g.dealer.rebuilt == now
	}
	period := cfg.Flow.Period
	if g.Home("j") != "" || !drew(0, 1, period) {
		t.Error("the first word of a zone draws nothing for a job that waits")
	}
	if g.Home("j") != "" || drew(0, 2, period) || drew(1, 1, period) || drew(0, 3, period) {
		t.Error("whatever zones say, homes are drawn for a job that no node is known to be able to run")
	}
	if !drew(1, 2, 2*cfg.Flow.Stale) {
		t.Error("the first word after a silence draws nothing")
	}
	g.Step(now, protocol.Message{Kind: protocol.Inventory, From: protocol.Address{Role: protocol.Node, ID: "n2"}, Body: &protocol.Stock{Slices: []protocol.Slice{{ID: "n2/a", Capacity: trp.Vector{1 << 30}, Speed: 1000}}}}, &out)
	if g.Home("j") != "b" {
		t.Errorf("home %q, and a node of b could run it", g.Home("j"))
	}
}
