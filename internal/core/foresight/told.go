package foresight

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

const (
	// Least is the shortest plain estimate of a job that is to wait. It is added on both sides of a ratio too, so that waits around 0
	// are alike.
	Least = time.Second
	// startsSeen are the latest first starts that give the rate, from fewStarts on.
	startsSeen, fewStarts = 64, 4
)

// Told is a job's prediction from when it came, or from when its home came up. The zero value: none.
type Told struct {
	at quantity.Instant
	// wait is the plain estimate from then on, low and high the range.
	wait, low, high time.Duration
	stands          bool
}

// Plain is the prediction of a job that was told none, as if it came now with this plain estimate of its wait.
func Plain(now quantity.Instant, wait time.Duration) Told { return Told{at: now, wait: wait} }

// Stands reports whether it was told anything, and still waits.
func (t *Told) Stands() bool { return t.stands }

// Void withdraws a job's prediction: how long it waits from now on is not estimated.
func (t *Told) Void() { t.stands = false }
