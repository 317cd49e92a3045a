package synthetic

import (
	"math"
	"time"

	"sluice.dev/sluice/internal/core/prng"
)

// Duration is a distribution of lengths of time.
type Duration interface {
	Draw(s *prng.Stream) time.Duration
}

// Fixed is always the same.
type Fixed time.Duration

// Draw gives it.
func (f Fixed) Draw(*prng.Stream) time.Duration { return time.Duration(f) }

// Uniform over [From, To).
type Uniform struct{ From, To time.Duration }

// Draw gives one.
func (u Uniform) Draw(s *prng.Stream) time.Duration {
	return u.From + time.Duration(s.Float64()*float64(u.To-u.From))
}

// LogNormal has a normal logarithm. Published fits (natural logarithm of seconds): Philly 6.79 and 2.16 in all and 6.99 and
// 2.02 for September and October, openb 6.57 and 1.91. None of them has the published tail: see Mixture.
type LogNormal struct {
	Median time.Duration
	// Sigma is the deviation of the natural logarithm.
	Sigma float64
}

// Draw gives one, at most 30 years.
func (l LogNormal) Draw(s *prng.Stream) time.Duration {
	const most = 30 * 365 * 24 * time.Hour
	d := float64(l.Median) * math.Exp(l.Sigma*s.Normal())
	if d > float64(most) {
		return most
	}
	return time.Duration(d)
}

// Mixture draws from one of its parts, by weight.
type Mixture []Part

// Part of a mixture.
type Part struct {
	Weight float64
	Of     Duration
}

// Draw gives one.
func (m Mixture) Draw(s *prng.Stream) time.Duration {
	sum := 0.
	for _, p := range m {
		sum += p.Weight
	}
	u := s.Float64() * sum
	for _, p := range m[:len(m)-1] {
		if u < p.Weight {
			return p.Of.Draw(s)
		}
		u -= p.Weight
	}
	return m[len(m)-1].Of.Draw(s)
}

// PhillyDurations is the Philly trace of September and October 2017 as log-normal parts, one for each stretch of its
// histogram: up to 60 s (8.3% of the jobs), quick failures of 60 to 130 s (12.5%), up to 1,100 s (21.4%), the recurring
// jobs of 1,100 to 2,900 s (33.0%), up to a day (21.9%), and the tail (2.9%) that holds most of the GPU-time. Each part has
// the median and the deviation of the logarithms in its stretch; it is not cut at the stretch's ends. The published
// quantiles are 49, 243, 1,486, 2,869, 10,538 and 268,985 s at 5, 25, 50, 75, 90 and 99%, the mean 13,669 s; the mixture's
// mean is 12,600 s.
func PhillyDurations() Mixture {
	return Mixture{
		part(.0834, 3.652, .510), part(.1245, 4.314, .173), part(.2137, 6.205, .624),
		part(.3301, 7.552, .276), part(.2193, 8.979, .841), part(.0290, 12.351, .804),
	}
}

// PhillySingles is the same of the 50,188 jobs with one GPU, whose tail is half as frequent: quantiles 53, 275, 1,477, 2,753,
// 7,236 and 113,808 s at 5, 25, 50, 75, 90 and 99%, mean 8,267 s. The mixture's mean is 7,450 s.
func PhillySingles() Mixture {
	return Mixture{
		part(.0741, 3.811, .333), part(.1294, 4.311, .170), part(.2185, 6.215, .620),
		part(.3459, 7.552, .276), part(.2183, 8.915, .787), part(.0138, 12.309, .865),
	}
}

// part is log-normal by its mean and deviation of the natural logarithm of seconds.
func part(weight, mu, sigma float64) Part {
	return Part{weight, LogNormal{time.Duration(math.Exp(mu) * 1e9), sigma}}
}
