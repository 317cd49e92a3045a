// Package joint computes how likely it is that the subjobs of one host need more memory than the host has: the joint excess of several
// probable peaks, beside the excess of each over its own slice, which theta bounds (docs/adr).
//
// The sum is assumed to be normal. Its mean is the sum of the means. Its variance lies between that of independent peaks and that of peaks
// which rise and fall as one: every two have the same correlation, which is learned (Learner) or given. All numbers are integers, and
// rounded to the side of more memory.
package joint

import (
	"cmp"
	"fmt"
	"math/bits"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Whole is a correlation of one, in parts per thousand: all peaks rise and fall together.
const Whole = 1000

// Config is a host's memory, and how what runs there is held against it. The zero value is a host whose memory is not known: nothing is
// refused.
type Config struct {
	// Memory of the host, which all slices of a node share; 0: it is not known.
	Memory quantity.Amount
	// Excess is the accepted chance, in parts per million, that the peaks together pass it. Default 10000, which is .01.
	Excess int64
	// Given: Correlation, in parts per thousand, is used as it is; else it is learned.
	Given       bool
	Correlation int64
}

// Counted says whether the host's memory is known.
func (c *Config) Counted() bool { return c.Memory > 0 }

// WithDefaults fills what was left out.
func (c Config) WithDefaults() Config {
	c.Excess = cmp.Or(c.Excess, 10_000)
	return c
}

// Validate says what is wrong with a configuration with its defaults filled in, as an error of kind Invalid; nil if nothing is.
func (c Config) Validate() error {
	switch {
	case c.Memory < 0 || c.Memory > trp.MaxAmount:
		return errkind.Errorf(errkind.Invalid, "host memory: %d bytes; it must be within 1 and %d, or 0 where it is not known", c.Memory,
			int64(trp.MaxAmount))
	case c.Excess < 1 || c.Excess > trp.MaxThetaPPM:
		return errkind.Errorf(errkind.Invalid, "host memory: Excess is %d parts per million; it must be within 1 and %d", c.Excess,
			trp.MaxThetaPPM)
	case c.Correlation < 0 || c.Correlation > Whole || c.Correlation != 0 && !c.Given:
		return errkind.Errorf(errkind.Invalid, "host memory: Correlation is %d; it must be within 0 and %d, and is to be Given",
			c.Correlation, Whole)
	}
	return nil
}

// mostDeviation is the largest deviation that is counted, 64 TiB: 1,024 of them can be added and squared without overflow, and a sum with
// one of them is beyond any host.
const mostDeviation = 1 << 46

// Load is the sum of several peaks. The zero value is the sum of none.
type Load struct {
	Pieces int
	Mean   quantity.Amount
	// Deviations is the sum of the deviations: that of the sum if all rise and fall together.
	Deviations quantity.Amount
	// squares is the sum of the variances: the variance of the sum if they are independent.
	squares uint128
}

// Add counts a peak in.
func (l *Load) Add(p trp.Peak) {
	d := min(max(0, p.Deviation), mostDeviation)
	l.Pieces++
	l.Mean = min(l.Mean+min(max(0, p.Mean), trp.MaxAmount), 1<<62)
	l.Deviations = min(l.Deviations+d, 1024*mostDeviation)
	l.squares = l.squares.plus(square(uint64(d)))
	if most := square(1024 * mostDeviation); most.below(l.squares) {
		l.squares = most
	}
}

// Deviation of the sum at a correlation in parts per thousand, rounded up.
func (l *Load) Deviation(correlation int64) quantity.Amount {
	c := uint64(min(max(0, correlation), Whole))
	v := l.squares.times(Whole - c).plus(square(uint64(l.Deviations)).times(c))
	return quantity.Amount(v.over(Whole).root())
}

// PeakOf is a peak, or the demand as its mean where no more is known. So as long as the demands are within the memory, no more is risked
// than all thetas together.
func PeakOf(p trp.Peak, demand trp.Vector) trp.Peak {
	if p == (trp.Peak{}) {
		return trp.Peak{Mean: demand[trp.Memory]}
	}
	return p
}

// Limit is a configuration with the quantile that its Excess stands for.
type Limit struct {
	Config
	quantile int64
}

// NewLimit of a valid configuration.
func NewLimit(c Config) Limit {
	c = c.WithDefaults()
	return Limit{c, trp.Quantile(c.Excess)}
}

// Need is the least memory with which a load is within the limit.
func (l *Limit) Need(load *Load, correlation int64) quantity.Amount {
	return load.Mean + quantity.Amount(quantity.MulDiv(int64(load.Deviation(correlation)), l.quantile, 1_000_000))
}

// Spare is what can be added to a load as a piece of such a demand, whatever of it is mean and whatever deviation, if its theta is no
// looser than Excess.
func (l *Limit) Spare(load *Load, correlation int64) quantity.Amount {
	return max(0, l.Memory-l.Need(load, correlation))
}

// Chance, in parts per million, that a load passes the memory; for display.
func (l *Limit) Chance(load *Load, correlation int64) int64 {
	d, left := int64(load.Deviation(correlation)), int64(l.Memory-load.Mean)
	switch {
	case d == 0 && left >= 0:
		return 0
	case left < 0 && (d == 0 || -left/d >= 10):
		return 1_000_000
	case left < 0:
		return 1_000_000 - trp.Beyond(quantity.MulDiv(-left, 1_000_000, d))
	case left/d >= 10:
		return 0
	}
	return trp.Beyond(quantity.MulDiv(left, 1_000_000, d))
}

// Explain says of a load that is over the limit by how much, for people.
func (l *Limit) Explain(load *Load, correlation int64) string {
	return fmt.Sprintf("the host's memory would run out with probability %s, at most %s may: %d pieces with %d MiB on average and a "+
		"deviation of %d MiB (correlation .%03d), there are %d MiB",
		ppm(l.Chance(load, correlation)), ppm(l.Excess), load.Pieces, load.Mean>>20, load.Deviation(correlation)>>20, min(correlation, 999),
		l.Memory>>20)
}

// Offers says of a slice of a host with a load that it is offered with less than it has, for people.
func (l *Limit) Offers(load *Load, correlation int64, bears, capacity quantity.Amount) string {
	return fmt.Sprintf("the host's memory bears %d of its %d MiB: %d pieces need %d of %d MiB with a chance of %s to pass it "+
		"(correlation .%03d)",
		bears>>20, capacity>>20, load.Pieces, l.Need(load, correlation)>>20, l.Memory>>20, ppm(l.Excess), min(correlation, 999))
}

// ppm is a chance in parts per million with as many digits as say something.
func ppm(p int64) string {
	switch {
	case p >= 1_000_000:
		return "1"
	case p >= 10_000:
		return fmt.Sprintf(".%02d", p/10_000)
	case p >= 100:
		return fmt.Sprintf(".%04d", p/100)
	default:
		return fmt.Sprintf(".%06d", p)
	}
}

// uint128 is enough for a thousand variances in bytes.
type uint128 struct{ hi, lo uint64 }

func square(x uint64) uint128 {
	hi, lo := bits.Mul64(x, x)
	return uint128{hi, lo}
}

func (a uint128) below(b uint128) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

func (a uint128) plus(b uint128) uint128 {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	hi, _ := bits.Add64(a.hi, b.hi, carry)
	return uint128{hi, lo}
}

func (a uint128) times(x uint64) uint128 {
	hi, lo := bits.Mul64(a.lo, x)
	return uint128{hi + a.hi*x, lo}
}

// over is a divided by x, rounded up.
func (a uint128) over(x uint64) uint128 {
	a = a.plus(uint128{0, x - 1})
	hi, rest := bits.Div64(0, a.hi, x)
	lo, _ := bits.Div64(rest, a.lo, x)
	return uint128{hi, lo}
}

// root is the least integer whose square is at least a.
func (a uint128) root() uint64 {
	if a == (uint128{}) {
		return 0
	}
	lo, hi := uint64(0), uint64(1)<<63 // lo^2 < a <= hi^2
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; square(mid).below(a) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}
