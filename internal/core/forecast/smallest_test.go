package forecast

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
)

func TestSmallestIsThatOfASortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(
			rapid.Custom(func(t *rapid.T) quantity.Amount { return quantity.Amount(rapid.Int64Range(-3, 30).Draw(t, "x")) }), 1, 40).Draw(t,
			"list")
		k := rapid.IntRange(-1, len(list)+3).Draw(t, "k")
		sorted := slices.Sorted(slices.Values(list))
		if got, want := smallest(slices.Clone(list), k), sorted[max(0, min(k, len(list))-1)]; got != want {
			t.Fatalf("number %d of %v: %d, want %d", k, list, got, want)
		}
	})
	if smallest([]quantity.Amount(nil), 3) != 0 {
		t.Error("of none")
	}
}
