package command

import (
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Short is a length of time in its two largest units: 65µs, 850ms, 42s, 3m20s, 1h5m, 2d3h.
func Short(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	switch {
	case d < time.Millisecond:
		return sign + d.Round(time.Microsecond).String()
	case d < time.Second:
		return sign + d.Round(time.Millisecond).String()
	case d < time.Minute:
		return sign + d.Round(100*time.Millisecond).String()
	}
	d = d.Round(time.Second)
	const day = 24 * time.Hour
	units := []struct {
		name string
		is   time.Duration
	}{{"d", day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}
	for i, u := range units {
		if d >= u.is {
			out := fmt.Sprintf("%s%d%s", sign, d/u.is, u.name)
			if rest := d % u.is / units[i+1].is; rest > 0 {
				out += fmt.Sprintf("%d%s", rest, units[i+1].name)
			}
			return out
		}
	}
	return "0s"
}

// Size is an amount of memory for people.
func Size(n int64) string {
	if n == 0 {
		return ""
	}
	return quantity.FormatBytes(quantity.Amount(n))
}
