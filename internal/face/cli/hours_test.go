package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/civil"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/timezone"
	"sluice.dev/sluice/internal/face/api/apitest"
	"sluice.dev/sluice/internal/face/cli/session"
)

// TestServingHoursAreOfTheCallersZone: without --zone what repeats follows the caller's clock.
func TestServingHoursAreOfTheCallersZone(t *testing.T) {
	for name, c := range map[string]struct {
		tz   string
		want []string
	}{
		"its name is known": {"America/New_York",
			[]string{"it repeats daily 08:00 America/New_York; next: Mon 2026-03-02 08:00, Tue 2026-03-03 08:00, Wed 2026-03-04 08:00\n"}},
		"only its offset is": {"EST5EDT4,M3.2.0,M11.1.0", []string{
			"sluice: TZ=EST5EDT4,M3.2.0,M11.1.0 names no time zone: it repeats by a clock that is always at -05:00; " +
				"--zone names the time zone\n", "it repeats daily 08:00 -05:00; next: Mon 2026-03-02 08:00",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TZ", c.tz)
			loc, err := timezone.Load("America/New_York")
			if err != nil {
				t.Fatal(err)
			}
			addr := answering(t, apitest.New())
			var out, errs bytes.Buffer
			code := Run(t.Context(), Deps{
				Args: strings.Fields("reserve --all --kind serving --start 08:00 --for 10h --every 24h"),
				Options: session.Options{In: strings.NewReader(""), Out: &out, Err: &errs, Patience: -1,
					Now:    func() time.Time { return apitest.Now().In(loc).Add(2 * time.Hour) },
					Getenv: func(k string) string { return map[string]string{"SLUICE_SERVER": addr}[k] }},
			})
			if code != 0 {
				t.Fatalf("exit %d: %s", code, errs.String())
			}
			for _, want := range c.want {
				if !strings.Contains(errs.String(), want) {
					t.Errorf("%q lacks %q", errs.String(), want)
				}
			}
		})
	}
}

// TestSlicesShowWhatRepeats by the clock of its zone, over a change.
func TestSlicesShowWhatRepeats(t *testing.T) {
	fake := apitest.New()
	start := time.Date(2026, 3, 6, 13, 0, 0, 0, time.UTC)
	h := timezone.Hours{Zone: "America/New_York", Start: start, To: "18:00"}
	var err error
	if h.Days, err = civil.ParseDays("mon-fri"); err != nil {
		t.Fatal(err)
	}
	r := protocol.Reservation{ID: 3, Kind: protocol.ForServing, Every: 24 * time.Hour}
	if r.Calendar, r.Start, r.End, err = h.Calendar(apitest.Now()); err != nil {
		t.Fatal(err)
	}
	elapsed := protocol.Reservation{ID: 4, Kind: protocol.ForServing, Start: apitest.At(-36 * time.Hour),
		End: apitest.At(-35 * time.Hour), Every: 37 * time.Hour}
	fake.SliceList[0].Reservations = []protocol.Reservation{r, elapsed}
	addr := answering(t, fake)
	wide := sluice(t, addr, "", "slices", "-o", "wide").out
	for _, want := range []string{
		"3:serving +10h mon-fri 08:00-18:00 America/New_York (Fri 2026-03-06 08:00, Mon 2026-03-09 08:00, Tue 2026-03-10 08:00)",
		"4:serving 13:00:00+1h every 1d13h",
	} {
		if !strings.Contains(wide, want) {
			t.Errorf("%s\nlacks %q", wide, want)
		}
	}
	text := sluice(t, addr, "", "slices", "-o", "json").out
	for _, want := range []string{`"zone": "America/New_York"`, `"days": "mon-fri"`, `"to": "18:00"`,
		`"start": "2026-03-06T08:00:00-05:00"`, `"end": "2026-03-09T18:00:00-04:00"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\nlacks %q", text, want)
		}
	}
}
