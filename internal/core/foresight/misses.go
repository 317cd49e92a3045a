package foresight

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

const (
	// mostRatios are remembered.
	mostRatios = 256
	// missedShare of the waits may lie on either side of the range, in parts per thousand; levelStep is how far one wait moves the
	// quantile of its side, so that over many the share comes out right whatever the ratios do (adaptive conformal inference).
	missedShare, levelStep = 100, 10
	// fewRatios is how many waits stand for more than what is assumed of them.
	fewRatios = 8
)

// misses of estimates of one kind.
type misses struct {
	// ratios of real over estimated waits, in parts per thousand, newest last; ordered are the same from the least on.
	ratios, ordered []int64
	// assumed are the ordered with what is assumed beside few of them; nil: to be made anew.
	assumed []int64
	// low and high are the quantiles that the range goes from and to, in parts per thousand, once begun.
	low, high int64
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
	base := wait + Least
	from := quantity.MulDiv(int64(far), 1000, int64(base))
	i, _ := slices.BinarySearch(list, from)
	if i == len(list) { // none was that long: as long again, at most
		return far, 2*far + Least
	}
	a, b := e.levels()
	scaled := func(permille int64) time.Duration {
		return max(far, time.Duration(quantity.MulDiv(int64(base), at(list[i:], permille), 1000))-Least)
	}
	return scaled(a), scaled(b)
}

// learn records a wait that is over.
func (e *misses) learn(f *Told, real time.Duration) {
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
	ratio := quantity.MulDiv(int64(real+Least), 1000, int64(f.wait+Least))
	i, _ := slices.BinarySearch(e.ordered, ratio)
	e.ratios, e.ordered, e.assumed = append(e.ratios, ratio), slices.Insert(e.ordered, i, ratio), nil
}
