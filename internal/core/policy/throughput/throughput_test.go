package throughput_test

import (
	"math"
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
		{"below a second too", of(2*time.Millisecond, 1_000_000, 1_000_000), of(time.Millisecond, 1_000_000, 1_000_000)},
		{"over at once", of(day, 1_000_000, 1_000_000), of(0, 1_000_000, 1_000_000)},
		{"faster than any there is", of(time.Second, 1_000_000, 1_000_000), of(time.Second, 1<<40, 1<<40)},
	} {
		if less, more := (throughput.Policy{}).Index(c.less), (throughput.Policy{}).Index(c.more); less >= more || less < 0 ||
			more >= 1<<29 {
			t.Errorf("%s: %d, want less than %d, and that below 2^29", c.name, less, more)
		}
	}
}

// TestBrevityCountsByOctaves, with the logarithm in between: a line from one power of two to the next is never above it, and less than a
// tenth of an octave below.
func TestBrevityCountsByOctaves(t *testing.T) {
	const octave = 64 * 1 << 8
	index := func(worth int64) int64 {
		return throughput.Policy{}.Index(policy.Outlook{Worth: worth, Left: time.Millisecond, Best: 1})
	}
	for worth := int64(1); worth < 1<<60; worth += worth/7 + 1 {
		want := (1 + math.Log2(float64(worth))) * octave
		if got := float64(index(worth)); got > want+1 || got < want-octave/10 {
			t.Errorf("a worth of %d counts %v, its logarithm %v", worth, got, want)
		}
	}
}
