package synthetic

import (
	"math"
	"strconv"
	"time"

	"sluice.dev/sluice/internal/core/prng"
)

// Process is a point process of arrivals.
type Process interface {
	// Start begins in the stationary state.
	Start(s prng.Stream) Clock
}

// Clock tells arrivals one after the other.
type Clock interface {
	// Gap to the next arrival in seconds.
	Gap() float64
}

// Poisson has independent gaps; its index of dispersion is 1 at every scale. The Azure log of conversations is near it
// (gap .18 s, CV 1.1).
type Poisson struct{ MeanGap time.Duration }

// Start begins the process.
func (p Poisson) Start(s prng.Stream) Clock { return &poisson{s, p.MeanGap.Seconds()} }

type poisson struct {
	s    prng.Stream
	mean float64
}

func (p *poisson) Gap() float64 { return p.mean * p.s.Exp() }

// Bursty is a Markov-modulated Poisson process: a steady part and independent sources that switch on and off. Its index of
// dispersion (variance over mean of the counts in windows of a length) grows with the length.
type Bursty struct {
	MeanGap time.Duration
	Sources []Source
}

// Source is one on-off source.
type Source struct {
	// Share of all arrivals that come from it.
	Share float64
	// Relax is its time of relaxation: how long a burst is remembered.
	Relax time.Duration
	// Variance of its rate over the square of the whole rate.
	Variance float64
}

// on is the share of time that the source is on: with rate Share/on while on, its variance is Share^2 (1-on)/on.
func (s Source) on() float64 { return s.Share * s.Share / (s.Share*s.Share + s.Variance) }

// Philly is the process fitted to the published index of dispersion of Philly's arrivals: 10, 58, 161 and 867 in windows of
// a minute, ten minutes, an hour and a day; this one has 10, 61, 161 and 911. Mean gap 94 s (September and October 2017).
// That many jobs come at once is by hand of sweeps and schedules of their owners; an on-off source is our model of it.
func Philly() Bursty {
	return Bursty{MeanGap: 94 * time.Second, Sources: []Source{
		{Share: .3, Relax: 300 * time.Second, Variance: 12.5},
		{Share: .5, Relax: 6 * time.Hour, Variance: 2.4},
	}}
}

// Dispersion is the process's index of dispersion in windows of length w: 1 + sum of 2 v T n (1 - (1-e^-x)/x) over the
// sources, x = w/T, v the relative variance, T the relaxation and n the rate of all arrivals (Fischer and Meier-Hellstern,
// "The Markov-modulated Poisson process cookbook", 1993, for each of two states).
func (b Bursty) Dispersion(w time.Duration) float64 {
	sum := 1.
	for _, s := range b.Sources {
		x := w.Seconds() / s.Relax.Seconds()
		sum += 2 * s.Variance * s.Relax.Seconds() / b.MeanGap.Seconds() * (1 + math.Expm1(-x)/x)
	}
	return sum
}

// Start begins the process.
func (b Bursty) Start(s prng.Stream) Clock {
	c := &bursty{s: s, sources: make([]source, len(b.Sources))}
	whole := 1 / b.MeanGap.Seconds()
	steady := 1.
	for i, x := range b.Sources {
		on, relax := x.on(), x.Relax.Seconds()
		c.sources[i] = source{on: c.s.Float64() < on, rate: whole * x.Share / on, up: on / relax, down: (1 - on) / relax}
		steady -= x.Share
	}
	c.steady = whole * max(steady, 0)
	return c
}

type source struct {
	on             bool
	rate, up, down float64
}

type bursty struct {
	s       prng.Stream
	steady  float64
	sources []source
}

func (b *bursty) Gap() float64 {
	gap := 0.
	for {
		arrive, turn := b.steady, 0.
		for _, x := range b.sources {
			if x.on {
				arrive, turn = arrive+x.rate, turn+x.down
			} else {
				turn += x.up
			}
		}
		gap += b.s.Exp() / (arrive + turn)
		u := b.s.Float64() * (arrive + turn)
		if u < arrive {
			return gap
		}
		u -= arrive
		for i := range b.sources {
			x := &b.sources[i]
			turn := x.up
			if x.on {
				turn = x.down
			}
			if u < turn || i == len(b.sources)-1 {
				x.on = !x.on
				break
			}
			u -= turn
		}
	}
}

// day bends flat time so that the rate follows 1 + a cos(2 pi (hour - 16.5)/24), busiest at half past four in the afternoon
// as Venus is; midnight is at 0.
type day struct{ a float64 }

const (
	daySeconds = 86400
	busiest    = 16.5 * 3600
)

// newDay has the given ratio of the busiest rate to the calmest.
func newDay(ratio float64) day { return day{a: max(0, (ratio-1)/(ratio+1))} }

// passed is how much flat time has passed by second t of real time.
func (d day) passed(t float64) float64 {
	const turn = 2 * math.Pi / daySeconds
	return t + d.a/turn*(math.Sin(turn*(t-busiest))+math.Sin(turn*busiest))
}

// bend turns flat time into real time.
func (d day) bend(flat float64) float64 {
	if d.a == 0 {
		return flat
	}
	// Flat and real time differ by less than a day's swing; passed rises, so halving finds the place.
	lo, hi := flat-daySeconds, flat+daySeconds
	for range 64 {
		if mid := lo + (hi-lo)/2; d.passed(mid) < flat {
			lo = mid
		} else {
			hi = mid
		}
	}
	return max(0, hi)
}

func queueName(i int) string { return "vc" + strconv.Itoa(i) }
