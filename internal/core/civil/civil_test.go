package civil

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
)

// on is a moment in 2027, in UTC.
func on(month time.Month, d, hour int) quantity.Instant {
	return quantity.At(time.Date(2027, month, d, hour, 0, 0, 0, time.UTC))
}

// berlin is what the clocks of Berlin do in 2027.
var berlin = Pack([]Change{{Offset: time.Hour}, {on(3, 28, 1), 2 * time.Hour}, {on(10, 31, 1), time.Hour}})

func TestDays(t *testing.T) {
	for s, want := range map[string]string{
		"mon-fri": "mon-fri", "sat,sun": "sat,sun", "sun, sat": "sat,sun", "Monday": "mon", "sat-mon": "mon,sat,sun", "mon,tue": "mon,tue",
		"wed-wed": "wed", "TUE-thu,sun": "tue-thu,sun", "mon-sun": "", "": "",
	} {
		if d, err := ParseDays(s); err != nil || d.String() != want {
			t.Errorf("%q is %q (%v), want %q", s, d, err, want)
		}
	}
	for _, s := range []string{"monn", "m", "mon-", "-fri", "mon,,tue", ",", "1-5", "mon-tue-wed"} {
		if d, err := ParseDays(s); err == nil || !strings.Contains(err.Error(), "is no day of the week") {
			t.Errorf("%q is %q (%v)", s, d, err)
		}
	}
	for d := Days(1); d < AllDays; d++ {
		if back, err := ParseDays(d.String()); err != nil || back != d {
			t.Errorf("%07b is %q, which is %07b (%v)", d, d, back, err)
		}
	}
}

func TestAClockShowsItsChanges(t *testing.T) {
	changes := []Change{{0, -3 * time.Hour}, {on(3, 28, 1), -150 * time.Minute}, {on(10, 31, 1), 14 * time.Hour}}
	c := Pack(changes)
	if got := slices.Collect(c.Changes()); !slices.Equal(got, changes) {
		t.Errorf("changes are %v, want %v", got, changes)
	}
	for at, want := range map[quantity.Instant]time.Duration{
		0: -3 * time.Hour, on(3, 28, 1) - 1: -3 * time.Hour, on(3, 28, 1): -150 * time.Minute, on(12, 1, 0): 14 * time.Hour,
	} {
		if got := c.Offset(at); got != want {
			t.Errorf("at %v it is off by %v, want %v", at.Time(), got, want)
		}
	}
	if got := Clock("").Offset(on(1, 1, 0)); got != 0 {
		t.Errorf("no clock is off UTC by %v", got)
	}
	if date, since := berlin.Dated(on(3, 27, 23)); date != int64(on(3, 28, 0))/int64(day) || since != 0 {
		t.Errorf("midnight in Berlin is %v on day %d", since, date)
	}
}

func TestWhatIsWrongWithACalendar(t *testing.T) {
	good := Calendar{Zone: "Europe/Berlin", Clock: berlin, Date: 20800, Step: 1, At: 8 * time.Hour, Length: time.Hour}
	if err := good.Check(); err != nil || good.None() || !(&Calendar{}).None() {
		t.Fatalf("none %v, check %v", good.None(), err)
	}
	for want, spoil := range map[string]func(*Calendar){
		"each 0 days":              func(c *Calendar) { c.Step = 0 },
		"each 40000 days":          func(c *Calendar) { c.Step = 40000 },
		"some days":                func(c *Calendar) { c.Step, c.Days = 2, 1 },
		"time of day":              func(c *Calendar) { c.At = day },
		"begins -1ns":              func(c *Calendar) { c.At = -1 },
		"beyond all calendars":     func(c *Calendar) { c.Date = 1 << 40 },
		"it lasts 0s":              func(c *Calendar) { c.Length = 0 },
		"comes again after 1 days": func(c *Calendar) { c.Length = day + 1 },
		"comes again after 2 days": func(c *Calendar) { c.Length, c.Days = 3*day, 0b101 },
		"has 5 bytes":              func(c *Calendar) { c.Clock = "12345" },
		"off UTC by 25h":           func(c *Calendar) { c.Clock = Pack([]Change{{Offset: 25 * time.Hour}}) },
		"jumps by":                 func(c *Calendar) { c.Clock = Pack([]Change{{0, -13 * time.Hour}, {on(2, 1, 0), 12 * time.Hour}}) },
		"not after":                func(c *Calendar) { c.Clock = Pack([]Change{{0, 0}, {on(2, 1, 0), 0}, {on(1, 1, 0), 1}}) },
	} {
		c := good
		if spoil(&c); c.Check() == nil || !strings.Contains(c.Check().Error(), want) {
			t.Errorf("want %q, got %v", want, c.Check())
		}
	}
}

// TestOccurrencesAreInOrder: whatever a calendar is, a search ends; what it finds is not over, does not overlap, and the same wherever
// it is looked for from.
func TestOccurrencesAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var changes []Change
		at := on(1, 1, 0)
		for range rapid.IntRange(0, 6).Draw(t, "changes") {
			changes = append(changes, Change{at, time.Duration(rapid.IntRange(-24, 24).Draw(t, "offset")) * 30 * time.Minute})
			at = at.Add(time.Duration(rapid.IntRange(3*24*60, 20*24*60).Draw(t, "until")) * time.Minute)
		}
		c := Calendar{Clock: Pack(changes), Date: int64(on(1, 1, 0))/int64(day) + rapid.Int64Range(-3, 10).Draw(t, "date"), Step: 1,
			At: time.Duration(rapid.IntRange(0, 24*60-1).Draw(t, "at")) * time.Minute, ByClock: rapid.Bool().Draw(t, "by clock")}
		if rapid.Bool().Draw(t, "some days") {
			c.Days = Days(rapid.IntRange(1, int(AllDays)).Draw(t, "days"))
		} else {
			c.Step = rapid.Int64Range(1, 5).Draw(t, "step")
		}
		most := c.Step
		if c.Days != 0 {
			most = c.Days.apart()
		}
		c.Length = time.Duration(rapid.Int64Range(1, most*24*60).Draw(t, "length")) * time.Minute
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		var starts, ends []quantity.Instant
		for at := on(1, 1, 0).Add(-20 * day); at < on(2, 20, 0); {
			start, end := c.After(at)
			if start >= end || end <= at || len(ends) > 0 && start < ends[len(ends)-1] {
				t.Fatalf("after %v: [%v, %v)", at.Time(), start.Time(), end.Time())
			}
			starts, ends = append(starts, start), append(ends, end)
			at = end
		}
		if start, end := c.First(); start != starts[0] || end != ends[0] {
			t.Fatalf("the first is [%v, %v), want [%v, %v)", start.Time(), end.Time(), starts[0].Time(), ends[0].Time())
		}
		look := on(1, 1, 0).Add(-10 * day).Add(time.Duration(rapid.IntRange(0, 55*24*60).Draw(t, "look")) * time.Minute)
		if i := slices.IndexFunc(ends, func(e quantity.Instant) bool { return e > look }); i >= 0 {
			if start, end := c.After(look); start != starts[i] || end != ends[i] {
				t.Fatalf("after %v: [%v, %v), in order [%v, %v)", look.Time(), start.Time(), end.Time(), starts[i].Time(), ends[i].Time())
			}
		}
	})
}

// TestAnythingIsSearched: what was never checked, from another machine say, neither hangs nor breaks a search.
func TestAnythingIsSearched(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Calendar{
			Clock:   Clock(rapid.SliceOf(rapid.Byte()).Draw(t, "clock")),
			Date:    rapid.Int64().Draw(t, "date"),
			Step:    max(1, rapid.Int64().Draw(t, "step")),
			Days:    Days(rapid.IntRange(0, int(AllDays)).Draw(t, "days")),
			At:      time.Duration(rapid.Int64().Draw(t, "at")),
			Length:  time.Duration(rapid.Int64().Draw(t, "length")),
			ByClock: rapid.Bool().Draw(t, "by clock"),
		}
		_ = c.Check()
		at := quantity.Instant(rapid.Int64().Draw(t, "look"))
		if start, end := c.After(at); start != quantity.Never && (start >= end || end <= at) {
			t.Fatalf("after %d: [%d, %d)", at, start, end)
		}
	})
}

func TestACalendarEndsWhereInstantsDo(t *testing.T) {
	c := Calendar{Date: 20800, Step: 1, Length: time.Hour}
	for _, at := range []quantity.Instant{quantity.Never, quantity.Never - 1, quantity.Instant((maxDate + 1) * int64(day))} {
		if start, _ := c.After(at); start != quantity.Never {
			t.Errorf("after %d it begins at %d", at, start)
		}
	}
}

func BenchmarkAfter(b *testing.B) {
	c := Calendar{Clock: berlin, Date: 20800, Step: 1, Days: 0b11111, At: 8 * time.Hour, Length: 10 * time.Hour}
	b.ReportAllocs()
	for b.Loop() {
		c.After(on(6, 1, 12))
	}
}
