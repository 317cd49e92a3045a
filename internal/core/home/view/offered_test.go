package view

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestWhatASliceIsDoingAsItsNodeTold: what is reserved now counts, and what runs before all else.
func TestWhatASliceIsDoingAsItsNodeTold(t *testing.T) {
	around := func(k protocol.ReservationKind, from, to time.Duration) protocol.Reservation {
		return protocol.Reservation{Kind: k, Start: now.Add(from), End: now.Add(to), Source: "ann"}
	}
	lease := around(protocol.ForLease, -time.Minute, time.Minute)
	lease.Source, lease.Job = "", "a"
	for what, c := range map[string]struct {
		reserved      []protocol.Reservation
		broken        bool
		state, reason string
		runs          job.ID
		until         quantity.Instant
	}{
		"nothing":         {state: "idle"},
		"what is over":    {reserved: []protocol.Reservation{around(protocol.ForDrain, -time.Hour, 0)}, state: "idle"},
		"what is to come": {reserved: []protocol.Reservation{around(protocol.ForLease, time.Nanosecond, time.Hour)}, state: "idle"},
		"a drain":         {reserved: []protocol.Reservation{around(protocol.ForDrain, 0, time.Hour)}, state: "reserved", reason: "drain"},
		"a lease":         {reserved: []protocol.Reservation{lease}, state: "running", runs: "a", until: lease.End},
		"a drain behind it": {reserved: []protocol.Reservation{lease, around(protocol.ForDrain, 0, time.Hour)},
			state: "running", runs: "a", until: lease.End},
		"a drain ahead of it": {reserved: []protocol.Reservation{around(protocol.ForDrain, -time.Hour, time.Hour), lease},
			state: "running", runs: "a", until: lease.End},
		"one that can't be used": {broken: true, state: "unconfirmed", reason: "it is broken"},
	} {
		from := now
		if c.broken {
			from = quantity.Never
		}
		s := newStand(Config{}, []int64{1}, from)
		s.reservations = c.reserved
		list := s.Offered(now)
		if len(list) != 1 {
			t.Fatalf("%s: %d slices", what, len(list))
		}
		got := list[0]
		if got.State != c.state || got.Job != c.runs || got.Until != c.until || got.Slice.ID != "s0" || got.Node != "n" ||
			!strings.Contains(got.Reason, c.reason) || c.state == "running" && got.Reason != "" {
			t.Errorf("%s: %+v", what, got)
		}
	}
}
