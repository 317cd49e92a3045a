package timeline

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/civil"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

const (
	minute = 60 * s
	hour   = 60 * minute
	day    = 24 * hour
)

// serving is closed time by a calendar, as the edge makes it.
func serving(c civil.Calendar) protocol.Reservation {
	r := protocol.Reservation{ID: 1, Kind: protocol.ForServing, Every: time.Duration(c.Step) * 24 * time.Hour, Calendar: c}
	r.Start, r.End = c.First()
	return r
}

func TestSound(t *testing.T) {
	good := serving(civil.Calendar{Date: 20, Step: 1, At: 8 * time.Hour, Length: 25 * time.Hour, Days: 0b10001})
	for name, c := range map[string]struct {
		spoil func(*protocol.Reservation)
		want  bool
	}{
		"by a calendar":              {func(*protocol.Reservation) {}, true},
		"once":                       {func(r *protocol.Reservation) { r.Every, r.Calendar = 0, civil.Calendar{} }, true},
		"longer than every":          {func(r *protocol.Reservation) { r.Calendar = civil.Calendar{} }, false},
		"another start":              {func(r *protocol.Reservation) { r.Start++ }, false},
		"another end":                {func(r *protocol.Reservation) { r.End-- }, false},
		"another step":               {func(r *protocol.Reservation) { r.Every *= 2 }, false},
		"a calendar that is not":     {func(r *protocol.Reservation) { r.Calendar.Length = 0 }, false},
		"no end":                     {func(r *protocol.Reservation) { r.Calendar, r.End = civil.Calendar{}, quantity.Never }, false},
		"an instant":                 {func(r *protocol.Reservation) { r.End = r.Start }, false},
		"days that lie close by":     {func(r *protocol.Reservation) { r.Calendar.Days = 0b11 }, false},
		"backwards, by elapsed time": {func(r *protocol.Reservation) { r.Calendar, r.Every = civil.Calendar{}, -1 }, false},
	} {
		r := good
		if c.spoil(&r); Sound(&r) != c.want {
			t.Errorf("%s: sound is %v", name, !c.want)
		}
	}
}

// TestGapsFollowTheClock: at 08:00 by the clock, which is put forward on day 22.
func TestGapsFollowTheClock(t *testing.T) {
	clock := civil.Pack([]civil.Change{{Offset: time.Hour}, {At: 22*day + hour, Offset: 2 * time.Hour}})
	var tl Timeline
	tl.Close(serving(civil.Calendar{Zone: "Europe/Berlin", Clock: clock, Date: 20, Step: 1, At: 8 * time.Hour, Length: 10 * time.Hour}))
	gaps, more := tl.Gaps(21*day, 72*time.Hour, time.Second, nil)
	want := []protocol.Gap{
		{Start: 21 * day, End: 21*day + 7*hour, Until: protocol.ForServing},
		{Start: 21*day + 17*hour, End: 22*day + 6*hour, Until: protocol.ForServing},
		{Start: 22*day + 16*hour, End: 23*day + 6*hour, Until: protocol.ForServing},
		{Start: 23*day + 16*hour, End: 24*day + 6*hour, Until: protocol.ForServing},
	}
	if len(gaps) != len(want) || !more {
		t.Fatalf("gaps %v, more %v; want %v", gaps, more, want)
	}
	for i := range want {
		if gaps[i] != want[i] {
			t.Errorf("gap %d is %v, want %v", i, gaps[i], want[i])
		}
	}
	for at, want := range map[quantity.Instant]quantity.Instant{
		22 * day: 22*day + 6*hour, 22*day + 6*hour - 1: 22*day + 6*hour, 22*day + 6*hour: 23*day + 6*hour, 22*day + 7*hour: 23*day + 6*hour,
	} {
		if next := Next(&tl.Closed()[0], at); next != want {
			t.Errorf("after %d next at %d, want %d", at, next, want)
		}
	}
}

// TestGapsAreWhatACalendarLeaves: minute by minute.
func TestGapsAreWhatACalendarLeaves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		change := civil.Change{At: 20*day + quantity.Instant(rapid.IntRange(0, 10*24*60).Draw(t, "change"))*minute,
			Offset: time.Duration(rapid.IntRange(-3, 3).Draw(t, "offset")) * 30 * time.Minute}
		c := civil.Calendar{
			Clock: civil.Pack([]civil.Change{{}, change}), Date: 20 + rapid.Int64Range(0, 5).Draw(t, "date"), Step: 1,
			At:     time.Duration(rapid.IntRange(0, 24*60-1).Draw(t, "at")) * time.Minute,
			Length: time.Duration(rapid.IntRange(1, 24*60).Draw(t, "length")) * time.Minute,
			Days:   civil.Days(rapid.IntRange(0, 127).Draw(t, "days")), ByClock: rapid.Bool().Draw(t, "by clock"),
		}
		var tl Timeline
		r := serving(c)
		tl.Close(r)
		now := 20*day + quantity.Instant(rapid.IntRange(0, 5*24*60).Draw(t, "now"))*minute
		gaps, _ := tl.Gaps(now, 240*time.Hour, time.Nanosecond, nil)
		carved := CarveAll([]protocol.Gap{{Start: now, End: now + 10*day}}, &r)
		for at := now; at < now+10*day; at += 7 * minute {
			start, end := c.After(at)
			closed := start <= at && at < end
			for name, list := range map[string][]protocol.Gap{"gaps": gaps, "carved": carved} {
				open := false
				for _, g := range list {
					open = open || g.Start <= at && at < g.End
				}
				if open == closed {
					t.Fatalf("%s: %v at %d is open %v, and closed [%d, %d)", name, list, at, open, start, end)
				}
			}
		}
	})
}
