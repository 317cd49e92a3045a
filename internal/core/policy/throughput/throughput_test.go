package throughput_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/policy/throughput"
)

func TestIndex(t *testing.T) {
	const day = 24 * time.Hour
	of := func(left time.Duration, advantage, best int64) policy.Outlook {
		return policy.Outlook{Worth: 1 << 50, Left: left, Advantage: advantage, Best: best}
	}
	for _, c := range []struct {
		name       string
		less, more policy.Outlook
	}{
		{"a greater advantage", of(time.Minute, 1_000_000, 1_000_000), of(day, 2_000_000, 2_000_000)},
		{"a little greater, and shorter by octaves", of(day, 1_100_000, 1_100_000), of(time.Minute, 1_000_000, 1_000_000)},
		{"an octave is 64 thousandths", of(2*time.Minute, 1_063_000, 1_063_000), of(time.Minute, 1_000_000, 1_000_000)},
		{"and no more", of(time.Minute, 1_000_000, 1_000_000), of(2*time.Minute, 1_065_000, 1_065_000)},
		{"as great, and a smaller share of its best", of(time.Minute, 1_500_000, 3_000_000), of(day, 1_500_000, 1_500_000)},
		{"alike in that, and shorter", of(day+time.Minute, 1_000_000, 1_000_000), of(day, 1_000_000, 1_000_000)},
		{"over at once", of(day, 1_000_000, 1_000_000), of(0, 1_000_000, 1_000_000)},
		{"faster than any there is", of(time.Second, 1_000_000, 1_000_000), of(time.Second, 1<<40, 1<<40)},
	} {
		if less, more := (throughput.Policy{}).Index(c.less), (throughput.Policy{}).Index(c.more); less >= more || less < 0 {
			t.Errorf("%s: %d, want less than %d", c.name, less, more)
		}
	}
}
