package filing_test

import (
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestWhatIsOverLeavesInItsTime, the oldest at once where there are too many, and again until it is confirmed.
func TestWhatIsOverLeavesInItsTime(t *testing.T) {
	tray := filing.New[int](filing.Config{Keep: 10 * time.Second, Most: 3}, time.Second)
	second := func(n int) quantity.Instant { return quantity.Instant(n * 1e9) }
	var sheets []*filing.Sheet[int]
	for i := range 4 {
		sheets = append(sheets, tray.Put(nil, i, second(i)))
	}
	if tray.Put(sheets[0], 0, second(50)) != sheets[0] || tray.Len() != 4 {
		t.Fatal("a job lies in the tray twice")
	}
	for _, step := range []struct {
		at   int
		want []int
		next int
	}{
		{5, []int{0}, 6},   // of four one is too many
		{6, []int{0}, 8},   // nobody confirmed it
		{8, []int{0}, 11},  // the next repetition is at 12
		{11, []int{1}, 12}, // its time has come
		{12, []int{0, 1, 2}, 13},
	} {
		got := tray.Due(second(step.at))
		slices.Sort(got)
		if !slices.Equal(got, step.want) || tray.Wake() != second(step.next) {
			t.Fatalf("at %d s: %v leave and the next look is at %v, want %v and %d s", step.at, got, tray.Wake(), step.want, step.next)
		}
	}
	for _, s := range sheets {
		tray.Drop(s)
	}
	if tray.Len() != 0 || tray.Wake() != quantity.Never || tray.Due(second(100)) != nil {
		t.Errorf("%d are left", tray.Len())
	}
	var none *filing.Tray[int]
	if s := none.Put(nil, 1, 0); s != nil || none.Drop(s) != nil || none.Due(second(1)) != nil || none.Wake() != quantity.Never ||
		none.Len() != 0 {
		t.Error("without an archive something leaves")
	}
}
