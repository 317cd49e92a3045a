package node

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/civil"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// hours are 08:00 to 18:00 by a clock that is put forward by an hour on the third day, on all days but Mondays.
func hours(t *testing.T) protocol.Reservation {
	t.Helper()
	days, err := civil.ParseDays("tue-sun") // t0 is Monday, 1970-01-12
	if err != nil {
		t.Fatal(err)
	}
	const midnight = quantity.Instant(11 * 24 * time.Hour)
	c := civil.Calendar{
		Zone:  "Test/Zone",
		Clock: civil.Pack([]civil.Change{{Offset: time.Hour}, {At: midnight.Add(49 * time.Hour), Offset: 2 * time.Hour}}),
		Date:  12, Step: 1, Days: days, At: 8 * time.Hour, Length: 10 * time.Hour,
	}
	r := protocol.Reservation{Kind: protocol.ForServing, Slice: "a", Every: 24 * time.Hour, Calendar: c}
	r.Start, r.End = c.First()
	return r
}

// TestServingHoursFollowTheClock: what is advertised ends at 08:00 also on the day after clocks have changed, and after a restart.
func TestServingHoursFollowTheClock(t *testing.T) {
	w := booted(t)
	r := hours(t)
	w.step(reserve("1", r))
	w.recorded(protocol.ReservationMade)
	w.step(reserve("2", r))
	w.recorded()
	same(t, "said twice", told(w.must(protocol.Reply)), "1 stood")
	for _, c := range []struct {
		date   int
		closes time.Duration // in UTC
	}{
		{12, 7 * time.Hour}, {13, 6 * time.Hour}, {14, 6 * time.Hour},
		{18, 30 * time.Hour}, // the 18th is a Monday, and open until the next day
	} {
		day := quantity.Instant(time.Duration(c.date) * 24 * time.Hour)
		w.now = day.Add(time.Hour)
		w.restart()
		w.inventory()
		g := w.gaps("a")[0]
		same(t, "closes", g.End.Sub(day), c.closes)
		same(t, "for", g.Until, protocol.ForServing)
	}
}

func TestACalendarThatIsNoneIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(*protocol.Reservation){
		"another first day": func(r *protocol.Reservation) { r.Start, r.End = r.Start.Add(24*time.Hour), r.End.Add(24*time.Hour) },
		"longer than a day": func(r *protocol.Reservation) { r.Calendar.Length = 25 * time.Hour },
		"without a step":    func(r *protocol.Reservation) { r.Calendar.Step = 0 },
		"a broken clock":    func(r *protocol.Reservation) { r.Calendar.Clock += "x" },
	} {
		w := booted(t)
		r := hours(t)
		spoil(&r)
		w.step(reserve(name, r))
		if err := w.must(protocol.Reply).Body.(*protocol.Receipt).Err; errkind.Of(err) != errkind.Invalid {
			t.Errorf("%s: %v", name, err)
		}
		w.recorded()
		w.step(othersHold("a", r)) // the inventory says it: the slice is closed
		same(t, name, len(w.gaps("a")), 0)
	}
	w := booted(t)
	w.step(othersHold("a", hours(t)))
	same(t, "one that is", w.gaps("a")[0].End, hours(t).Start)
}
