// Package foresight predicts when a job will start, as a range that is to hold 80% of the waits. The plain estimate is Little's law: as
// many jobs as wait before it, at the rate at which jobs have begun lately. Its error, since it ignores the policy's order, sizes and
// memory, is learned from finished waits: the range is the plain estimate times the quantiles of (real estimated). Soft. The caller knows
// which jobs wait, and for how many slices.
package foresight

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Learner is what is known of waits.
type Learner struct {
	// starts are the latest first starts of jobs, oldest first.
	starts []quantity.Instant
	queued misses // of jobs that were to wait
	idle   misses // of jobs for which there was a window when they came
	record status.Foresight
}

// Tell gives a new job its likely wait, from its plain estimate.
func (l *Learner) Tell(t *Told, now quantity.Instant, wait time.Duration) {
	t.at, t.wait, t.stands = now, wait, true
	t.low, t.high = l.of(wait).between(wait, 0)
}

// Begun notes that a job has begun: its wait is over, and the next estimates learn from it.
func (l *Learner) Begun(t *Told, at quantity.Instant) {
	if !t.stands {
		return
	}
	t.stands = false
	l.starts = append(l.starts, at)
	if n := len(l.starts); n > startsSeen {
		l.starts = slices.Delete(l.starts, 0, 1)
	}
	real := max(0, at.Sub(t.at))
	if t.wait > 0 {
		l.record.Waits++
		switch {
		case real < t.low:
			l.record.Sooner++
		case real > t.high:
			l.record.Later++
		}
	}
	l.of(t.wait).learn(t, real)
}

// Interval is how far apart jobs have begun lately, known once a few have.
func (l *Learner) Interval(now quantity.Instant) (interval time.Duration, known bool) {
	n := len(l.starts)
	if n < fewStarts {
		return 0, false
	}
	return now.Sub(l.starts[0]) / time.Duration(n), true
}

// Range is when a waiting job is likely to start: the range that 80% of such waits end in, less what has passed of it.
func (l *Learner) Range(now quantity.Instant, t Told) (early, late quantity.Instant) {
	low, high := l.of(t.wait).between(t.wait, max(0, now.Sub(t.at)))
	return max(now, t.at.Add(low)), max(now, t.at.Add(high))
}

// Record is how the predicted ranges have come out.
func (l *Learner) Record() status.Foresight { return l.record }

// of is the record of misses that an estimate belongs to.
func (l *Learner) of(wait time.Duration) *misses {
	if wait == 0 {
		return &l.idle
	}
	return &l.queued
}
