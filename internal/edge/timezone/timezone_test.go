package timezone

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/civil"
	"sluice.dev/sluice/internal/core/quantity"
)

// moment reads a moment in a zone, RFC 3339 without the offset.
func moment(t *testing.T, zone, text string) time.Time {
	t.Helper()
	loc, err := Load(zone)
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.ParseInLocation("2006-01-02 15:04", text, loc)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func days(t *testing.T, s string) civil.Days {
	t.Helper()
	d, err := civil.ParseDays(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestHoursFollowTheClock(t *testing.T) {
	const form = "Mon 01-02 15:04-07:00"
	for name, c := range map[string]struct {
		zone, start, from, to, days string
		length, every               time.Duration
		look                        string
		want                        []string // begin and end by the zone's clock
	}{
		"Berlin puts its clocks forward": {zone: "Europe/Berlin", start: "2027-03-01 08:00", length: 10 * time.Hour,
			look: "2027-03-27 00:00",
			want: []string{"Sat 03-27 08:00+01:00 Sat 03-27 18:00+01:00", "Sun 03-28 08:00+02:00 Sun 03-28 18:00+02:00",
				"Mon 03-29 08:00+02:00 Mon 03-29 18:00+02:00"}},
		"Berlin puts them back": {zone: "Europe/Berlin", start: "2027-10-01 08:00", length: 10 * time.Hour, look: "2027-10-30 00:00",
			want: []string{"Sat 10-30 08:00+02:00 Sat 10-30 18:00+02:00", "Sun 10-31 08:00+01:00 Sun 10-31 18:00+01:00"}},
		"New York, on weekdays": {zone: "America/New_York", start: "2026-11-28 08:00", length: 10 * time.Hour, days: "mon-fri",
			look: "2027-03-12 00:00",
			want: []string{"Fri 03-12 08:00-05:00 Fri 03-12 18:00-05:00", "Mon 03-15 08:00-04:00 Mon 03-15 18:00-04:00"}},
		"Lord Howe's half hour": {zone: "Australia/Lord_Howe", start: "2026-12-01 08:00", length: time.Hour, look: "2027-04-03 00:00",
			want: []string{"Sat 04-03 08:00+11:00 Sat 04-03 09:00+11:00", "Sun 04-04 08:00+10:30 Sun 04-04 09:00+10:30"}},
		"India has one clock all year": {zone: "Asia/Kolkata", start: "2026-12-01 08:00", length: time.Hour, look: "2027-06-30 00:00",
			want: []string{"Wed 06-30 08:00+05:30 Wed 06-30 09:00+05:30"}},
		"UTC": {zone: "UTC", start: "2026-12-01 08:00", length: time.Hour, look: "2027-06-30 00:00",
			want: []string{"Wed 06-30 08:00+00:00 Wed 06-30 09:00+00:00"}},
		"an offset": {zone: "+05:45", start: "2026-12-01 08:00", length: time.Hour, look: "2027-06-30 00:00",
			want: []string{"Wed 06-30 08:00+05:45 Wed 06-30 09:00+05:45"}},

		"a skipped time is as much later": {zone: "Europe/Berlin", start: "2027-03-01 02:30", length: time.Hour, look: "2027-03-28 00:00",
			want: []string{"Sun 03-28 03:30+02:00 Sun 03-28 04:30+02:00", "Mon 03-29 02:30+02:00 Mon 03-29 03:30+02:00"}},
		"by half an hour on Lord Howe": {zone: "Australia/Lord_Howe", start: "2027-09-01 02:15", length: time.Hour,
			look: "2027-10-03 00:00",
			want: []string{"Sun 10-03 02:45+11:00 Sun 10-03 03:45+11:00"}},
		"it is skipped on the first day": {zone: "Europe/Berlin", start: "2027-03-28 00:00", from: "02:30", length: 150 * time.Minute,
			look: "2027-03-28 00:00",
			want: []string{"Sun 03-28 03:30+02:00 Sun 03-28 06:00+02:00", "Mon 03-29 02:30+02:00 Mon 03-29 05:00+02:00"}},
		"over midnight": {zone: "America/Nuuk", start: "2027-03-20 23:30", length: time.Hour, look: "2027-03-26 12:00",
			want: []string{"Fri 03-26 23:30-02:00 Sat 03-27 00:30-02:00", "Sun 03-28 00:30-01:00 Sun 03-28 01:30-01:00",
				"Sun 03-28 23:30-01:00 Mon 03-29 00:30-01:00"}},
		"the first of two": {zone: "Europe/Berlin", start: "2027-10-01 02:30", length: time.Hour, look: "2027-10-31 00:00",
			want: []string{"Sun 10-31 02:30+02:00 Sun 10-31 02:30+01:00", "Mon 11-01 02:30+01:00 Mon 11-01 03:30+01:00"}},
		"an end of which there are two": {zone: "Europe/Berlin", start: "2027-10-01 01:00", to: "02:30", look: "2027-10-31 00:00",
			want: []string{"Sun 10-31 01:00+02:00 Sun 10-31 02:30+02:00"}},
		"both in the skipped hour": {zone: "Europe/Berlin", start: "2027-03-01 02:15", to: "02:45", look: "2027-03-28 00:00",
			want: []string{"Sun 03-28 03:15+02:00 Sun 03-28 03:45+02:00"}},
		"begins in it and ends soon after": {zone: "Europe/Berlin", start: "2027-03-01 02:30", to: "03:10", look: "2027-03-28 00:00",
			want: []string{"Sun 03-28 03:30+02:00 Sun 03-28 04:10+02:00"}},

		"a night as time passes": {zone: "Europe/Berlin", start: "2027-03-01 22:00", length: 8 * time.Hour, look: "2027-03-27 12:00",
			want: []string{"Sat 03-27 22:00+01:00 Sun 03-28 07:00+02:00"}},
		"a night by the clock": {zone: "Europe/Berlin", start: "2027-03-01 22:00", to: "06:00", look: "2027-03-27 12:00",
			want: []string{"Sat 03-27 22:00+01:00 Sun 03-28 06:00+02:00"}},
		"the clock all round": {zone: "Europe/Berlin", start: "2027-03-01 08:00", to: "08:00", look: "2027-03-27 12:00",
			want: []string{"Sat 03-27 08:00+01:00 Sun 03-28 08:00+02:00", "Sun 03-28 08:00+02:00 Mon 03-29 08:00+02:00"}},
		"24 hours end where the next begin": {zone: "Europe/Berlin", start: "2027-03-01 08:00", length: 24 * time.Hour,
			look: "2027-03-27 12:00",
			want: []string{"Sat 03-27 08:00+01:00 Sun 03-28 08:00+02:00"}},
		"weekends": {zone: "Europe/Berlin", start: "2027-03-01 18:00", length: 62 * time.Hour, days: "fri", look: "2027-03-15 09:00",
			want: []string{"Fri 03-19 18:00+01:00 Mon 03-22 08:00+01:00", "Fri 03-26 18:00+01:00 Mon 03-29 09:00+02:00"}},
		"each second day": {zone: "Europe/Berlin", start: "2027-03-25 08:00", length: time.Hour, every: 48 * time.Hour,
			look: "2027-03-26 00:00", want: []string{"Sat 03-27 08:00+01:00 Sat 03-27 09:00+01:00",
				"Mon 03-29 08:00+02:00 Mon 03-29 09:00+02:00"}},
		"each week": {zone: "Europe/Berlin", start: "2027-03-24 08:00", length: time.Hour, every: 7 * 24 * time.Hour,
			look: "2027-03-25 00:00", want: []string{"Wed 03-31 08:00+02:00 Wed 03-31 09:00+02:00"}},
		"the first day": {zone: "Europe/Berlin", start: "2027-03-27 08:00", length: time.Hour, days: "sun",
			look: "2027-01-01 00:00", want: []string{"Sun 03-28 08:00+02:00 Sun 03-28 09:00+02:00",
				"Sun 04-04 08:00+02:00 Sun 04-04 09:00+02:00"}},
		"nineteen years on": {zone: "Europe/Berlin", start: "2027-03-01 08:00", length: time.Hour, look: "2046-03-24 12:00",
			want: []string{"Sun 03-25 08:00+02:00 Sun 03-25 09:00+02:00"}},
		"after the list": {zone: "Europe/Berlin", start: "2027-03-01 08:00", length: time.Hour, look: "2049-07-01 00:00",
			want: []string{"Thu 07-01 09:00+02:00 Thu 07-01 10:00+02:00"}}, // as in winter
		"south of the line": {zone: "America/Santiago", start: "2027-03-01 08:00", length: time.Hour, look: "2027-04-03 00:00",
			want: []string{"Sat 04-03 08:00-03:00 Sat 04-03 09:00-03:00", "Sun 04-04 08:00-04:00 Sun 04-04 09:00-04:00"}},
		"midnight skipped": {zone: "Africa/Cairo", start: "2027-04-20 00:00", length: time.Hour, look: "2027-04-29 12:00",
			want: []string{"Fri 04-30 01:00+03:00 Fri 04-30 02:00+03:00", "Sat 05-01 00:00+03:00 Sat 05-01 01:00+03:00"}},
		"a day that Samoa skipped": {zone: "Pacific/Apia", start: "2011-12-28 08:00", length: time.Hour, look: "2011-12-29 00:00",
			want: []string{"Thu 12-29 08:00-10:00 Thu 12-29 09:00-10:00", "Sat 12-31 08:00+14:00 Sat 12-31 09:00+14:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			start := moment(t, c.zone, c.start)
			h := Hours{Zone: c.zone, Days: days(t, c.days), Start: start, Every: c.every, From: c.from, To: c.to}
			if c.length != 0 {
				h.End = start.Add(c.length)
			}
			r, first, last, err := h.Calendar(start)
			if err != nil {
				t.Fatal(err)
			}
			if first < quantity.At(start) || last <= first {
				t.Errorf("the first is [%v, %v), asked for from %v", first.Time(), last.Time(), start)
			}
			at := moment(t, c.zone, c.look)
			for _, want := range c.want {
				from, to := r.After(quantity.At(at))
				got := from.Time().In(at.Location()).Format(form) + " " + to.Time().In(at.Location()).Format(form)
				if got != want {
					t.Errorf("after %v: %s, want %s", at, got, want)
				}
				at = to.Time().In(at.Location())
			}
		})
	}
}

func TestHoursThatCannotBe(t *testing.T) {
	start := moment(t, "Europe/Berlin", "2027-03-01 08:00")
	for want, h := range map[string]Hours{
		"no time zone is called":    {Zone: "Europe/Berln", Start: start, End: start.Add(time.Hour)},
		`called ""`:                 {Start: start, End: start.Add(time.Hour)},
		`called "Local"`:            {Zone: "Local", Start: start, End: start.Add(time.Hour)},
		"multiple of 24h":           {Zone: "UTC", Start: start, End: start.Add(time.Hour), Every: 36 * time.Hour},
		"it lasts 25h":              {Zone: "UTC", Start: start, End: start.Add(25 * time.Hour)},
		"comes again after 2 days":  {Zone: "UTC", Start: start, End: start.Add(49 * time.Hour), Days: days(t, "mon,wed,fri")},
		"days of the week need 24h": {Zone: "UTC", Start: start, End: start.Add(time.Hour), Days: days(t, "mon"), Every: 48 * time.Hour},
		"no time of day":            {Zone: "UTC", Start: start, End: start.Add(time.Hour), From: "25:00"},
		`"8" is no time of day`:     {Zone: "UTC", Start: start, To: "8"},
	} {
		if _, _, _, err := h.Calendar(start); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// zones of all sorts: changes of an hour, of half of one, at midnight, over the turn of the year, on the other half of the globe,
// during Ramadan, none.
var zones = []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC", "Africa/Cairo",
	"America/Nuuk", "America/Santiago", "Africa/Casablanca",
	"Asia/Gaza", "Pacific/Chatham", "Antarctica/Troll", "America/Havana", "Atlantic/Azores", "Europe/Dublin", "America/St_Johns", "+03:30"}

// plain is when a zone's clock shows a time, found by looking at it minute by minute with Go's own rules.
func plain(loc *time.Location, date time.Time, at time.Duration) time.Time {
	want := date.Add(at) // as if in UTC
	shown := func(t time.Time) time.Time {
		_, offset := t.In(loc).Zone()
		return t.Add(time.Duration(offset) * time.Second)
	}
	before := time.Time{}
	for t := want.Add(-20 * time.Hour); t.Before(want.Add(20 * time.Hour)); t = t.Add(time.Minute) {
		switch w := shown(t); {
		case w.Equal(want):
			return t
		case w.Before(want):
			before = t
		case !before.IsZero(): // skipped: as long after the last minute before it as on the wall
			return before.Add(want.Sub(shown(before)))
		}
	}
	panic("a day without that time")
}

func TestOccurrencesAreThoseOfGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		loc, err := Load(zone)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Unix(rapid.Int64Range(1767225600, 1999999999).Draw(t, "start")/60*60, 0).In(loc)
		h := Hours{Zone: zone, Start: start, From: FormatTime(time.Duration(rapid.IntRange(0, 24*60-1).Draw(t, "from")) * time.Minute)}
		if rapid.Bool().Draw(t, "some days") {
			h.Days = civil.Days(rapid.IntRange(1, int(civil.AllDays)).Draw(t, "days"))
		} else {
			h.Every = time.Duration(rapid.IntRange(1, 9).Draw(t, "every")) * 24 * time.Hour
		}
		length := time.Duration(rapid.IntRange(1, 24*60).Draw(t, "length")) * time.Minute
		byClock := rapid.Bool().Draw(t, "by clock")
		at, _ := ParseTime(h.From)
		if byClock {
			h.To = FormatTime((at + length) % (24 * time.Hour))
		} else {
			h.End = start.Add(length)
		}
		c, first, _, err := h.Calendar(start)
		if err != nil {
			t.Fatal(err)
		}

		// What it should be: day by day from the one before the start, each once.
		var begins []time.Time
		date := time.Date(start.Year(), start.Month(), start.Day()-1, 0, 0, 0, 0, time.UTC)
		until := start.AddDate(0, 0, 200)
		var ends []time.Time
		for date.Before(until.AddDate(0, 0, 20)) {
			b := plain(loc, date, at)
			on := h.Days == 0 || slices.Contains(expand(h.Days), date.Weekday())
			if !on || len(begins) == 0 && b.Before(start) {
				date = date.AddDate(0, 0, 1)
				continue
			}
			e := b.Add(length)
			if byClock {
				if x := plain(loc, date, at+length); x.After(b) {
					e = x
				}
			}
			begins, ends = append(begins, b), append(ends, e)
			date = date.AddDate(0, 0, max(1, int(h.Every/(24*time.Hour))))
		}
		for i := range len(ends) - 1 {
			if ends[i].After(begins[i+1]) {
				ends[i] = begins[i+1]
			}
		}
		if first != quantity.At(begins[0]) {
			t.Fatalf("first is %v, want %v", first.Time().In(loc), begins[0].In(loc))
		}
		for range 20 {
			look := time.Unix(rapid.Int64Range(start.Unix()-100000, until.Unix()).Draw(t, "look"), 0)
			i := slices.IndexFunc(ends, func(e time.Time) bool { return e.After(look) })
			from, to := c.After(quantity.At(look))
			if from != quantity.At(begins[i]) || to != quantity.At(ends[i]) {
				t.Fatalf("after %v: [%v, %v), want [%v, %v)", look.In(loc),
					from.Time().In(loc), to.Time().In(loc), begins[i].In(loc), ends[i].In(loc))
			}
		}
	})
}

// expand are days as Go names them.
func expand(d civil.Days) (list []time.Weekday) {
	for k := range 7 {
		if d&(1<<k) != 0 {
			list = append(list, time.Weekday((k+1)%7))
		}
	}
	return list
}

func TestTheClockShowsWhatGoShows(t *testing.T) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, zone := range zones {
		loc, err := Load(zone)
		if err != nil {
			t.Fatal(err)
		}
		c := Clock(loc, from, from)
		for at := from; at.Year() < from.Year()+Ahead; at = at.Add(7 * time.Hour) {
			if _, want := at.In(loc).Zone(); c.Offset(quantity.At(at)) != time.Duration(want)*time.Second {
				t.Fatalf("%s is off UTC by %v at %v, want %d s", zone, c.Offset(quantity.At(at)), at, want)
			}
		}
	}
}

func TestACalendarSaidAgainIsTheSame(t *testing.T) {
	start := moment(t, "Europe/Berlin", "2027-03-01 08:00")
	h := Hours{Zone: "Europe/Berlin", Start: start, End: start.Add(time.Hour)}
	a, _, _, err := h.Calendar(start.Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if b, _, _, _ := h.Calendar(start.AddDate(0, 2, 0)); a != b {
		t.Errorf("%+v, said again two months later %+v", a, b)
	}
	if c, _, _, _ := h.Calendar(start.AddDate(3, 0, 0)); a == c {
		t.Error("three years later the clock reaches no further")
	}
}

func TestTheCallersZone(t *testing.T) {
	etc := t.TempDir()
	berlin, err := Load("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, link, text string) {
		_ = os.Remove(filepath.Join(etc, name))
		var err error
		if link != "" {
			err = os.Symlink(link, filepath.Join(etc, name))
		} else if text != "" {
			err = os.WriteFile(filepath.Join(etc, name), []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	winter := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		tz              string // "-" for none
		link, file      string
		now             time.Time
		want, complains string
	}{
		"TZ":              {tz: "Europe/Berlin", now: winter.In(berlin), want: "Europe/Berlin"},
		"TZ with a colon": {tz: ":Europe/Berlin", now: winter.In(berlin), want: "Europe/Berlin"},
		"TZ is a file":    {tz: "/usr/share/zoneinfo/Europe/Berlin", now: winter.In(berlin), want: "Europe/Berlin"},
		"TZ is empty":     {now: winter, want: "UTC"},
		"TZ before localtime": {tz: "Asia/Kolkata", link: "/usr/share/zoneinfo/Europe/Berlin", now: winter.In(time.FixedZone("",
			19800)), want: "Asia/Kolkata"},
		"TZ is a rule": {tz: "EET-2EEST,M3.5.0/3,M10.5.0/4", now: winter, want: "+00:00",
			complains: "TZ=EET-2EEST,M3.5.0/3,M10.5.0/4 names no time zone"},
		"localtime": {tz: "-", link: "/usr/share/zoneinfo/Europe/Berlin", now: winter.In(berlin), want: "Europe/Berlin"},
		"localtime, from elsewhere": {tz: "-", link: "../usr/share/zoneinfo/posix/Europe/Berlin", now: winter.In(berlin),
			want: "Europe/Berlin"},
		"localtime is a copy": {tz: "-", file: "TZif2", now: winter.In(berlin), want: "+01:00",
			complains: "localtime names this machine's time zone"},
		"of another time": {tz: "-", link: "/usr/share/zoneinfo/Asia/Kolkata", now: winter.In(berlin), want: "+01:00",
			complains: "localtime"},
		"neither": {tz: "-", now: winter, want: "UTC"},
	} {
		t.Run(name, func(t *testing.T) {
			write("localtime", c.link, c.file)
			got, why := caller(c.now, etc, func(string) (string, bool) { return strings.TrimPrefix(c.tz, "-"), c.tz != "-" })
			if got != c.want || !strings.Contains(why, c.complains) || (why == "") != (c.complains == "") {
				t.Errorf("zone %q (%s), want %q (%s)", got, why, c.want, c.complains)
			}
		})
	}
	write("localtime", "", "TZif2")
	write("timezone", "", "Europe/Berlin\n")
	if got, why := caller(winter.In(berlin), etc, func(string) (string, bool) { return "", false }); got != "Europe/Berlin" || why != "" {
		t.Errorf("by /etc/timezone it is %q (%s)", got, why)
	}
}

func TestTimesOfDay(t *testing.T) {
	for s, want := range map[string]time.Duration{"00:00": 0, "08:00": 8 * time.Hour, "23:59:30": 24*time.Hour - 30*time.Second} {
		if got, err := ParseTime(s); err != nil || got != want || FormatTime(got) != s {
			t.Errorf("%s is %v (%v), and back %s", s, got, err, FormatTime(got))
		}
	}
}

func ExampleHours() {
	loc, _ := Load("Europe/Berlin")
	start := time.Date(2027, 3, 26, 8, 0, 0, 0, loc)
	h := Hours{Zone: "Europe/Berlin", Start: start, End: start.Add(time.Hour)}
	c, at, _, _ := h.Calendar(start)
	for range 3 {
		from, to := c.After(at)
		fmt.Println(from.Time().In(loc).Format("Mon 15:04 MST"))
		at = to
	}
	// Output:
	// Fri 08:00 CET
	// Sat 08:00 CET
	// Sun 08:00 CEST
}
