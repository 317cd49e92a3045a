package quantity_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
)

func TestInstantsSaturateAtNever(t *testing.T) {
	if got := quantity.Never.Add(-time.Hour); got != quantity.Never {
		t.Errorf("Never - 1h = %d", got)
	}
	if got := (quantity.Never - 5).Add(time.Second); got != quantity.Never {
		t.Errorf("Never-5ns + 1s = %d", got)
	}
	if got := quantity.Never.Sub(7); got != math.MaxInt64 {
		t.Errorf("Never - 7 = %d", got)
	}
	if got := quantity.Instant(10).Add(-4).Sub(2); got != 4 {
		t.Errorf("10-4-2 = %d", got)
	}
	if !quantity.Never.Time().IsZero() {
		t.Error("Never must be the zero time")
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 17, time.UTC)
	if got := quantity.At(now).Time(); !got.Equal(now) || got.Location() != time.UTC {
		t.Errorf("round trip: %v", got)
	}
}

func TestMulDivAgreesWithBigIntegers(t *testing.T) {
	number := rapid.OneOf(rapid.Int64Range(0, 1000), rapid.Int64Range(0, math.MaxInt64),
		rapid.Int64Range(math.MaxInt64-1000, math.MaxInt64))
	rapid.Check(t, func(t *rapid.T) {
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		c := max(1, number.Draw(t, "c"))
		want := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
		want.Add(want, big.NewInt(c-1)).Div(want, big.NewInt(c))
		if !want.IsInt64() {
			want.SetInt64(math.MaxInt64)
		}
		if got := quantity.MulDiv(a, b, c); got != want.Int64() {
			t.Fatalf("MulDiv(%d, %d, %d) = %d, want %d", a, b, c, got, want)
		}
	})
}
