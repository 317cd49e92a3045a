package zone

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Every job is told when it is likely to start, as a range that is to hold 80% of the waits. The plain estimate is Little's law: as
// many jobs as wait before it, at the rate at which jobs have begun lately. What it gets wrong, for it knows nothing of the
// policy's order, of sizes or of memory, is learned from the waits that are over: the range is the plain estimate times the
// quantiles of (real / estimated). All of it is soft.

const (
	// mostRatios are remembered, startsSeen are the latest first starts that give the rate.
	mostRatios, startsSeen = 256, 64
	// floorWait is added on both sides of a ratio, so that waits around 0 are alike.
	floorWait = time.Second
	// missedShare of the waits may lie on either side of the range, in parts per thousand; levelStep is how far one wait moves the
	// quantile of its side, so that over many the share comes out right whatever the ratios do (adaptive conformal inference).
	missedShare, levelStep = 100, 10
	// fewRatios is how many waits stand for more than what is assumed of them.
	fewRatios = 8
)

// foresight is what is known of waits.
type foresight struct {
	// starts are the latest first starts of jobs, oldest first.
	starts []quantity.Instant
	queued misses // of jobs that were to wait
	idle   misses // of jobs for which there was a window when they came
	told   status.Foresight
}

// misses of estimates of one kind.
type misses struct {
	// ratios of real over estimated waits, in parts per thousand, newest last; ordered are the same from the least on.
	ratios, ordered []int64
	// assumed are the ordered with what is assumed beside few of them; nil: to be made anew.
	assumed []int64
	// low and high are the quantiles that the range goes from and to, in parts per thousand, once begun.
	low, high int64
}

// foreseen is what a job was told when it came, or when the zone came up.
type foreseen struct {
	at quantity.Instant
	// wait is the plain estimate from then on, low and high the range.
	wait, low, high time.Duration
	told            bool
}

// sorted are the ratios in order; of few, what is assumed stands beside them: anything from an eighth to eight times.
func (e *misses) sorted() []int64 {
	if len(e.ordered) >= fewRatios {
		return e.ordered
	}
	if e.assumed == nil {
		e.assumed = append([]int64{125, 250, 500, 1000, 1000, 2000, 4000, 8000}, e.ordered...)
		slices.Sort(e.assumed)
	}
	return e.assumed
}

// levels are the quantiles in use.
func (e *misses) levels() (low, high int64) {
	if e.high == 0 {
		return missedShare, 1000 - missedShare
	}
	return e.low, e.high
}

// at is a quantile of an ordered list, in parts per thousand.
func at(list []int64, permille int64) int64 {
	return list[min(int64(len(list))-1, max(0, int64(len(list))*permille/1000))]
}

// between is the range for a plain estimate, for a job that has waited so far already: of the waits that were that long.
func (e *misses) between(wait, far time.Duration) (low, high time.Duration) {
	list := e.sorted()
	base := wait + floorWait
	from := quantity.MulDiv(int64(far), 1000, int64(base))
	i, _ := slices.BinarySearch(list, from)
	if i == len(list) { // none was that long: as long again, at most
		return far, 2*far + floorWait
	}
	a, b := e.levels()
	scaled := func(permille int64) time.Duration {
		return max(far, time.Duration(quantity.MulDiv(int64(base), at(list[i:], permille), 1000))-floorWait)
	}
	return scaled(a), scaled(b)
}

// learn takes in a wait that is over.
func (e *misses) learn(f *foreseen, real time.Duration) {
	a, b := e.levels()
	move := func(level int64, missed bool, out int64) int64 {
		if missed {
			return level + out*levelStep*(1000-missedShare)/1000
		}
		return level - out*levelStep*missedShare/1000
	}
	e.low = min(450, max(0, move(a, real < f.low, -1)))
	e.high = max(550, min(1000, move(b, real > f.high, 1)))
	if len(e.ratios) == mostRatios {
		i, _ := slices.BinarySearch(e.ordered, e.ratios[0])
		e.ratios, e.ordered = slices.Delete(e.ratios, 0, 1), slices.Delete(e.ordered, i, i+1)
	}
	ratio := quantity.MulDiv(int64(real+floorWait), 1000, int64(f.wait+floorWait))
	i, _ := slices.BinarySearch(e.ordered, ratio)
	e.ratios, e.ordered, e.assumed = append(e.ratios, ratio), slices.Insert(e.ordered, i, ratio), nil
}

// of is the record of misses that an estimate belongs to.
func (f *foresight) of(wait time.Duration) *misses {
	if wait == 0 {
		return &f.idle
	}
	return &f.queued
}

// guess is the plain estimate of a wait that begins now: none where a window is open for everybody who waits.
func (z *Zone) guess(now quantity.Instant, j *home.Job) time.Duration {
	waiting := int64(z.home.Waiting())
	if !j.Active() {
		waiting++ // it is not among them: a dry run
	}
	if waiting <= int64(z.floor.Open()) {
		return 0
	}
	if n := len(z.foresight.starts); n >= 4 {
		interval := now.Sub(z.foresight.starts[0]) / time.Duration(n)
		return max(floorWait, time.Duration(quantity.MulDiv(int64(interval), waiting, 1)))
	}
	// Nothing is known of the rate: it is as if all that wait were as long as this job, and the slices went round.
	places, speed := int64(0), int64(0)
	for _, c := range z.floor.Classes() {
		if on := c.SpeedOf(j.Spec); on > 0 && c.Usable() > 0 {
			places, speed = places+int64(c.Usable()), max(speed, on)
		}
	}
	if places == 0 {
		return floorWait
	}
	own := j.Spec.WalltimeAt(speed)
	if j.Spec.Divisible() {
		v := j.View()
		own = v.RunTime(j.Spec.Total, speed)
	}
	return max(floorWait, time.Duration(quantity.MulDiv(int64(own), waiting, places)))
}

// foresee tells a job that has just come how long it is likely to wait.
func (z *Zone) foresee(now quantity.Instant, j *home.Job) {
	if !j.Active() || j.Started() != 0 || len(j.Claims()) > 0 || j.Held {
		return
	}
	f := &entryOf(j).foreseen
	f.at, f.wait, f.told = now, z.guess(now, j), true
	f.low, f.high = z.foresight.of(f.wait).between(f.wait, 0)
}

// begun notes that a job has begun: its wait is over, and the next estimates learn from it.
func (z *Zone) begun(j *home.Job, at quantity.Instant) {
	f := &entryOf(j).foreseen
	if !f.told {
		return
	}
	f.told = false
	z.foresight.starts = append(z.foresight.starts, at)
	if n := len(z.foresight.starts); n > startsSeen {
		z.foresight.starts = slices.Delete(z.foresight.starts, 0, 1)
	}
	real := max(0, at.Sub(f.at))
	if f.wait > 0 {
		z.foresight.told.Waits++
		switch {
		case real < f.low:
			z.foresight.told.Sooner++
		case real > f.high:
			z.foresight.told.Later++
		}
	}
	z.foresight.of(f.wait).learn(f, real)
}

// expect is when a waiting job is likely to start: the range that 80% of such waits end in, less what has passed of it.
func (z *Zone) expect(now quantity.Instant, j *home.Job) (early, late quantity.Instant) {
	f := entryOf(j).foreseen
	if !f.told {
		f.at, f.wait = now, z.guess(now, j)
	}
	low, high := z.foresight.of(f.wait).between(f.wait, max(0, now.Sub(f.at)))
	return max(now, f.at.Add(low)), max(now, f.at.Add(high))
}

// Foresight is how the ranges that jobs were told have come out since the zone came up.
func (z *Zone) Foresight() status.Foresight { return z.foresight.told }
