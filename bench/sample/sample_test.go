package sample_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"sluice.dev/sluice/bench/sample"
)

// TestQuantile holds it to its definition: so many values are not above it, and with any smaller one that fails.
func TestQuantile(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		v := make([]float64, 1+draw.IntN(150))
		for i := range v {
			v[i] = float64(draw.IntN(40))
		}
		v = sample.Ordered(v)
		for _, p := range []int{1, 50, 95, 99, 100} {
			q := sample.Quantile(v, p)
			within, below := 0, 0
			for _, x := range v {
				if x <= q {
					within++
				}
				if x < q {
					below++
				}
			}
			if within*100 < p*len(v) || below*100 >= p*len(v) {
				t.Errorf("of %v the quantile %d is said to be %v", v, p, q)
			}
		}
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{5, 1}, 3}, {[]float64{9, 1, 2}, 2}} {
		if got := sample.Median(sample.Ordered(c.v)); got != c.want {
			t.Errorf("the median of %v is said to be %v, want %v", c.v, got, c.want)
		}
	}
	if got := sample.Milliseconds(1500 * time.Microsecond); got != 1.5 {
		t.Errorf("1500 us are said to be %v ms", got)
	}
}
