package flow

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestTheOrderIsThatOfAPlainSort, for few and for many probes, with ties of every kind.
func TestTheOrderIsThatOfAPlainSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 2*few).Draw(t, "probes")
		utilities, probes, keys, plain := make([]int64, n), make([]Probe, n), make([]key, n), make([]int, n)
		for i := range n {
			utilities[i] = rapid.SampledFrom([]int64{-1 << 62, -3, -1, 0, 1, 2, 1 << 40}).Draw(t, "utility")
			probes[i] = Probe{Ticket: TicketID(rapid.SampledFrom([]uint64{0, 1, 2, 1<<63 - 1, 1 << 63, 1<<64 - 1}).Draw(t, "ticket")),
				Home: ZoneID(i), Epoch: uint32(i % 2)}
			keys[i], plain[i] = keyOf(utilities[i], probes[i].Ticket), i
		}
		slices.SortFunc(plain, func(i, k int) int {
			p, q := &probes[i], &probes[k]
			return cmp.Or(cmp.Compare(utilities[k], utilities[i]), cmp.Compare(p.Ticket, q.Ticket), cmp.Compare(p.Home, q.Home))
		})
		if got := orderOf(keys, probes, nil); !slices.Equal(got, plain) {
			t.Fatalf("%v, by a plain sort %v: utilities %v, probes %+v", got, plain, utilities, probes)
		}
	})
}

// TestFit is a walk from the class up.
func TestFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, c := someFragments(t, 2), Class(rapid.Byte().Draw(t, "class"))
		want, ok := Class(0), false
		for i := MaxClasses - 1; i >= int(c); i-- {
			if f[i] > 0 {
				want, ok = Class(i), true
			}
		}
		if got, is := f.Fit(c); is != ok || is && got != want {
			t.Fatalf("class %d of %v: %d %v, want %d %v", c, f, got, is, want, ok)
		}
	})
}
