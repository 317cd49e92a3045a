package conservative

import (
	"slices"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
	"sluice.dev/sluice/internal/lab/planner/pool"
)

// counts is a plan by number: how many devices of a class are free, over time.
type counts struct {
	total    [planner.MaxClasses]int32
	profiles []profile
}

// profile is a step function: free[i] devices are free on [at[i], at[i+1]), the last for ever. Neighbours differ.
type profile struct {
	at   []quantity.Instant
	free []int32
}

func newCounts(p *pool.Pool) counts {
	c := counts{profiles: make([]profile, p.Classes())}
	for i := range c.profiles {
		c.total[i] = p.Free(i)
	}
	c.clear(-1 << 63)
	return c
}

func (c *counts) clear(now quantity.Instant) {
	for i := range c.profiles {
		f := &c.profiles[i]
		f.at, f.free = append(f.at[:0], now), append(f.free[:0], c.total[i])
	}
}

func (c *counts) forward(now quantity.Instant) {
	for i := range c.profiles {
		f := &c.profiles[i]
		k := 0
		for k+1 < len(f.at) && f.at[k+1] <= now {
			k++
		}
		f.at, f.free = slices.Delete(f.at, 0, k), slices.Delete(f.free, 0, k)
		f.at[0] = now
	}
}

// earliest looks for a stretch of enough free devices that is long enough.
func (c *counts) earliest(now quantity.Instant, e *book.Entry, class int, s *slot) {
	f, n, run := &c.profiles[class], e.Task.Devices, max(e.Run(class), 1)
	s.class, s.start = class, quantity.Never
	for i := 0; i < len(f.at); i++ {
		if f.free[i] < n {
			continue
		}
		start := max(f.at[i], now)
		until := start.Add(duration(run))
		j := i + 1
		for j < len(f.at) && f.at[j] < until && f.free[j] >= n {
			j++
		}
		if j == len(f.at) || f.at[j] >= until {
			s.start = start
			return
		}
		i = j
	}
}

func (c *counts) take(e *book.Entry, s *slot, from quantity.Instant) {
	c.profiles[s.class].add(from, s.until, -e.Task.Devices)
}

func (c *counts) give(e *book.Entry, s *slot, from quantity.Instant) {
	c.profiles[s.class].add(from, s.until, e.Task.Devices)
}

// add changes what is free on [from, until), as far as it is not over.
func (f *profile) add(from, until quantity.Instant, n int32) {
	from = max(from, f.at[0])
	if from >= until || n == 0 {
		return
	}
	i := f.split(from, 0)
	j := len(f.at)
	if until != quantity.Never {
		j = f.split(until, i)
	}
	for k := i; k < j; k++ {
		f.free[k] += n
	}
	f.join(j)
	f.join(i)
}

// split makes a step at t, which lies after the first, and returns its index.
func (f *profile) split(t quantity.Instant, lo int) int {
	hi := len(f.at)
	for lo < hi {
		if mid := (lo + hi) / 2; f.at[mid] < t {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(f.at) || f.at[lo] != t {
		f.at, f.free = slices.Insert(f.at, lo, t), slices.Insert(f.free, lo, f.free[lo-1])
	}
	return lo
}

// join removes step i if nothing changes there.
func (f *profile) join(i int) {
	if i > 0 && i < len(f.at) && f.free[i] == f.free[i-1] {
		f.at, f.free = slices.Delete(f.at, i, i+1), slices.Delete(f.free, i, i+1)
	}
}
