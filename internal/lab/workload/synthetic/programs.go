package synthetic

import (
	"math"
	"strconv"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/workload"
)

const mib = quantity.Amount(1) << 20

// Programs are n training programs as MISO measured 32 on the slices of an A100-40GB (SoCC'22), without its data.
//
// Speeds follow Amdahl's law: with a share p of the time that scales with the compute slices, a part of c of 7 runs at
// 1/(1-p+7p/c). p is spread evenly over [.04, .72], which gives mean speeds .36, .55, .68 and .79 on 1, 2, 3 and 4 compute
// slices where MISO has .36, .54, .70 and .77, and the range .20 to .81 on the smallest where it has .08 to .80.
//
// Peaks lie between 2.2 and 18.6 GiB as published, 21 of 32 within the smallest slice and 28 within two, as many as ran
// there. Within each of the three groups they are spread evenly by logarithm. That memory and speed are independent is our
// assumption.
func Programs(n int) []workload.Program {
	list := make([]workload.Program, n)
	for i := range list {
		u := (float64(i) + .5) / float64(n)
		p := .04 + .68*u
		list[i].Name = "synthetic" + strconv.Itoa(i)
		for _, c := range []int{1, 2, 3, 4, 7} {
			list[i].Speeds[c] = int64(math.Round(1000 / (1 - p + 7*p/float64(c))))
		}
		list[i].Peak = peak(scattered(i, n))
	}
	return list
}

// scattered is a place in (0, 1) for the i-th of n that has nothing to do with i's own order: multiples of the golden ratio.
func scattered(i, n int) float64 {
	// Rank the fractional part among those of all n, so that every n-th of the range has exactly one.
	const golden = 0.6180339887498949
	mine, rank := frac(golden*float64(i+1)), 0
	for k := range n {
		if frac(golden*float64(k+1)) < mine {
			rank++
		}
	}
	return (float64(rank) + .5) / float64(n)
}

func frac(x float64) float64 { return x - math.Floor(x) }

// peak is the quantile function of the peaks, in bytes.
func peak(u float64) quantity.Amount {
	const one, two = 21. / 32, 28. / 32
	between := func(lo, hi, share float64) quantity.Amount {
		return quantity.Amount(lo*math.Pow(hi/lo, share)*1024) * mib
	}
	switch {
	case u < one:
		return between(2.2, 4.5, u/one)
	case u < two:
		return between(5, 9.2, (u-one)/(two-one))
	default:
		return between(10, 18.6, (u-two)/(1-two))
	}
}

// Shapes are n shapes of memory over progress. The mean use over the peak has the published quantiles of GenTD26's pods over
// their lives: .48, .63 and .94 at 5, 50 and 95%, straight in between. Ours are: a tenth of the progress warms up at half
// the steady use, a tenth bursts to the peak.
func Shapes(n int) []workload.Shape {
	const warm, burst = .1, .1
	list := make([]workload.Shape, n)
	for i := range list {
		u := (float64(i) + .5) / float64(n)
		mean := .48 + (.63-.48)*(u-.05)/.45
		if u > .5 {
			mean = .63 + (.94-.63)*(u-.5)/.45
		}
		mean = min(max(mean, .4), .945)
		// mean = warm steady/2 + (1-warm-burst) steady + burst
		steady := (mean - burst) / (warm/2 + 1 - warm - burst)
		list[i] = workload.Shape{
			Warm: int64(500 * steady), Steady: int64(math.Round(1000 * steady)),
			WarmShare: 1000 * warm, BurstShare: 1000 * burst,
		}
	}
	return list
}
