package measure

import "math"

// Estimate of a mean from one value for each seed, with its 95% confidence interval by Student's t. The ends are NaN with
// fewer than two values, and all three with none.
type Estimate struct {
	Mean, Low, High float64
	// N values were there; those that could not be measured are left out.
	N int
}

// Mean over seeds, NaN values left out.
func Mean(values []float64) Estimate {
	var n, sum float64
	for _, v := range values {
		if !math.IsNaN(v) {
			n, sum = n+1, sum+v
		}
	}
	mean := ratio(sum, n)
	e := Estimate{Mean: mean, Low: math.NaN(), High: math.NaN(), N: int(n)}
	if n < 2 {
		return e
	}
	var squares float64
	for _, v := range values {
		if !math.IsNaN(v) {
			squares += (v - mean) * (v - mean)
		}
	}
	half := student(int(n)-1) * math.Sqrt(squares/(n-1)/n)
	e.Low, e.High = mean-half, mean+half
	return e
}

// Difference is the mean of a[i]-b[i], values of two mechanisms on the same seeds: what the seeds have in common cancels.
// The two differ if the interval does not hold 0. Slices of different lengths are compared as far as the shorter goes.
func Difference(a, b []float64) Estimate {
	d := make([]float64, min(len(a), len(b)))
	for i := range d {
		d[i] = a[i] - b[i]
	}
	return Mean(d)
}

// studentTable is the .975 quantile of Student's t for 1 to 10 degrees of freedom.
var studentTable = [...]float64{12.7062047362, 4.3026527297, 3.1824463053, 2.7764451052, 2.5705818356, 2.4469118511, 2.3646242516,
	2.3060041352, 2.2621571628, 2.2281388520}

// student is the .975 quantile of Student's t, to five digits: the table, then the expansion in powers of 1/df
// (Abramowitz and Stegun, 26.7.5).
func student(df int) float64 {
	if df <= len(studentTable) {
		return studentTable[df-1]
	}
	const z = 1.959963984540054
	n, z2 := float64(df), z*z
	g1 := (z2 + 1) * z / 4
	g2 := ((5*z2+16)*z2 + 3) * z / 96
	g3 := (((3*z2+19)*z2+17)*z2 - 15) * z / 384
	g4 := ((((79*z2+776)*z2+1482)*z2-1920)*z2 - 945) * z / 92160
	return z + (g1+(g2+(g3+g4/n)/n)/n)/n
}
