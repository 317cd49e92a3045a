package api

import (
	"testing"

	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
)

// TestStanding: what a market that negotiates knows arrives whole, in the units of people; one that does not says nothing.
func TestStanding(t *testing.T) {
	plain := jobMessage(&status.Job{Profile: status.Profile{Source: forecast.Declared}, History: []status.Subjob{{Window: 1}}})
	if plain.Trust != nil || plain.History[0].Bid != nil || plain.Profile.Source != "declared" || plain.Profile.Text != "declared" {
		t.Errorf("without a negotiation: %v", plain)
	}
	if q := queueMessage(&status.Queue{}); q.Trust != nil || q.Credits != 0 {
		t.Errorf("a queue without a negotiation: %v", q)
	}
	if fresh := trustMessage(&status.Trust{Believed: 1_000_000}); fresh == nil || fresh.Believed != 1 || fresh.Seen != 0 {
		t.Errorf("nothing was seen yet: %v", fresh)
	}
	trust := status.Trust{Trust: protocol.Trust{Error: 100_000, History: 610_000, Seen: 12, Pace: 1050, Runs: 40, Excess: 1,
		Evidence: -120_000}, Believed: 818_731}
	j := jobMessage(&status.Job{
		Trust: trust, Profile: status.Profile{Source: forecast.Taught, Runs: 120, Spread: 1500},
		History: []status.Subjob{{Bid: &protocol.Bid{Score: 900_000, Calibrated: 841_087, Weight: 39_800_000_000, Price: 39_799,
			Option: "bf16"}}},
	})
	if m := j.Trust; m.Believed != .818731 || m.Error != .1 || m.History != .61 || m.Seen != 12 || m.Pace != 1.05 || m.Runs != 40 ||
		m.Excess != 1 || m.Evidence != -.12 {
		t.Errorf("trust: %v", m)
	}
	if p := j.Profile; p.Source != "template" || p.Runs != 120 || p.Spread != 1.5 || p.Text == "" {
		t.Errorf("profile: %v", p)
	}
	if b := j.History[0].Bid; b.Score != .9 || b.Calibrated != .841087 || b.Weight != 39800 || b.Price != 39_799 || b.Option != "bf16" {
		t.Errorf("bid: %v", b)
	}
	if q := queueMessage(&status.Queue{Trust: trust, Credits: 5}); q.Trust.Seen != 12 || q.Credits != 5 {
		t.Errorf("queue: %v", q)
	}
}
