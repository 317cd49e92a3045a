package score

import (
	"math"
	"math/bits"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// SlackFull is the slack from which on a deadline does not press at all. It is the default horizon: a job with more slack can
// let every window pass that is on offer today and still be served by those that are announced later; with less, each one that
// it loses brings it closer to being late.
const SlackFull = time.Hour

// Variant is what the scheduler itself knows of a variant, nothing of it declared without being verified.
type Variant struct {
	// Open and Shut are the window's start and end, Start and End the variant's, within them.
	Open, Shut, Start, End quantity.Instant
	// Shortest is the shortest piece worth selling.
	Shortest time.Duration
	// Demand is the memory it is sold, Capacity that of the slice.
	Demand, Capacity quantity.Amount
	// Waited is how long its job has waited since it was last served, or since it came.
	Waited time.Duration
	// Attained is what its job has had so far, in units of memory-time of its queue's weight, and Hour an hour of the slice.
	Attained, Hour int64
	// Index of its job on the slice's class, by the market's policy.
	Index int64
	// Slack is how long its job may go unserved until its deadline is out of reach on the slice's class; the longest time without a
	// deadline.
	Slack time.Duration
	// Profile of the job, Theta in parts per million, and the units From to To; Within is the capacity to judge them by
	// (Capacity over the job's memory scale). They are looked at only where Headroom has a weight.
	Profile  *trp.Profile
	Theta    int64
	From, To int64
	Within   quantity.Amount
}

// Features of a variant. Headroom is left 0 where it has no weight, since the excess of a profile is much work.
func (w Weights) Features(v *Variant) System {
	f := System{
		Time:    Time(v.End.Sub(v.Start), v.Shut.Sub(v.Open)),
		Memory:  Memory(v.Demand, v.Capacity),
		Residue: Residue(v.Open, v.Shut, v.Start, v.End, v.Shortest),
		Age:     Age(v.Waited),
		Share:   Share(v.Attained, v.Hour),
		Brevity: Brevity(v.End.Sub(v.Start)),
		Index:   Index(v.Index),
		Urgency: Urgency(v.Slack),
	}
	if w.System.Headroom > 0 {
		f.Headroom = Headroom(*v.Profile, v.From, v.To, v.Within, v.Theta)
	}
	return f
}

// Time is the share of the window's time that a variant fills.
func Time(duration, window time.Duration) int64 { return share(int64(duration), int64(window)) }

// Memory is the share of the slice's memory that a variant fills: the memory it is sold over the slice's.
func Memory(demand, capacity quantity.Amount) int64 { return share(int64(demand), int64(capacity)) }

// Residue is One less the share of the window from open to shut that a variant from start to end makes useless: what is left
// before and behind it, where that is shorter than the shortest piece worth selling.
func Residue(open, shut, start, end quantity.Instant, shortest time.Duration) int64 {
	var useless time.Duration
	for _, gap := range [2]time.Duration{start.Sub(open), shut.Sub(end)} {
		if 0 < gap && gap < shortest {
			useless += gap
		}
	}
	return One - share(int64(useless), int64(shut.Sub(open)))
}

// Headroom is One less the chance that units [from, to) pass capacity over theta (parts per million, above 0): One where they
// are sure to fit, 0 where they fit just so. The profile must be one that trp.Compile accepts.
func Headroom(p trp.Profile, from, to int64, capacity quantity.Amount, theta int64) int64 {
	excess := trp.Excess(p, from, to, capacity)
	return One - unit(int64(math.Round(min(1, excess*1e6/float64(theta))*One)))
}

// Age is how long a job has waited as a share of AgeFull: min(1, waited/AgeFull).
func Age(waited time.Duration) int64 { return share(int64(waited), int64(AgeFull)) }

// Share is how little a job has had: hour/(hour + attained), One for nothing (least attained service, made smooth).
func Share(attained, hour int64) int64 {
	if attained <= 0 {
		return One
	}
	hour = max(hour, 1)
	return share(hour, hour+min(attained, math.MaxInt64-hour))
}

// Brevity is how soon a variant gives its slice back, so that others are served: One for no time, half of it for BrevityHalf.
func Brevity(duration time.Duration) int64 {
	return share(int64(BrevityHalf), int64(BrevityHalf)+max(0, min(int64(duration), math.MaxInt64/2)))
}

// Progress is the share of the units that are left which a variant does.
func Progress(units, left int64) int64 { return share(units, left) }

// Laxity is how pressing a deadline is: One where no slack is left, 0 with SlackFull or more and without a deadline (Never),
// and falling in between. finish is when the job would end if it went on without a pause from this variant.
func Laxity(finish, deadline quantity.Instant) int64 {
	if deadline == quantity.Never {
		return 0
	}
	if finish >= deadline {
		return One
	}
	slack := uint64(deadline) - uint64(finish) // as unsigned it can not overflow
	return One - share(int64(min(slack, uint64(SlackFull))), int64(SlackFull))
}

// Urgency is how much a deadline presses that leaves its job so much slack: One where nothing is left, half of it for UrgencyHalf, and so
// on for ever, so that jobs with days left are in the order of their slack too. It is 0 without a deadline, for which slack is the longest
// time, and below 0: what is out of reach there would take the slice from jobs that can still be in time.
func Urgency(slack time.Duration) int64 {
	if slack < 0 || slack == math.MaxInt64 {
		return 0
	}
	return share(int64(UrgencyHalf), int64(UrgencyHalf)+min(int64(slack), math.MaxInt64/2))
}

// Overhead is One less the share of a subjob's wall time that goes into restore and checkpoint.
func Overhead(cost, wall time.Duration) int64 { return One - share(int64(cost), int64(wall)) }

// share is part/whole in millionths, rounded to the nearest, 0 to One: 0 for no part, One for all and more.
func share(part, whole int64) int64 {
	switch {
	case part <= 0:
		return 0
	case part >= whole:
		return One
	case part <= (math.MaxInt64-math.MaxInt64/2)/One:
		return (part*One + whole/2) / whole
	}
	hi, lo := bits.Mul64(uint64(part), One)
	lo, carry := bits.Add64(lo, uint64(whole)/2, 0)
	q, _ := bits.Div64(hi+carry, lo, uint64(whole)) // part < whole, so the quotient is at most One
	return int64(q)
}
