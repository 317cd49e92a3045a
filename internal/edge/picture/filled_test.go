package picture

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

func TestFilled(t *testing.T) {
	used := func(start, end, a, b float64) status.Span {
		return status.Span{Kind: protocol.ForLease, Start: at(start), End: at(end), UsedStart: at(a), UsedEnd: at(b)}
	}
	other := func(a, b float64) status.Span {
		return status.Span{Kind: protocol.ForDrain, Start: at(a), End: at(b)}
	}
	never := status.Span{Kind: protocol.ForLease, Start: at(0), End: at(10)}
	running := status.Span{Kind: protocol.ForLease, Start: at(90), End: at(120), UsedStart: at(91)}
	for name, c := range map[string]struct {
		spans           []status.Span
		used, available time.Duration
	}{
		"nothing known":              {nil, 0, 0},
		"only a window":              {[]status.Span{window(0, 100, 0)}, 0, 100},
		"known from 40":              {[]status.Span{window(40, 100, 0)}, 0, 60},
		"a lease, its waiting apart": {[]status.Span{used(0, 100, 10, 60)}, 50, 100},
		"a lease that never started": {[]status.Span{never}, 0, 100},
		"one that still runs":        {[]status.Span{window(0, 90, 0), running}, 9, 100},
		"reserved by others":         {[]status.Span{used(0, 50, 0, 50), other(50, 100)}, 50, 50},
		"without an end": {[]status.Span{used(0, 50, 0, 50),
			{Kind: protocol.ForForeign, Start: at(60), End: quantity.Never}}, 50, 60},
		"used although reserved": {[]status.Span{used(0, 50, 0, 50), other(40, 100)}, 50, 50},
		"a place for our own rigid job": {[]status.Span{used(0, 50, 0, 50), {Kind: protocol.ForRigid, Start: at(50), End: at(100)}}, 50,
			100},
		"used twice counts once": {[]status.Span{used(0, 50, 0, 50), used(20, 80, 20, 80)}, 80, 100},
		"used beyond the lease":  {[]status.Span{used(10, 50, 0, 90), window(0, 10, 0)}, 40, 100},
		"outside the picture":    {[]status.Span{used(-50, -10, -50, -10), used(150, 160, 150, 160)}, 0, 100},
	} {
		t.Run(name, func(t *testing.T) {
			want := Share{c.used * time.Second, c.available * time.Second}
			if got := Filled(status.SliceHistory{Spans: c.spans}, at(0), at(100)); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
	if (Share{}).Ratio() != 0 || (Share{1, 4}).Ratio() != 0.25 {
		t.Error("Ratio is not Used/Available")
	}
}

// TestFilledEqualsCounting compares with a count of nanoseconds, one by one.
func TestFilledEqualsCounting(t *testing.T) {
	others := []protocol.ReservationKind{protocol.ForDrain, protocol.ForServing, protocol.ForOwner}
	kinds := append([]protocol.ReservationKind{0, protocol.ForLease, protocol.ForRigid, protocol.ForHold}, others...)
	rapid.Check(t, func(t *rapid.T) {
		var h status.SliceHistory
		draw := func(label string) quantity.Instant {
			return quantity.Instant(rapid.Int64Range(1, 60).Draw(t, label))
		}
		for range rapid.IntRange(0, 7).Draw(t, "spans") {
			s := status.Span{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Start: draw("start"), End: draw("end")}
			if s.Kind == protocol.ForLease && rapid.Bool().Draw(t, "started") {
				s.UsedStart = draw("used start")
				if rapid.Bool().Draw(t, "ended") {
					s.UsedEnd = draw("used end")
				}
			}
			h.Spans = append(h.Spans, s)
		}
		from, to := draw("from"), draw("to")
		var want Share
		for x := from; x < to; x++ {
			used, other, known := false, false, false
			for _, s := range h.Spans {
				in := s.Start <= x && x < s.End
				known = known || s.Start <= x
				ran := s.UsedStart != 0 && s.UsedStart <= x && (s.UsedEnd == 0 || x < s.UsedEnd)
				used = used || in && ran && s.Kind == protocol.ForLease
				other = other || in && slices.Contains(others, s.Kind)
			}
			if used {
				want.Used++
			}
			if known && (used || !other) {
				want.Available++
			}
		}
		got := Filled(h, from, to)
		if got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		if got.Used > got.Available || got.Ratio() < 0 || got.Ratio() > 1 {
			t.Fatalf("share out of bounds: %+v", got)
		}
	})
}
