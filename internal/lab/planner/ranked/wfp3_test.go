package ranked

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
)

// first ranks by the rule of a cluster of 64 devices.
var wfp3First = wfp3Rule(planner.Cluster{Nodes: []planner.Node{{Devices: make([]uint8, 64)}}}).First

func TestCubeRoot(t *testing.T) {
	for n, want := range map[int64]int64{0: 0, 1: 1_000_000, 2: 1_259_921, 8: 2_000_000, 27: 3_000_000, 100: 4_641_588,
		1_000_000: 100_000_000} {
		if got := cubeRoot(n); got != want {
			t.Errorf("the cube root of %d is %d millionths, want %d", n, got, want)
		}
	}
}

// TestOrderIsThatOfTheFormula: of two tasks whose scores differ by more than a hundred thousandth, the one with the greater
// (wait / run)^3 x devices goes first, worked out in fractions.
func TestOrderIsThatOfTheFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := quantity.Instant(1000 * time.Hour)
		draw := func() (book.Entry, *big.Rat) {
			wait, run := rapid.Int64Range(0, 1e6).Draw(t, "wait"), rapid.Int64Range(1, 1e5).Draw(t, "run")
			n := rapid.Int32Range(1, 64).Draw(t, "devices")
			e := book.Entry{Since: now.Add(-time.Duration(wait) * time.Second)}
			e.Task = planner.Task{Devices: n, Classes: 1, Run: &[planner.MaxClasses]time.Duration{time.Duration(run) * time.Second}}
			x := big.NewRat(wait, run)
			x3 := new(big.Rat).Mul(x, new(big.Rat).Mul(x, x))
			return e, x3.Mul(x3, big.NewRat(int64(n), 1))
		}
		a, x := draw()
		b, y := draw()
		fx, _ := x.Float64()
		fy, _ := y.Float64()
		if math.Abs(fx-fy) < 1e-5*max(fx, fy) {
			return
		}
		if (wfp3First(now, &a) < wfp3First(now, &b)) != (x.Cmp(y) > 0) {
			t.Fatalf("scores %v and %v have ranks %d and %d", fx, fy, wfp3First(now, &a), wfp3First(now, &b))
		}
	})
}

// TestNobodyWaitsForEver: a long task with short ones that keep coming is served in the end, and a task that nobody knows the
// run of comes last.
func TestNobodyWaitsForEver(t *testing.T) {
	old := book.Entry{Task: planner.Task{Devices: 1, Classes: 1, Run: &[planner.MaxClasses]time.Duration{24 * time.Hour}}}
	young := book.Entry{Task: planner.Task{Devices: 1, Classes: 1, Run: &[planner.MaxClasses]time.Duration{time.Hour}}}
	unknown := book.Entry{Task: planner.Task{Devices: 1, Classes: 1}}
	now := quantity.Instant(50 * time.Hour)
	young.Since = now.Add(-2 * time.Hour)
	if wfp3First(now, &old) >= wfp3First(now, &young) {
		t.Error("50 hours of 24 count less than 2 of 1")
	}
	if wfp3First(now, &unknown) <= wfp3First(now, &young) {
		t.Error("an unknown run goes first")
	}
}
