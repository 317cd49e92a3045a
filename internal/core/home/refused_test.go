package home

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/trp"
)

// TestARefusedExtensionLeavesTheClaimAsItWas, whether or not it was sold with a peak.
func TestARefusedExtensionLeavesTheClaimAsItWas(t *testing.T) {
	for _, peak := range []trp.Peak{{}, {Mean: 100, Deviation: 10}} {
		d, token, end := leasedDesk(t)
		j := d.Book().Job("a")
		j.Claims()[0].Peak = peak
		j.Claims()[0].Range.To = 5
		c, st := &j.Claims()[0], j.ClaimSet().State(token)
		was := *c
		var out protocol.Out
		more := trp.Peak{Mean: 300, Deviation: 20}
		d.Claims().Extend(end.Add(-time.Second), j, c, st, job.Range{To: 10}, end.Add(time.Minute), more, &out)
		if c.Range.To != 10 || c.End != end.Add(time.Minute) || (peak != trp.Peak{}) != (c.Peak.Mean == 300) {
			t.Fatalf("sold with %+v: the claim is not extended: %+v", peak, c)
		}
		d.Claims().NotExtended(&protocol.Message{Kind: protocol.Refused, Job: "a", Token: token}, &protocol.Refusal{Ask: st.Extension()},
			&out)
		if c := j.Claims()[0]; c.Range != was.Range || c.End != was.End || c.Peak != was.Peak || c.Plan.Extended != was.Plan.Extended {
			t.Errorf("sold with %+v: after a refusal the claim is %+v, was %+v", peak, c, was)
		}
	}
}
