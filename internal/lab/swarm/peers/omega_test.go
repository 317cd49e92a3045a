package peers

import (
	"math"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// conflicts is the share of commits that are in conflict.
func conflicts(t *testing.T, gates int, load int64, period time.Duration) (share, busy float64) {
	o := Bare(Omega(), 10, 100, 4, load)
	o.Gates, o.Period, o.Network.Delay = gates, period, 100*time.Microsecond
	o.From, o.Until = quantity.Instant(10*time.Second), quantity.Instant(30*time.Second)
	c := Play(t, o)
	return float64(c.Sent[omegaConflict]) / float64(c.Sent[0]), Used(&c)
}

// TestConflictsGrow: with load, with the age of the copies, and with the number of schedulers (EuroSys 2013, sections 4 and 5: the
// conflict fraction). One scheduler conflicts with nobody.
func TestConflictsGrow(t *testing.T) {
	grow := func(what string, shares ...float64) {
		t.Logf("%s: %.4f", what, shares)
		for i := 1; i < len(shares); i++ {
			if shares[i] < 1.2*shares[i-1] {
				t.Errorf("%s: conflicts %.4f do not grow", what, shares)
			}
		}
	}
	first := func(share, _ float64) float64 { return share }
	const ms = time.Millisecond
	grow("load", first(conflicts(t, 8, 500_000, 100*ms)), first(conflicts(t, 8, 700_000, 100*ms)), first(conflicts(t, 8, 900_000, 100*ms)))
	grow("age", first(conflicts(t, 8, 700_000, 20*ms)), first(conflicts(t, 8, 700_000, 100*ms)), first(conflicts(t, 8, 700_000, 300*ms)))
	grow("schedulers", first(conflicts(t, 2, 700_000, 100*ms)), first(conflicts(t, 4, 700_000, 100*ms)),
		first(conflicts(t, 16, 700_000, 100*ms)))
	if share, _ := conflicts(t, 1, 700_000, 100*ms); share > 1e-3 {
		t.Errorf("one scheduler alone has %.4f conflicts", share)
	}
}

// TestConflictsAreAsManyAsChance says: a commit draws one of f nodes with room, and within the age a of the copy the others have filled
// some of these since. On nodes of four slices only the last free slice of a node is lost to them. The share of nodes with exactly one
// free slice, at use x of independent slices, is 4x^3(1-x)/(1-x^4), and each is hit at the rate of the others' draws.
func TestConflictsAreAsManyAsChance(t *testing.T) {
	const period, gates = 50 * time.Millisecond, 8
	for _, load := range []int64{500_000, 700_000} {
		share, x := conflicts(t, gates, load, period)
		room := 1 - math.Pow(x, 4) // nodes with room
		last := 4 * x * x * x * (1 - x) / room
		rate := 4 * x / room * (gates - 1) / gates // the others' draws of a node with room, a second: 4x tasks a node
		want := last * rate * (period.Seconds()/2 + 2e-4)
		if share < want/1.5 || share > want*1.5 {
			t.Errorf("load %.1f: %.5f of the commits conflict, chance says about %.5f", float64(load)/1e6, share, want)
		}
	}
}

// TestSchedulersDecideInParallel: what is locked by nobody is used by all (section 3.4): eight gates place eight times what one does.
func TestSchedulersDecideInParallel(t *testing.T) {
	rate := func(gates int) float64 {
		o := Bare(Omega(), 1, 400, 8, 900_000)
		o.Gates, o.Decision, o.Network.Delay, o.Flow.Patience = gates, 5*time.Millisecond, time.Millisecond, time.Second
		o.From, o.Until = quantity.Instant(5*time.Second), quantity.Instant(15*time.Second)
		c := Play(t, o)
		return Rate(&c)
	}
	if one, eight := rate(1), rate(8); one < 180 || one > 202 || eight < 7.5*one {
		t.Errorf("one gate places %.0f a second, eight place %.0f", one, eight)
	}
}
