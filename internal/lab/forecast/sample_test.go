package forecast

import (
	"testing"

	"sluice.dev/sluice/internal/core/quantity"
)

// TestStretchesReachFromEndToEnd: the first begins with the log and the last ends with it, as what was last is most like what comes next.
func TestStretchesReachFromEndToEnd(t *testing.T) {
	for _, days := range []int{6, 10, 28, 31} {
		l := &Log{To: quantity.Instant(days) * quantity.Instant(Day), Devices: make([]Device, 2)}
		all := l.sample(1, size{stretchDays, 2})
		if first, last := all[0], all[len(all)-1]; len(all) < 2 || first.first != 0 || last.first+last.days != days {
			t.Errorf("%d days: %+v", days, all)
		}
	}
}
