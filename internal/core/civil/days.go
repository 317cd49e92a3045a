package civil

import (
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

// Days is a set of days of the week, a bit for each, Monday first. None means every day.
type Days uint8

// AllDays has all seven.
const AllDays Days = 1<<7 - 1

var dayNames = [...]string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// ParseDays reads days such as "mon-fri" or "sat,sun". A range may go over the week's end: "sat-mon".
func ParseDays(s string) (d Days, err error) {
	if s == "" {
		return 0, nil
	}
	for part := range strings.SplitSeq(strings.ToLower(s), ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			to = from
		}
		a, b := dayOf(from), dayOf(to)
		if a < 0 || b < 0 {
			return 0, errkind.Errorf(errkind.Invalid,
				"%q is no day of the week: want mon, tue, wed, thu, fri, sat, sun, joined by commas, or ranges such as mon-fri",
				strings.TrimSpace(part))
		}
		for k := a; ; k = (k + 1) % 7 {
			if d |= 1 << k; k == b {
				break
			}
		}
	}
	if d == AllDays {
		return 0, nil
	}
	return d, nil
}

// dayOf is the number of a day, Monday 0; -1 if there is none of that name. A day may be written out.
func dayOf(s string) int {
	s = strings.TrimSpace(s)
	for k, n := range dayNames {
		if s == n || len(s) > len(n) && strings.ToLower(time.Weekday((k+1)%7).String()) == s {
			return k
		}
	}
	return -1
}

// String is what ParseDays reads: ranges of three and more days are joined.
func (d Days) String() string {
	var parts []string
	for k := 0; k < 7; k++ {
		if d&(1<<k) == 0 {
			continue
		}
		end := k
		for end < 6 && d&(1<<(end+1)) != 0 {
			end++
		}
		if end-k < 2 {
			parts = append(parts, dayNames[k])
			continue
		}
		parts = append(parts, dayNames[k]+"-"+dayNames[end])
		k = end
	}
	return strings.Join(parts, ",")
}

// has says whether a day, counted from 1970-01-01, is one of them.
func (d Days) has(date int64) bool {
	return d == 0 || d&(1<<weekday(date)) != 0
}

// weekday is the number of a day, Monday 0: 1970-01-01 was a Thursday.
func weekday(date int64) int64 { return ((date+3)%7 + 7) % 7 }

// apart is how many days lie at least between two of them.
func (d Days) apart() int64 {
	least := int64(7)
	for a := range int64(7) {
		for b := int64(1); b < 7; b++ {
			if d.has(a) && d.has(a+b) {
				least = min(least, b)
				break
			}
		}
	}
	return least
}
