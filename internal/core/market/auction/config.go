package auction

import (
	"errors"
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/market/trust"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/score"
)

// Config of a market that negotiates.
type Config struct {
	// Weights of the score. What is left out is that of the objective (Under).
	Weights score.Weights
	// Variants is how many of one job are looked at for each window (V_max). Default 4, at most 64.
	Variants int
	// PerTime weighs a variant by score x duration; otherwise by score alone, which prefers many short ones.
	PerTime bool
	// Exclusive sells at most one variant of a job in one window.
	Exclusive bool
	// Joint clears the windows of a node that are open in the same instant together; otherwise one after another. With
	// Exclusive a job then wins one variant on the whole node.
	Joint bool
	// Rounds in one instant, at most: what is left of a window is announced again, and losers may bid again. Default 3.
	Rounds int
	// Repack decides what becomes of the part of a plan that does not begin within Freeze.
	Repack Repack
	// Freeze is how soon a subjob must begin to be sold for good. Default 30 s.
	Freeze time.Duration
	// Starve is an older name of starvation.Limit.After, which it overrides unless it is 0.
	Starve time.Duration
	// Close is how long a round waits for agents that have not answered. Default 200 ms.
	Close time.Duration
	// Audience bounds how many waiting jobs are asked for a window: half of them the first in the policy's order, half those
	// that have waited longest. Default 256, or 64 where the index alone is weighed: who could bid most is asked first, and nobody is left
	// out who could bid more. At least 2.
	Audience int
	// Trusting takes every declaration at its word: no calibration.
	Trusting bool
	// Eta is the step of calibration, Kappa how steeply trust falls with error; both in millionths. Default .25 and 2.
	Eta, Kappa int64
	// Payment is what a queue pays for what it wins, in credits. Default first price, which leaves a liar least to gain
	// (docs/incentives.md).
	Payment Payment
	// Refill is how many credits come into being in an hour for each slice, shared by weight among the queues that have jobs.
	// A credit is a millisecond of a slice at a score of 1. Default: a quarter of what the slice's time is worth at that score,
	// so that credits run short where slices do, and what was won lately counts (docs/incentives.md).
	Refill int64
}

// Repack is what becomes of the part of a cleared window that begins later than the freeze.
type Repack uint8

const (
	// Rolling: only a plan. None of it is sold; when its time comes the window is announced again.
	Rolling Repack = iota
	// Withdraw: it is sold, and withdrawn and announced again when something better is known.
	Withdraw
	// Never: it is sold and stays.
	Never
)

// RepackNames are the names of the modes, in order.
var RepackNames = []string{"rolling", "withdraw", "never"}

// Payment is what winners pay.
type Payment uint8

const (
	// FirstPrice: their own weight.
	FirstPrice Payment = iota
	// Free: nothing.
	Free
	// VCG: what their winning costs the others (Vickrey, Clarke, Groves).
	VCG
)

// PaymentNames are the names of the payments, in order.
var PaymentNames = []string{"first", "free", "vcg"}

// WithDefaults fills in what is zero, but for what the objective decides (Under).
func (c Config) WithDefaults() Config {
	for _, n := range []struct {
		field *int
		value int
	}{{&c.Variants, 4}, {&c.Rounds, 3}, {&c.Audience, 256}} {
		if *n.field == 0 {
			*n.field = n.value
		}
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&c.Freeze, 30 * time.Second}, {&c.Close, 200 * time.Millisecond}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.Eta == 0 {
		c.Eta = 250_000
	}
	if c.Kappa == 0 {
		c.Kappa = 2_000_000
	}
	if c.Refill == 0 {
		c.Refill = time.Hour.Milliseconds() / 4
	}
	return c
}

// Under fills in what is zero for a market under a policy: the weights of its objective, and the rest as WithDefaults does.
func (c Config) Under(p policy.Policy) Config {
	c.Weights = c.Weights.Or(score.Of(p.Name()))
	if c.Audience == 0 && c.Weights.ByIndex() {
		c.Audience = 64
	}
	return c.WithDefaults()
}

// Trust is how declarations are compared with observations.
func (c *Config) Trust() trust.Settings { return trust.Settings{Eta: c.Eta, Kappa: c.Kappa} }

// Validate lists every problem of c.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var errs []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("market: "+format, args...))
		}
	}
	wrong(c.Variants < 1 || c.Variants > 64, "variants is %d; want 1 to 64", c.Variants)
	wrong(c.Rounds < 1 || c.Rounds > 16, "rounds is %d; want 1 to 16", c.Rounds)
	wrong(c.Audience < 2, "audience is %d; want at least 2", c.Audience)
	wrong(c.Freeze < 0, "freeze is %v; want 0 or more", c.Freeze)
	wrong(c.Close < time.Millisecond || c.Close > time.Minute, "close is %v; want 1ms to 1m", c.Close)
	wrong(c.Eta < 0 || c.Eta > score.One, "eta is %d millionths; want 0 to 1", c.Eta)
	wrong(c.Kappa < 0 || c.Kappa > 100*score.One, "kappa is %d millionths; want 0 to 100", c.Kappa)
	wrong(c.Repack > Never, "repack %d is not known", c.Repack)
	wrong(c.Payment > VCG, "payment %d is not known", c.Payment)
	wrong(c.Refill < 0, "refill is %d credits; want 0 or more", c.Refill)
	wrong(c.Payment == VCG && (c.Exclusive || c.Joint),
		"exclusive and joint plans may not be the best there are, and then VCG prices are not truthful; take payment first or free")
	if err := c.Weights.Or(score.Of("")).Validate(); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return errkind.Errorf(errkind.Invalid, "%w", err)
	}
	return nil
}
