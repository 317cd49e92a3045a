package world

import (
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
)

// What a draw is for: the first key behind the seed.
const (
	forJob uint64 = iota + 1
	forRigid
	forMessage
	forNode
	forMechanism
	forBegun
	forLog
)

// exponential is a draw with a mean, in whole nanoseconds, at least one.
func exponential(s *prng.Stream, mean time.Duration) time.Duration {
	return time.Duration(max(1, s.Exp()*float64(mean)))
}

// jobGap is the mean time between two jobs: what a job takes of slices, over what is offered of them in a nanosecond.
func (o *Options) jobGap() time.Duration {
	slots := int64(0)
	for _, n := range o.Cluster.Capacity() {
		slots += n
	}
	long := float64(o.Flow.LongShare) / Million
	mean := (1-long)*float64(o.Flow.Mean) + long*float64(o.Flow.LongMean)
	offered := float64(slots) * (1 - float64(o.Rigid.Share)/Million) * float64(o.Flow.Load) / Million
	if offered == 0 {
		return never
	}
	return time.Duration(max(1, mean*float64(o.Flow.Batch)/offered))
}

// running is how many tasks and long tasks run in a zone on average if nobody waits, in parts per million of one (Little's law).
func (o *Options) running() (short, long int64) {
	gap := float64(o.jobGap()) * float64(o.Cluster.Zones) / float64(o.Flow.Batch)
	share := float64(o.Flow.LongShare) / Million
	return int64((1 - share) * float64(o.Flow.Mean) / gap * Million), int64(share * float64(o.Flow.LongMean) / gap * Million)
}

// rigidGap is the mean time between two rigid jobs of a zone, and rigidCount how many there are on average.
func (o *Options) rigidGap() (gap time.Duration, count int64) {
	slots := int64(0)
	for _, n := range o.Cluster.Capacity() {
		slots += n / int64(o.Cluster.Zones)
	}
	share := float64(o.Rigid.Share) / Million * float64(slots) / (float64(1+o.Rigid.Width) / 2)
	return time.Duration(float64(o.Rigid.Mean) / share), int64(share * Million)
}

// poisson is a draw with a mean in parts per million: how many unit exponentials fit into it.
func poisson(s *prng.Stream, mean int64) (n int) {
	for left := float64(mean)/Million - s.Exp(); left > 0; left -= s.Exp() {
		n++
	}
	return n
}

// never is a length of time in which nothing comes.
const never = time.Duration(quantity.Never)

func keyed(keys ...uint64) uint64 {
	s := prng.New(keys...)
	return s.Uint64()
}
