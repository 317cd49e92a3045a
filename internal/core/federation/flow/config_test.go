package flow

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

func TestDefaultsAreThoseOfTheBook(t *testing.T) {
	c := Config{Classes: levels}.WithDefaults()
	want := Config{
		Classes: levels, Alpha: 1000, Beta: 1000, Gamma: 1000, Epsilon: 1000, Floor: 20, Period: 100 * time.Millisecond, Stale: time.Second,
		Burst: 4, Guesses: 4, Pace: 20 * time.Millisecond, Patience: time.Second, ProbeTimeout: 200 * time.Millisecond, ZoneHops: 8,
		Resplits: 2, MaxHops: 64,
		ZoneTickets: 1024, Wakes: 16, GrantTTL: 200 * time.Millisecond, HighPressure: 920, AgeWeight: 500, FitWeight: 200, ChurnWeight: 100,
	}
	if got, w := describe(c), describe(want); got != w {
		t.Errorf("defaults are\n%s, want\n%s", got, w)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if c = (Config{Period: time.Second}).WithDefaults(); c.Stale != 10*time.Second {
		t.Errorf("with digests every second a zone is stale after %v", c.Stale)
	}
}

func TestValidateListsEveryProblem(t *testing.T) {
	bad := Config{
		Classes: Classes{5, 5, -1}, Alpha: -1, Beta: 9000, Gamma: -2, Epsilon: 2_000_000, Floor: 501, Period: time.Hour * 2,
		Stale: time.Second, Burst: -1,
		Pace: 2 * time.Second, Patience: time.Second, ProbeTimeout: 1, ZoneHops: 99, Resplits: 17, MaxHops: 256, ZoneTickets: -1, Wakes: -1,
		GrantTTL: -1, HighPressure: 1001,
		AgeWeight: -1, FitWeight: -1, ChurnWeight: -1,
	}
	err := bad.Validate()
	if errkind.Of(err) != errkind.Invalid {
		t.Fatalf("it is %v", err)
	}
	for _, want := range []string{
		"level 1 of the size classes is 5, not above level 0 (5)", "level 2 of the size classes is -1; it must be positive", "Alpha is -1",
		"Beta is 9000", "Gamma is -2", "Epsilon is 2000000",
		"Floor is 501; want 1 to 500", "Period is 2h0m0s", "Burst is -1", "Pace is 2s, longer than Patience", "ProbeTimeout is 1ns",
		"Resplits is 17", "MaxHops is 256; want 1 to 255", "ZoneTickets is -1", "Wakes is -1", "GrantTTL is -1ns", "HighPressure is 1001",
		"AgeWeight is -1", "FitWeight is -1", "ChurnWeight is -1",
		"Stale is 1s, less than the Period",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it does not say %q:\n%v", want, err)
		}
	}
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, "there are 0 size classes; give 1 to 8"}, {Config{Classes: make(Classes, 9)}, "there are 9 size classes"},
		{Config{Classes: levels, MaxHops: 3, Burst: 4, ZoneHops: 3}, "Burst is 4; want 1 to 3"},
		{Config{Classes: levels, Guesses: 65}, "Guesses is 65; want 1 to 64"},
		{Config{Classes: levels, ZoneHops: 65}, "ZoneHops is 65; want 1 to 64"},
	} {
		if err := c.cfg.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %q, got %v", c.want, err)
		}
	}
}
