package main

import (
	"time"

	"sluice.dev/sluice/internal/core/ends"
	"sluice.dev/sluice/internal/core/quantity"
)

// whole is a share of 1, in parts per million.
const whole = 1_000_000

// shares are what part of their limits jobs have used, by user and of all.
type shares struct {
	users map[string]*ends.Curve
	all   ends.Curve
}

func newShares() *shares { return &shares{users: map[string]*ends.Curve{}} }

// saw learns of a job that has ended. A host ends those that reach their limit, so none was cut.
func (s *shares) saw(j *job) {
	c := s.users[j.user]
	if c == nil {
		c = &ends.Curve{}
		s.users[j.user] = c
	}
	c.Add(shareOf(j.run, j.limit), false)
	s.all.Add(shareOf(j.run, j.limit), false)
}

// over is before when a job that runs does not end, with a chance of alpha (parts per million) to be wrong: by what its user's jobs have
// used, else by what all have, else by its limit.
func (s *shares) over(now quantity.Instant, j *job, alpha int64) quantity.Instant {
	for _, c := range []*ends.Curve{s.users[j.user], &s.all} {
		if c == nil {
			continue
		}
		left, ok := c.Residual(0, shareOf(now.Sub(j.began), j.limit), alpha) // no span is open, so that the clock means nothing
		if ok && left != ends.None {
			return min(j.atLimit(), now.Add(time.Duration(quantity.MulDiv(int64(left), int64(j.limit), whole))))
		}
	}
	return j.atLimit()
}

// shareOf a limit that a time is.
func shareOf(d, limit time.Duration) time.Duration {
	return time.Duration(quantity.MulDiv(int64(d), whole, int64(limit)))
}
