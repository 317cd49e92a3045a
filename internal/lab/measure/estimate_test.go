package measure

import (
	"math"
	"testing"
)

func TestMeanOverSeeds(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		values []float64
		want   Estimate
	}{
		{nil, Estimate{nan, nan, nan, 0}},
		{[]float64{nan}, Estimate{nan, nan, nan, 0}},
		{[]float64{3}, Estimate{3, nan, nan, 1}},
		{[]float64{1, nan, 3}, Estimate{2, 2 - 12.7062047, 2 + 12.7062047, 2}},          // sd sqrt 2, divided by sqrt 2
		{[]float64{2, 4, 4, 4, 5, 5, 7, 9}, Estimate{5, 5 - 1.787488, 5 + 1.787488, 8}}, // sd 2.13809, t 2.364624
		{[]float64{.5, .5, .5}, Estimate{.5, .5, .5, 3}},
	} {
		if got := Mean(c.values); !alike(got, c.want) {
			t.Errorf("Mean(%v) = %v, want %v", c.values, got, c.want)
		}
	}
	// The seeds differ by much more than the mechanisms do; only pairs show that one is better by 1.
	a, b := []float64{10, 200, 3000}, []float64{9, 199, 2999}
	if got := Difference(a, b); !alike(got, Estimate{1, 1, 1, 3}) {
		t.Errorf("Difference = %v", got)
	}
}

func alike(a, b Estimate) bool {
	near := func(x, y float64) bool { return math.IsNaN(x) && math.IsNaN(y) || math.Abs(x-y) < 1e-5 }
	return near(a.Mean, b.Mean) && near(a.Low, b.Low) && near(a.High, b.High) && a.N == b.N
}

// The quantile is where the integral of Student's density from the middle is .475.
func TestStudent(t *testing.T) {
	for _, df := range []int{1, 2, 5, 10, 11, 12, 19, 30, 99, 1000} {
		n := float64(df)
		up, _ := math.Lgamma((n + 1) / 2)
		down, _ := math.Lgamma(n / 2)
		density := func(x float64) float64 { return math.Exp(up-down-(n+1)/2*math.Log1p(x*x/n)) / math.Sqrt(n*math.Pi) }
		const steps = 20000
		h := student(df) / steps
		sum := density(0) + density(student(df))
		for i := 1; i < steps; i++ {
			sum += density(float64(i)*h) * float64(2+2*(i&1))
		}
		if got := sum * h / 3; math.Abs(got-.475) > 2e-6 {
			t.Errorf("%d degrees of freedom: %g of the distribution is between 0 and %g, want .475", df, got, student(df))
		}
	}
}
