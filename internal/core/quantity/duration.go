package quantity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

// ParseDuration reads a length of time in the forms of Go ("20ms", "2h", "1h30m"), with d for days of 24 hours in front
// ("2d", "1d12h"), and in those of Slurm: "minutes:seconds", "hours:minutes:seconds", "days-hours",
// "days-hours:minutes" and "days-hours:minutes:seconds" ("02:30:00", "1-12:00:00"). A bare number other than 0 is
// refused, because Slurm takes it for minutes and others for seconds. It is never negative. An error is of kind
// Invalid.
func ParseDuration(s string) (time.Duration, error) {
	t := strings.TrimSpace(s)
	switch {
	case t == "":
		return 0, badDuration(s, "it is empty; "+wantDuration)
	case t == "0":
		return 0, nil
	case strings.HasPrefix(t, "-"):
		return 0, badDuration(s, "a length of time is never negative here")
	case strings.ContainsAny(t, ":-"):
		return parseSlurm(s, t)
	case digits(t):
		return 0, badDuration(s, fmt.Sprintf("give a unit: %ss or %sm?", t, t))
	}
	var days time.Duration
	if d, rest, ok := strings.Cut(t, "d"); ok {
		n, err := strconv.ParseInt(d, 10, 64)
		if !digits(d) || err != nil || n > int64(math.MaxInt64/day) {
			return 0, badDuration(s, wantDuration)
		}
		days, t = time.Duration(n)*day, rest
		if t == "" {
			return days, nil
		}
	}
	if c := t[0]; c != '.' && (c < '0' || c > '9') {
		return 0, badDuration(s, wantDuration)
	}
	d, err := time.ParseDuration(t)
	if err != nil || d > math.MaxInt64-days {
		return 0, badDuration(s, wantDuration)
	}
	return days + d, nil
}

const (
	day          = 24 * time.Hour
	wantDuration = "want a number and a unit such as 20ms, 90s, 2h or 1d12h, or Slurm's D-HH:MM:SS, at most 292 years"
)

func badDuration(s, why string) error {
	return errkind.Errorf(errkind.Invalid, "duration %q: %s", s, why)
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// parseSlurm reads t, which has a colon or a dash. Behind the first field every field has its usual bound.
func parseSlurm(s, t string) (time.Duration, error) {
	units := []time.Duration{time.Hour, time.Minute, time.Second}
	d, clock, dashed := strings.Cut(t, "-")
	fields := strings.Split(t, ":")
	if dashed {
		units = append([]time.Duration{day}, units...)
		fields = append([]string{d}, strings.Split(clock, ":")...)
	} else if len(fields) == 2 {
		units = units[1:]
	}
	if len(fields) > len(units) {
		return 0, badDuration(s, "it has too many fields; want Slurm's D-HH:MM:SS, HH:MM:SS or MM:SS")
	}
	var sum time.Duration
	for i, f := range fields {
		n, err := strconv.ParseInt(f, 10, 64)
		if !digits(f) || err != nil {
			return 0, badDuration(s, fmt.Sprintf("%q is not a number; want Slurm's D-HH:MM:SS, HH:MM:SS or MM:SS", f))
		}
		if i > 0 && n >= int64(units[i-1]/units[i]) {
			return 0, badDuration(s, fmt.Sprintf("%q is too large for its field, which ends at %d", f, units[i-1]/units[i]-1))
		}
		if n > int64((math.MaxInt64-sum)/units[i]) {
			return 0, badDuration(s, wantDuration)
		}
		sum += time.Duration(n) * units[i]
	}
	return sum, nil
}
