package strict

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// parseFraction reads a decimal such as 0.01 or 1% as parts of scale, which is a power of ten. It is exact: what would
// have to be rounded is refused.
func parseFraction(s string, scale int64) (int64, bool) {
	s, percent := strings.CutSuffix(s, "%")
	if percent {
		scale /= 100
	}
	whole, frac, dotted := strings.Cut(s, ".")
	frac = strings.TrimRight(frac, "0")
	digits := len(strconv.FormatInt(scale, 10)) - 1
	if len(frac) > digits || len(whole) > 3 || whole == "" && frac == "" && !dotted || strings.Trim(whole+frac, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(whole+frac+strings.Repeat("0", digits-len(frac)), 10, 64)
	return n, err == nil
}

// FormatFraction writes n parts of scale as a decimal.
func FormatFraction(n, scale int64) string {
	digits := len(strconv.FormatInt(scale, 10)) - 1
	s := fmt.Sprintf("%d.%0*d", n/scale, digits, n%scale)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// FormatDuration writes a length of time exactly and without idle zeros: 2h, 1d12h, 1.5s.
func FormatDuration(d time.Duration) string {
	const day = 24 * time.Hour
	out := ""
	if d >= 2*day {
		if out = strconv.FormatInt(int64(d/day), 10) + "d"; d%day == 0 {
			return out
		}
		d %= day
	}
	s := d.String()
	if rest, ok := strings.CutSuffix(s, "m0s"); ok {
		s = rest + "m"
	}
	if rest, ok := strings.CutSuffix(s, "h0m"); ok {
		s = rest + "h"
	}
	return out + s
}
