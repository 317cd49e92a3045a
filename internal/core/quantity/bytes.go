package quantity

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
)

// byteTable lists the units in the order people are shown them; the longer suffix comes first, so that Gi is not read as G.
var byteTable = [...]struct {
	suffix string
	bytes  int64
}{
	{"Ei", 1 << 60}, {"Pi", 1 << 50}, {"Ti", 1 << 40}, {"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10},
	{"E", 1e18}, {"P", 1e15}, {"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"K", 1e3},
}

// MaxFraction is how many digits after the point a size may have.
const MaxFraction = 9

// ParseBytes reads a size in bytes: a decimal number, then a unit. Ki, Mi, Gi, Ti, Pi and Ei are powers of 1024; k (or
// K), M, G, T, P and E are powers of 1000; a B may follow; no unit is bytes. "600Mi", "1.5Gi", "2G" and "4096" are
// sizes. A size that is not a whole number of bytes is rounded up. An error is of kind Invalid.
func ParseBytes(s string) (Amount, error) {
	number, unit := splitUnit(strings.TrimSpace(s))
	scale := int64(1)
	if name := strings.TrimSuffix(unit, "B"); name != "" {
		scale = 0
		for _, u := range byteTable {
			if u.suffix == name {
				scale = u.bytes
				break
			}
		}
	}
	if number == "" || scale == 0 {
		return 0, badBytes(s, hintBytes(number, unit))
	}
	whole, frac, point := strings.Cut(number, ".")
	if whole == "" || (point && (frac == "" || len(frac) > MaxFraction)) || strings.Contains(frac, ".") {
		return 0, badBytes(s, fmt.Sprintf("want digits before and after the point, at most %d after it", MaxFraction))
	}
	w, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || w > math.MaxInt64/scale {
		return 0, badBytes(s, "it is too large; the largest size is below 8Ei")
	}
	var f int64
	if frac = strings.TrimRight(frac, "0"); frac != "" {
		f, _ = strconv.ParseInt(frac, 10, 64) // at most MaxFraction digits
		f = MulDiv(f, scale, pow10(len(frac)))
	}
	if w*scale > math.MaxInt64-f {
		return 0, badBytes(s, "it is too large; the largest size is below 8Ei")
	}
	return Amount(w*scale + f), nil
}

// ParseSize reads a size as people write it: as ParseBytes, but a number without a unit is refused, other than 0: nobody who writes 16
// means 16 bytes.
func ParseSize(s string) (Amount, error) {
	a, err := ParseBytes(s)
	if number, unit := splitUnit(strings.TrimSpace(s)); err == nil && a > 0 && unit == "" {
		return 0, badBytes(s, fmt.Sprintf("give a unit: %[1]sMi or %[1]sGi? Bytes are written %[1]sB", number))
	}
	return a, err
}

// splitUnit cuts a leading decimal number from s and drops blanks behind it.
func splitUnit(s string) (number, unit string) {
	i := 0
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.') {
		i++
	}
	return s[:i], strings.TrimSpace(s[i:])
}

func badBytes(s, why string) error {
	return errkind.Errorf(errkind.Invalid, "size %q: %s", s, why)
}

// hintBytes says what would be right in place of a size without a number or with an unknown unit.
func hintBytes(number, unit string) string {
	const want = "want a number and a unit such as 600Mi, 1.5Gi, 2G or 300B"
	if number == "" {
		if strings.HasPrefix(unit, "-") {
			return "a size is never negative; " + want
		}
		return want
	}
	name := strings.TrimSuffix(strings.ToLower(strings.TrimSuffix(unit, "B")), "b")
	for _, u := range byteTable {
		if strings.ToLower(u.suffix) == name && u.suffix != unit {
			return fmt.Sprintf("the unit %q is not known; did you mean %s%s?", unit, number, u.suffix)
		}
	}
	return fmt.Sprintf("the unit %q is not known; %s", unit, want)
}

func pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}

// FormatBytes is a size for people, in binary units, rounded to at most two digits after the point: "39.25Gi", "600Mi",
// "4096" below 10Ki where it is no whole number of Ki. It is within half a percent of a; use ExactBytes where it is read
// back.
func FormatBytes(a Amount) string {
	if a < 0 {
		return strconv.FormatInt(int64(a), 10)
	}
	for _, u := range byteTable {
		if len(u.suffix) != 2 || u.bytes == 1<<60 || int64(a) < u.bytes { // a hundred times 1Ei would overflow
			continue
		}
		if u.bytes == 1<<10 && int64(a) < 10<<10 && int64(a)%u.bytes != 0 {
			break
		}
		// Hundredths of the unit, rounded to nearest.
		h := int64(a)/u.bytes*100 + (int64(a)%u.bytes*100+u.bytes/2)/u.bytes
		return hundredths(h) + u.suffix
	}
	return strconv.FormatInt(int64(a), 10)
}

func hundredths(h int64) string {
	s := strconv.FormatInt(h/100, 10)
	switch r := h % 100; {
	case r == 0:
		return s
	case r%10 == 0:
		return s + "." + strconv.FormatInt(r/10, 10)
	default:
		return fmt.Sprintf("%s.%02d", s, r)
	}
}

// ExactBytes is the shortest whole size that ParseBytes reads back as a: in the largest unit, binary or decimal, that divides a.
func ExactBytes(a Amount) string {
	best := strconv.FormatInt(int64(a), 10)
	if a <= 0 {
		return best
	}
	for _, u := range byteTable {
		if int64(a)%u.bytes != 0 {
			continue
		}
		if s := strconv.FormatInt(int64(a)/u.bytes, 10) + u.suffix; len(s) < len(best) {
			best = s
		}
	}
	return best
}
