package departure

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// look is one look at an owner.
type look struct {
	at   time.Duration
	sign Sign
	over bool
}

func TestVigil(t *testing.T) {
	const s = time.Second
	every := func(from, to time.Duration, sign Sign) (list []look) {
		for at := from; at < to; at += s {
			list = append(list, look{at, sign, false})
		}
		return list
	}
	over := func(at time.Duration, sign Sign) []look { return []look{{at, sign, true}} }
	for name, c := range map[string]struct {
		limit time.Duration
		looks []look
	}{
		"silent from the start":     {10 * s, slices.Concat(every(100*s, 110*s, Silent), over(110*s, Silent))},
		"heard again":               {10 * s, slices.Concat(every(0, 9*s, Silent), every(9*s, 15*s, Heard), every(15*s, 24*s, Silent))},
		"silent after it was heard": {10 * s, slices.Concat(every(0, 9*s, Heard), every(9*s, 18*s, Silent), over(18*s, Silent))},
		"it was suspended":          {10 * s, slices.Concat(every(0, 9*s, Silent), every(9*s+time.Hour, 19*s+time.Hour, Silent))},
		"late, but no stall":        {4 * s, []look{{0, Silent, false}, {3 * s, Silent, false}, {6 * s, Silent, true}}},
		"never":                     {0, every(0, 3600*s, Silent)},
		"a count that begins anew":  {10 * s, slices.Concat(every(100*s, 105*s, Silent), every(0, 9*s, Silent))},
		"silent on":                 {s, slices.Concat(every(0, s, Silent), over(s, Silent), over(2*s, Silent), every(3*s, 4*s, Heard))},
		"out of sight":              {10 * s, slices.Concat(every(0, 10*s, Blind), over(10*s, Blind))},
		"out of sight, and it takes a moment until it is heard": {10 * s, slices.Concat(every(0, 4*s, Silent), every(4*s, 13*s, Blind),
			every(13*s, 19*s, Silent), every(19*s, 20*s, Heard))},
		"gone, and out of sight now and then": {10 * s, slices.Concat(every(0, 6*s, Silent), every(6*s, 12*s, Blind),
			every(12*s, 16*s, Silent), every(16*s, 20*s, Blind), over(20*s, Silent))},
	} {
		t.Run(name, func(t *testing.T) {
			v := Vigil{Limit: c.limit}
			for i, l := range c.looks {
				if _, over := v.Look(l.at, l.sign); over != l.over {
					t.Errorf("look %d at %v: over is %v", i, l.at, over)
				}
			}
		})
	}
}

// TestAVigilIsNeverWrong: it ends only after a time of its limit in which the owner was silent and looks came in time, and then it does.
func TestAVigilIsNeverWrong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := Vigil{Limit: time.Duration(rapid.Int64Range(int64(LeastOwnerless), int64(time.Hour)).Draw(t, "limit"))}
		now := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "start"))
		v.Look(now, Silent)
		since := now
		for range rapid.IntRange(1, 100).Draw(t, "looks") {
			gap := time.Duration(rapid.Int64Range(0, int64(Stall)+int64(time.Second)).Draw(t, "gap"))
			sign := Silent
			if rapid.IntRange(0, 9).Draw(t, "heard") == 0 {
				sign = Heard
			}
			if now += gap; sign == Heard || gap > Stall {
				since = now
			}
			if missed, over := v.Look(now, sign); missed != now-since || over != (missed >= v.Limit) {
				t.Fatalf("silent for %v, over %v; want %v", missed, over, now-since)
			}
		}
	})
}
