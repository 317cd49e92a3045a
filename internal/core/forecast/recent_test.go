package forecast

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
)

// The bound is the most times the margin, rounded up, and never less than the most.
func TestRecent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Recent{Margin: rapid.Int64Range(One, 5*One).Draw(t, "margin")}
		most := quantity.Amount(rapid.Int64Range(0, math.MaxInt64).Draw(t, "most"))
		want := new(big.Int).Mul(big.NewInt(int64(most)), big.NewInt(r.Margin))
		want.Add(want, big.NewInt(One-1)).Div(want, big.NewInt(One))
		if !want.IsInt64() {
			want.SetInt64(math.MaxInt64)
		}
		if got := r.Upper(most); got != quantity.Amount(want.Int64()) || got < most {
			t.Fatalf("%d x %d: %d, want %s", most, r.Margin, got, want)
		}
	})
}
