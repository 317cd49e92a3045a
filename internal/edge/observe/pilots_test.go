package observe

import (
	"testing"

	"sluice.dev/sluice/internal/core/status"
)

// TestPilots: each pool has all of its series, as its provider stands when it is asked; a daemon without pools has none.
func TestPilots(t *testing.T) {
	list := []status.Provider{
		{Name: "scavenger", Seen: 7, Pilots: []status.Pilot{{State: "joined"}, {State: "waiting"}, {State: "joined"}},
			Ended: []status.Ended{{How: "preempted", Count: 3}}},
		{Name: "nights", Seen: 5, Silent: "squeue does not answer"},
		{Name: "new"},
	}
	o := New(Options{})
	o.Lent(func() []status.Provider { return list })
	expect(t, scrape(t, o),
		`sluice_pilots{pool="scavenger",state="joined"} 2`,
		`sluice_pilots{pool="scavenger",state="waiting"} 1`,
		`sluice_pilots{pool="scavenger",state="leaving"} 0`,
		`sluice_pilots_ended_total{how="preempted",pool="scavenger"} 3`,
		`sluice_pilots_ended_total{how="failed",pool="scavenger"} 0`,
		`sluice_provider_answers{pool="scavenger"} 1`,
		`sluice_provider_answers{pool="nights"} 0`,
		`sluice_provider_answers{pool="new"} 0`,
	)
	list[0].Pilots, list[0].Ended[0].Count = nil, 4
	expect(t, scrape(t, o), `sluice_pilots{pool="scavenger",state="joined"} 0`,
		`sluice_pilots_ended_total{how="preempted",pool="scavenger"} 4`)
}
