package gate

import (
	"testing"

	"sluice.dev/sluice/internal/core/protocol"
)

// TestOneZoneHasNothingOfAFederation: a gate before one zone draws no homes and has no drains, whatever its jobs go through.
func TestOneZoneHasNothingOfAFederation(t *testing.T) {
	g := testGate(t, Config{Zones: Alone("z")})
	var out protocol.Out
	g.Recover(1e9, &out)
	g.Step(1e9, protocol.Message{Kind: protocol.Submit, From: protocol.Address{Role: protocol.Person}, Job: "j",
		Body: &protocol.Submission{Request: "r", Digest: "d", Spec: runnable("j")}}, &out)
	g.Step(1e9, protocol.Message{Kind: protocol.Adopted, From: zone("z"), Job: "j", Epoch: 1, Generation: 1}, &out)
	g.Step(1e9, protocol.Message{Kind: protocol.Cancel, From: protocol.Address{Role: protocol.Person}, Job: "j",
		Body: &protocol.Cancellation{}}, &out)
	if g.Home("j") != "z" || g.homes != nil || g.drains != nil {
		t.Errorf("at home in %q, with homes %v and drains %v", g.Home("j"), g.homes, g.drains)
	}
}
