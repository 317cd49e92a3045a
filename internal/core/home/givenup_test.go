package home

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestGivenUpClaimsCount against the side that kept the subjob from ending.
func TestGivenUpClaimsCount(t *testing.T) {
	const minutes = 12
	for name, c := range map[string]struct {
		says            protocol.Observation
		until           time.Duration // it says so that long after the lease's end
		barred          bool          // its node offers nothing of the slice meanwhile
		away            time.Duration // the home starts again that long after the lease's end, from which it counts then
		failures, kills int
		said            string
	}{
		"nothing is heard": {kills: 1, said: "reported nothing"},
		"it is stored for too long": {
			says: protocol.Observation{Storing: true}, until: minutes * time.Minute, failures: 1, said: "still being stored 10m0s after",
		},
		"the store is away": {
			says: protocol.Observation{Storing: true}, until: minutes * time.Minute, barred: true,
			kills: 1, said: "still being stored 10m0s after",
		},
		"it is stored, and nothing more is heard": {
			says: protocol.Observation{Storing: true}, until: time.Minute, kills: 1, said: "reported nothing",
		},
		"its processes remain": {
			says: protocol.Observation{Remains: true}, until: minutes * time.Minute, barred: true, failures: 1, said: "outlived",
		},
		"it is stored after the daemon was away": {
			says: protocol.Observation{Storing: true}, until: time.Minute, away: 30 * time.Minute, kills: 1, said: "reported nothing",
		},
		"they remain after it was away": {
			says: protocol.Observation{Remains: true}, until: time.Minute, away: 30 * time.Minute, kills: 1, said: "outlived",
		},
		"they do, and nothing more is heard": {
			says: protocol.Observation{Remains: true}, until: time.Minute, kills: 1, said: "outlived",
		},
	} {
		for most, state := range map[int]job.State{2: job.Waiting, 1: job.Failed} {
			d := newDesk(Config{MaxKills: most})
			d.barred = c.barred
			var out protocol.Out
			now := quantity.Instant(1e12)
			spec := &job.Spec{
				Name: "a", Queue: "q", Kind: job.Items, Total: 20, Grid: 1, Parallelism: 2, PerUnit: time.Second, MaxFailures: most,
				Deadline: quantity.Never, Safe: trp.Table{Bounds: []int64{20}, Least: [][]quantity.Amount{{1 << 20}}},
			}
			adoption := &protocol.Adoption{Since: 1, Spec: spec, At: now}
			d.Step(now, protocol.Message{Kind: protocol.Adopt, Job: "a", Epoch: 1, Generation: 1, Body: adoption}, &out)
			end := now.Add(time.Minute)
			for seq := range uint64(2) { // side by side: they count once
				of := job.Range{From: 10 * int64(seq), To: 10 * int64(seq+1)}
				d.Apply(protocol.Fact{Kind: protocol.Claimed, Job: "a", Token: job.Token{Epoch: 1, Seq: seq + 1}, At: now,
					Body: &protocol.Sale{Placement: protocol.Placement{Slice: "s", Range: of, Start: now, End: end}, Node: "n"}})
			}
			if c.away > 0 {
				end = end.Add(c.away)
				now = end
				d.Ledger.Recover(end, &out)
			}
			j := d.Book().Job("a")
			for len(j.Claims()) > 0 && now < end.Add(time.Hour) {
				now = now.Add(time.Second)
				for i := range j.Claims() {
					if said := c.says; now <= end.Add(c.until) {
						token := j.Claims()[i].Token
						d.Ledger.Step(now, &protocol.Message{Kind: protocol.Report, Token: token, Job: "a", Body: &said}, &out)
					}
				}
				d.Step(now, protocol.Message{Kind: protocol.Tick}, &out)
			}
			l := j.Learned()
			if l.Failures != c.failures || l.Kills != c.kills || !strings.Contains(l.LastDetail, c.said) {
				t.Errorf("%s: %d failures, %d kills: %q; want %d, %d and %q",
					name, l.Failures, l.Kills, l.LastDetail, c.failures, c.kills, c.said)
			}
			if v := j.Ending().Verdict(); v.State != state || state == job.Failed && !strings.Contains(v.Reason, c.said) {
				t.Errorf("%s: one of %d: %v", name, most, v)
			}
		}
	}
}
