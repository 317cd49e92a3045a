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

// Told is what a job was told when it came, or when its home came up. The zero value is a job that was told nothing.
type Told struct {
	at quantity.Instant
	// wait is the plain estimate from then on, low and high the range.
	wait, low, high time.Duration
	stands          bool
}

// Plain is a job that was told nothing, as if it came now and this were the plain estimate of its wait.
func Plain(now quantity.Instant, wait time.Duration) Told { return Told{at: now, wait: wait} }

// Stands says whether it was told anything, and still waits for it.
func (t *Told) Stands() bool { return t.stands }

// Void takes back what a job was told: how long it waits from now on is nobody's estimate.
func (t *Told) Void() { t.stands = false }
