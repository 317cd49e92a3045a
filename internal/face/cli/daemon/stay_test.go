package daemon

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/departure"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/face/cli/show"
)

func TestHowLongAMachineSaysThatItIsThere(t *testing.T) {
	now := time.Now()
	flags := func(ephemeral bool, until string) stayFlags {
		return stayFlags{ephemeral: ephemeral, until: until, handOver: span(10 * time.Second), grace: span(25 * time.Second)}
	}
	for _, c := range []struct {
		flags stayFlags
		until quantity.Instant
	}{
		{flags(true, ""), 0},
		{flags(false, ""), 0},
		{flags(true, "2h"), quantity.At(now.Add(2 * time.Hour))},
		{flags(true, "+90m"), quantity.At(now.Add(90 * time.Minute))},
		{flags(true, now.Add(time.Hour).UTC().Format(time.RFC3339Nano)), quantity.At(now.Add(time.Hour))},
	} {
		s, err := c.flags.stay(true, false, now)
		if err != nil {
			t.Errorf("%+v: %v", c.flags, err)
			continue
		}
		if off := s.By(now).Until - c.until; s.Ephemeral != c.flags.ephemeral || off.Sub(0).Abs() > time.Minute {
			t.Errorf("%+v: %+v, want until %v", c.flags, s, c.until.Time())
		}
	}
	f := flags(false, "")
	if s, err := f.stay(false, true, now); s != nil || err != nil {
		t.Errorf("a start that says nothing: %+v, %v", s, err)
	}
	f = flags(true, "2020-01-01T00:00:00Z")
	if s, err := f.stay(true, true, now); err != nil || s.Until.Year() != 2020 {
		t.Errorf("a machine that has joined may not start when its time is over: %+v, %v", s, err)
	}
	bad := flags(true, "yesterday")
	bad.grace = span(10 * time.Second)
	for _, c := range []struct {
		flags stayFlags
		want  []string
	}{
		{bad, []string{"--grace 10s: want more than --hand-over, which is 10s", `--until: "yesterday" is no moment`}},
		{flags(false, "2h"), []string{"--until 2h: only a machine that leaves for good has an end: give --ephemeral too"}},
		{flags(true, "2020-01-01T00:00:00Z"), []string{"--until 2020-01-01T00:00:00Z: ", "is over, by"}},
		{flags(true, "now"), []string{"is over"}},
		{flags(true, "10s"), []string{"kept for the hand-over"}},
		{flags(true, "20000h"), []string{"from now"}},
	} {
		_, err := c.flags.stay(true, false, now)
		for _, want := range c.want {
			if err == nil || errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %q", c.flags, err, want)
			}
		}
	}
}

func span(d time.Duration) show.Span { return show.Span{Length: show.Length(d)} }

func TestWhatIsSaidOfAnEnd(t *testing.T) {
	at := quantity.At(time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC))
	for want, s := range map[string]departure.Stay{
		"": {}, "once this daemon ends": {Ephemeral: true}, "at 2026-12-01T08:00:00": {Ephemeral: true, Until: at},
	} {
		if got := leaves(s); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%+v: %q", s, got)
		}
	}
}
