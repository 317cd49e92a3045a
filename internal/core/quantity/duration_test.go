package quantity_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
)

func TestParseDuration(t *testing.T) {
	for _, c := range []struct {
		in   string
		want time.Duration
	}{
		{"20ms", 20 * time.Millisecond}, {"2h", 2 * time.Hour}, {"1h30m", 90 * time.Minute}, {"1.5h", 90 * time.Minute}, {"0", 0},
		{"0s", 0},
		{"2d", 48 * time.Hour}, {"1d12h", 36 * time.Hour}, {" 90s ", 90 * time.Second}, {".5s", 500 * time.Millisecond},
		{"1-12:00:00", 36 * time.Hour}, {"02:30:00", 150 * time.Minute}, {"90:00", 90 * time.Minute}, {"0:05", 5 * time.Second},
		{"1-6", 30 * time.Hour}, {"1-6:30", 30*time.Hour + 30*time.Minute}, {"100:00:01", 100*time.Hour + time.Second},
		{"106751d", 106751 * 24 * time.Hour}, {"2562047h47m16.854775807s", math.MaxInt64},
	} {
		got, err := quantity.ParseDuration(c.in)
		if err != nil || got != c.want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", c.in, got, err, c.want)
		}
	}
}

func TestParseDurationSaysWhatWouldBeRight(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", "empty"}, {"90", "give a unit: 90s or 90m?"}, {"-5s", "never negative"}, {"2 hours", "want a number and a unit"},
		{"1:2:3:4", "too many fields"}, {"1-2:3:4:5", "too many fields"}, {"1:60", "ends at 59"}, {"1-24", "ends at 23"},
		{"1:60:00", "ends at 59"},
		{"a:00", `"a" is not a number`}, {"1-", `"" is not a number`}, {"1:-5", "not a number"}, {"1-2-3", "not a number"},
		{"1.5d", "want a number"},
		{"d", "want a number"}, {"106752d", "292 years"}, {"106751d24h", "292 years"}, {"99999999999:00:00", "292 years"},
		{"1d+1h", "want"},
		{"1d-1h", "not a number"}, {"99999999999999999999:00", "not a number"}, {"+5s", "want"},
	} {
		got, err := quantity.ParseDuration(c.in)
		if err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", c.in, got)
			continue
		}
		if !strings.Contains(err.Error(), c.want) || errkind.Of(err) != errkind.Invalid {
			t.Errorf("ParseDuration(%q): %v (%v); want it to say %q", c.in, err, errkind.Of(err), c.want)
		}
	}
}

func TestDurationRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.OneOf(rapid.Int64Range(0, int64(time.Hour)), rapid.Int64Range(0, math.MaxInt64)).Draw(t, "d"))
		if got, err := quantity.ParseDuration(d.String()); err != nil || got != d {
			t.Fatalf("Go's form of %d: %v, %v", d, got, err)
		}
		d = d.Truncate(time.Second)
		s := int64(d / time.Second)
		slurm := fmt.Sprintf("%d-%02d:%02d:%02d", s/86400, s/3600%24, s/60%60, s%60)
		if got, err := quantity.ParseDuration(slurm); err != nil || got != d {
			t.Fatalf("Slurm's form %s: %v, %v; want %v", slurm, got, err, d)
		}
	})
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"20ms", "2h", "1-12:00:00", "02:30:00", "90", "1d12h", "-1s", "1:-2", "2562048h", "9223372036854775807ns",
		"1-", "d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := quantity.ParseDuration(s)
		switch {
		case err != nil && (errkind.Of(err) != errkind.Invalid || d != 0):
			t.Fatalf("%q: %v, %v", s, d, err)
		case err == nil && d < 0:
			t.Fatalf("%q is negative: %v", s, d)
		}
	})
}
