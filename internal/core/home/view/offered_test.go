package view

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestWhatASliceIsDoing: what is claimed there counts before all that its node has told.
func TestWhatASliceIsDoing(t *testing.T) {
	around := func(k protocol.ReservationKind, from, to time.Duration) protocol.Reservation {
		return protocol.Reservation{Kind: k, Start: now.Add(from), End: now.Add(to), Source: "ann"}
	}
	for what, c := range map[string]struct {
		reserved      []protocol.Reservation
		holder        job.ID
		broken        bool
		state, reason string
	}{
		"nothing":         {state: "idle"},
		"what is over":    {reserved: []protocol.Reservation{around(protocol.ForDrain, -time.Hour, 0)}, state: "idle"},
		"what is to come": {reserved: []protocol.Reservation{around(protocol.ForLease, time.Nanosecond, time.Hour)}, state: "idle"},
		"a drain":         {reserved: []protocol.Reservation{around(protocol.ForDrain, 0, time.Hour)}, state: "reserved", reason: "drain"},
		"two": {reserved: []protocol.Reservation{around(protocol.ForDrain, 0, 1), around(protocol.ForOwner, 0, 1)},
			state: "reserved", reason: "drain"},
		"a claim": {holder: "a", state: "running"},
		"a claim before a drain": {
			holder: "a", reserved: []protocol.Reservation{around(protocol.ForDrain, 0, time.Hour)}, state: "running",
		},
		"what can't be used": {broken: true, state: "unconfirmed", reason: "it is broken"},
		"a claim on it":      {broken: true, holder: "a", state: "unconfirmed", reason: "it is broken"},
	} {
		from := now
		if c.broken {
			from = quantity.Never
		}
		s := newStand(Config{}, []int64{1}, from)
		s.reservations, s.holder, s.holds = c.reserved, c.holder, now.Add(time.Minute)
		list := s.Offered(now)
		if len(list) != 1 {
			t.Fatalf("%s: %d slices", what, len(list))
		}
		got, running := list[0], c.state == "running"
		if got.State != c.state || got.Slice.ID != "s0" || got.Node != "n" || !strings.Contains(got.Reason, c.reason) ||
			(got.Job == "a") != running || (got.Until == s.holds) != running || running && got.Reason != "" {
			t.Errorf("%s: %+v", what, got)
		}
	}
}
