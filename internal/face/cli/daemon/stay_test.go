package daemon

import (
	"strings"
	"testing"
	"testing/synctest"
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

func TestForHowLongAHeadMayBeSilent(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "never": 0, "0": 0, "0s": 0, "10s": 10 * time.Second, "2m": 2 * time.Minute} {
		f := stayFlags{ephemeral: true, ownerless: text}
		if got, err := f.vigil(false); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{"9s": "want 10s or more", "60": "give a unit", "soon": "--ownerless",
		"-1m": "never negative"} {
		f := stayFlags{ephemeral: true, ownerless: text}
		if _, err := f.vigil(false); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	f := stayFlags{ownerless: "1m"}
	if _, err := f.vigil(false); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "give --ephemeral too") {
		t.Errorf("of a machine that stays: %v", err)
	}
	if got, err := f.vigil(true); err != nil || got != time.Minute {
		t.Errorf("of one that has joined as ephemeral: %v, %v", got, err)
	}
}

// TestAMachineHearsItsHead by whatever that says; one that stays for good never leaves for its silence.
func TestAMachineHearsItsHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, frames := time.Now(), uint64(0)
		o := outing{stay: departure.Stay{Ephemeral: true}, vigil: departure.Vigil{Limit: time.Minute},
			elapsed: func() time.Duration { return time.Since(began) }, heard: func() uint64 { return frames }}
		listen := func(d time.Duration) (gone bool) {
			for end := time.Now().Add(d); time.Now().Before(end) && !gone; time.Sleep(leaveEvery) {
				_, gone = o.alone()
			}
			return gone
		}
		for range 10 {
			if listen(59 * time.Second) {
				t.Fatal("it leaves though it heard its head within a minute")
			}
			frames++
		}
		time.Sleep(time.Hour) // it was suspended
		if listen(59 * time.Second) {
			t.Fatal("it leaves as it was suspended itself")
		}
		if !listen(2 * time.Second) {
			t.Error("it stays without its head")
		}
		o.stay.Ephemeral = false
		if listen(time.Hour) {
			t.Error("one that stays for good leaves")
		}
	})
}

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
