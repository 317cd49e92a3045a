package flow

import (
	"cmp"
	"errors"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

// Config of a flow: the bounds of a search, and what a node and a zone weigh. A zero field takes the default named with it
// (adr 0036). All parts of one flow need the same one.
type Config struct {
	// Seed of every draw. 0 is a seed like any other.
	Seed uint64
	// Classes are the levels of the size classes. Needed.
	Classes Classes

	// Alpha and Beta are exponents, Gamma a factor, all in thousandths: a zone weighs
	// max(Epsilon, free - Gamma demand)^Alpha (1 - pressure)^Beta. Default 1000 each, at most 8000.
	Alpha, Beta, Gamma int64
	// Epsilon is what a zone without free fragments counts as having, in thousandths of a fragment. Default 1000: with next to nothing the
	// few zones that show one, when all are full, would get everybody.
	Epsilon int64
	// Floor is the share of draws that is spread evenly over zones, in parts per thousand: no live zone of Z is drawn with a
	// smaller chance than Floor/Z. Default 20, at most 500.
	Floor int64
	// Period is the time between two digests of a zone. Default 100 ms.
	Period time.Duration
	// Stale is the age at which a digest no longer shows that its zone is alive. Default 10 periods, at least 1 s.
	Stale time.Duration

	// Burst is how many nodes a ticket asks at once in a zone that it has come to (k). Default 4.
	Burst int
	// Guesses is how many hops of a search may go to nodes that do not look free. Default Burst.
	Guesses int
	// Pace is the mean time between hops, or looks for something to ask, after the burst (tau); each is drawn from half to one and a half
	// of it. Default 20 ms.
	Pace time.Duration
	// Patience is how long one search lasts at most (W). Default 1 s.
	Patience time.Duration
	// ProbeTimeout is after how long a probe without an answer counts as refused. Default GrantTTL: a grant that was lost on its way has
	// lapsed by then.
	ProbeTimeout time.Duration
	// ZoneHops is after how many hops and looks in one zone another zone is drawn (M), as long as Resplits allow. Default 8.
	ZoneHops int
	// Resplits is how often that happens in one search, at most. Default 2.
	Resplits int
	// MaxHops bounds the hops of one search (H_max). Default 64.
	MaxHops int
	// ZoneTickets is how many tickets search in a zone at once. A ticket that comes to a full zone is drawn once more. Default 1024.
	ZoneTickets int
	// Wakes is how many parked tickets of one class are woken for a digest, at most. Default 16.
	Wakes int

	// GrantTTL is how long a node holds what it has granted, by its own clock. Default 200 ms.
	GrantTTL time.Duration
	// HighPressure is the memory pressure in parts per thousand from which on a node grants nothing (theta_hi). Default 920.
	HighPressure int
	// AgeWeight, FitWeight and ChurnWeight are what age, fit and churn count beside one step of priority, in thousandths.
	// Default 500, 200 and 100.
	AgeWeight, FitWeight, ChurnWeight int64
}

// WithDefaults fills in what is zero.
func (c Config) WithDefaults() Config {
	c.Alpha = cmp.Or(c.Alpha, 1000)
	c.Beta = cmp.Or(c.Beta, 1000)
	c.Gamma = cmp.Or(c.Gamma, 1000)
	c.Epsilon = cmp.Or(c.Epsilon, 1000)
	c.Floor = cmp.Or(c.Floor, 20)
	c.AgeWeight = cmp.Or(c.AgeWeight, 500)
	c.FitWeight = cmp.Or(c.FitWeight, 200)
	c.ChurnWeight = cmp.Or(c.ChurnWeight, 100)
	c.Burst = cmp.Or(c.Burst, 4)
	c.ZoneHops = cmp.Or(c.ZoneHops, 8)
	c.Resplits = cmp.Or(c.Resplits, 2)
	c.MaxHops = cmp.Or(c.MaxHops, 64)
	c.ZoneTickets = cmp.Or(c.ZoneTickets, 1024)
	c.Wakes = cmp.Or(c.Wakes, 16)
	c.HighPressure = cmp.Or(c.HighPressure, 920)
	c.Period = cmp.Or(c.Period, 100*time.Millisecond)
	c.Pace = cmp.Or(c.Pace, 20*time.Millisecond)
	c.Patience = cmp.Or(c.Patience, time.Second)
	c.GrantTTL = cmp.Or(c.GrantTTL, 200*time.Millisecond)
	c.Guesses = cmp.Or(c.Guesses, c.Burst)
	c.Stale = cmp.Or(c.Stale, max(10*c.Period, time.Second))
	c.ProbeTimeout = cmp.Or(c.ProbeTimeout, c.GrantTTL)
	return c
}

// Checked is what the parts of a flow are made with: the configuration with its defaults, if it is valid. They share it, and nobody
// changes it.
func (c Config) Checked() (*Config, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.WithDefaults()
	return &c, nil
}

// Validate returns every problem of the configuration at once, as one error of kind Invalid, or nil.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var problems []error
	problem := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, errkind.Errorf(errkind.Invalid, format, args...))
		}
	}
	c.Classes.validate(problem)
	for _, n := range []struct {
		name      string
		value     int64
		low, high int64
	}{
		{"Alpha", c.Alpha, 1, 8000}, {"Beta", c.Beta, 1, 8000}, {"Gamma", c.Gamma, 1, 8000}, {"Epsilon", c.Epsilon, 1, 1_000_000},
		{"Floor", c.Floor, 1, 500},
		{"Burst", int64(c.Burst), 1, int64(c.MaxHops)}, {"Guesses", int64(c.Guesses), 1, int64(c.MaxHops)},
		{"ZoneHops", int64(c.ZoneHops), 1, int64(c.MaxHops)},
		{"Resplits", int64(c.Resplits), 1, 16}, {"MaxHops", int64(c.MaxHops), 1, 255}, {"ZoneTickets", int64(c.ZoneTickets), 1, 1 << 20},
		{"Wakes", int64(c.Wakes), 1, 1 << 16}, {"HighPressure", int64(c.HighPressure), 1, 1000},
		{"AgeWeight", c.AgeWeight, 1, 1_000_000}, {"FitWeight", c.FitWeight, 1, 1_000_000}, {"ChurnWeight", c.ChurnWeight, 1, 1_000_000},
	} {
		problem(n.value < n.low || n.value > n.high, "flow: %s is %d; want %d to %d", n.name, n.value, n.low, n.high)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"Period", c.Period}, {"Stale", c.Stale}, {"Pace", c.Pace}, {"Patience", c.Patience}, {"ProbeTimeout", c.ProbeTimeout},
		{"GrantTTL", c.GrantTTL}} {
		problem(d.value < time.Microsecond || d.value > time.Hour, "flow: %s is %v; want 1us to 1h", d.name, d.value)
	}
	problem(c.Stale < c.Period, "flow: Stale is %v, less than the Period of digests, %v: every zone would be taken for dead; want "+
		"several periods", c.Stale, c.Period)
	problem(c.Pace > c.Patience, "flow: Pace is %v, longer than Patience, %v: a ticket would never hop after its burst", c.Pace, c.Patience)
	if len(problems) == 0 {
		return nil
	}
	return errkind.Errorf(errkind.Invalid, "%w", errors.Join(problems...))
}
