package alarm_test

import (
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestAlarms against a list that is searched.
func TestAlarms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a alarm.Heap[int]
		slots, want := make([]int, 12), map[int]quantity.Instant{}
		for range rapid.IntRange(1, 80).Draw(t, "changes") {
			i := rapid.IntRange(0, len(slots)-1).Draw(t, "thing")
			if at := quantity.Instant(rapid.IntRange(0, 9).Draw(t, "at")); at > 0 {
				a.Set(&slots[i], i, at)
				want[i] = at
			} else {
				a.Set(&slots[i], i, quantity.Never)
				delete(want, i)
			}
			least := quantity.Never
			for _, at := range want {
				least = min(least, at)
			}
			if a.Next() != least || a.Len() != len(want) {
				t.Fatalf("next is %v of %d, want %v of %d", a.Next(), a.Len(), least, len(want))
			}
		}
		for range len(want) {
			least := a.Next()
			i, ok := a.Due(least)
			if !ok || want[i] != least || slots[i] != 0 {
				t.Fatalf("%d is due at %v (%v), its alarm is %v, its slot %d", i, least, ok, want[i], slots[i])
			}
			delete(want, i)
		}
		if _, ok := a.Due(quantity.Never); ok {
			t.Fatal("an alarm is left over")
		}
	})
}
