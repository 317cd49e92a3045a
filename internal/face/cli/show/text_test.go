package show

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/face/api/apitest"
)

func TestWhen(t *testing.T) {
	now := apitest.Now()
	for s, want := range map[string]time.Duration{
		"now": 0, "12:00": 0, "13:30": 90 * time.Minute, "11:59": 24*time.Hour - time.Minute, "+20m": 20 * time.Minute,
		"1d":                        24 * time.Hour,
		"2026-03-01T14:00:00+01:00": time.Hour,
	} {
		if got, err := When(s, now); err != nil || got.Sub(now) != want {
			t.Errorf("when(%q) = %s, %v, want %s from now", s, got, err, want)
		}
	}
	for _, s := range []string{"", "noon", "25:00", "20", "-5m", "2026-03-01"} {
		if got, err := When(s, now); err == nil {
			t.Errorf("when(%q) = %s", s, got)
		}
	}
}

// FuzzWhen: whatever is accepted is a moment not before now, unless it was written with its date.
func FuzzWhen(f *testing.F) {
	for _, s := range []string{"now", "18:30", "+20m", "2026-03-01T18:00:00Z", "1-00:00:00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		now := apitest.Now()
		got, err := When(s, now)
		if err == nil && got.Before(now) && !strings.Contains(s, "T") && !strings.Contains(s, "t") {
			t.Fatalf("when(%q) = %s, before now", s, got)
		}
	})
}
