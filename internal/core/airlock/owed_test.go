package airlock

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// TestOwed: what was let go of counts until the host shows it, for two seconds at most.
func TestOwed(t *testing.T) {
	type look struct {
		after          time.Duration
		used, let, owe quantity.Amount
	}
	const tick = 10 * time.Millisecond
	for name, looks := range map[string][]look{
		"shown later": {{tick, 97, 0, 0}, {tick, 97, 5, 5}, {tick, 97, 0, 5}, {tick, 95, 0, 3}, {tick, 92, 0, 0},
			{tick, 97, 0, 0}},
		"shown at once": {{tick, 97, 0, 0}, {tick, 92, 5, 0}},
		"never shown":   {{tick, 97, 0, 0}, {tick, 97, 5, 5}, {time.Second, 97, 0, 5}, {time.Second, 97, 0, 0}},
		"others take it": {{tick, 97, 0, 0}, {tick, 97, 5, 5}, {tick, 94, 0, 2}, {tick, 99, 0, 2}, {tick, 97, 0, 2},
			{tick, 94, 0, 0}},
		"others grow before":       {{tick, 97, 0, 0}, {tick, 98, 5, 5}, {tick, 93, 0, 0}},
		"one more":                 {{tick, 97, 0, 0}, {tick, 97, 5, 5}, {tick, 95, 4, 7}, {tick, 88, 0, 0}},
		"more falls than was owed": {{tick, 97, 0, 0}, {tick, 97, 5, 5}, {tick, 80, 0, 0}, {tick, 80, 3, 3}},
		"a while between two":      {{tick, 97, 0, 0}, {time.Second, 97, 5, 0}},
	} {
		var o Owed
		now := t0
		o.Look(now, looks[0].used, 0)
		for i, l := range looks {
			now = now.Add(l.after)
			if got := o.Look(now, l.used, l.let); got != l.owe {
				t.Errorf("%s, look %d: %d are owed, want %d", name, i, got, l.owe)
			}
		}
	}
}
