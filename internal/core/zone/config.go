package zone

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/gang"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/home/view"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
)

// Config of a zone.
type Config struct {
	ID job.ZoneID
	// Own are the nodes that come with the zone, in its process; none: all do. What others may have it keep is bounded.
	Own []job.NodeID
	// Gates that jobs come from; none: one.
	Gates protocol.Gates
	// Policy picks among interested jobs. Required.
	Policy policy.Policy
	// Market negotiates (mechanism jasda): jobs bid with variants, and Policy orders rigid jobs and which jobs are asked. nil: jobs signal
	// interest and Policy picks (mechanism sja).
	Market *auction.Config
	// Horizon is how far an open gap is offered. Default 1 h.
	Horizon time.Duration
	// MinWindow is the shortest gap that is offered at all. Default 1 s.
	MinWindow time.Duration
	// Retry is how often an unanswered message to a node or the gate is repeated. Default search.Config.Retry.
	Retry time.Duration
	// AskTTL is how long an unanswered Ask blocks its slice. Default 1 s.
	AskTTL time.Duration
	// Skew is the clock skew allowed for before the claim of a silent node is given up after its lease's end. Default 5 s.
	Skew time.Duration
	// Close is how long a round of mechanism sja waits for agents that have not answered; jasda has its own. Default 200 ms.
	Close time.Duration
	// Backoff is the first pause of a job after a subjob without progress; it doubles with each in a row. Default 500 ms.
	Backoff time.Duration
	// Rigid is how many waiting rigid jobs hold a reservation, and whether others may start before them. The zero value is
	// EASY backfill: one does, and they may (backfill.Default is another). With Reserve 0 and Overtake it is first fit: none does. More
	// than 128 never do.
	Rigid backfill.Discipline
	// Starvation is when a job has waited too long, and what it may then be given before others.
	Starvation starvation.Limit
	// Archive makes finished jobs leave to the archive; nil: they stay until the gate makes them be forgotten.
	Archive *filing.Config
	// Ends is the share of subjobs, in parts per million, that the end of their gap may cut short where that is learned and they would
	// lose their work (core/ends); 0: it is not learned.
	Ends int64
	// Search makes jobs look for places with tickets (mechanism laminar), checked; nil: windows are offered.
	Search *search.Config
	// Alone: there is no other zone, so no gang borrows slices of one.
	Alone bool
	// MaxKills is how many waves of subjobs in a row may be ended from outside before the job is Failed; no less than its own
	// maxFailures. Default 30.
	MaxKills int
	// Ports at which members of gangs over several nodes may meet; zero: they are told of none, as where nothing runs.
	Ports gang.Ports
}

func (c Config) withDefaults() Config {
	c.Horizon = cmp.Or(c.Horizon, time.Hour)
	c.MinWindow = cmp.Or(c.MinWindow, time.Second)
	c.Retry = cmp.Or(c.Retry, c.Search.Retry())
	c.AskTTL = cmp.Or(c.AskTTL, time.Second)
	c.Skew = cmp.Or(c.Skew, 5*time.Second)
	c.Backoff = cmp.Or(c.Backoff, 500*time.Millisecond)
	c.Close = cmp.Or(c.Close, 200*time.Millisecond)
	if c.Rigid == (backfill.Discipline{}) {
		c.Rigid = backfill.Discipline{Reserve: 1, Overtake: true, Gangs: c.Search != nil}
	}
	c.MaxKills = cmp.Or(c.MaxKills, 30)
	if c.Market != nil {
		m := c.Market.WithDefaults()
		if c.Policy != nil {
			m = c.Market.Under(c.Policy)
		}
		c.Market = &m
	}
	return c
}

// ledger is how the zone's ledger works.
func (c Config) ledger(self protocol.Address) home.Config {
	to := home.Config{
		Self: self, Gates: c.Gates, Archive: c.Archive, Retry: c.Retry, AskTTL: c.AskTTL, Skew: c.Skew, Backoff: c.Backoff,
		MaxKills: c.MaxKills, Ports: c.Ports,
	}
	if m := c.Market; m != nil {
		trust := m.Trust()
		to.Trust, to.Refill, to.PurseTime = &trust, m.Refill, auction.PurseTime
	}
	return to
}

// floor is how the zone's floor works.
func (c Config) floor(self protocol.Address) market.FloorConfig {
	to := market.FloorConfig{
		Self: self, Policy: c.Policy, Market: c.Market, Horizon: c.Horizon, MinWindow: c.MinWindow, Retry: c.Retry, Close: c.Close,
		Starvation: c.Starvation,
	}
	if to.Market != nil {
		to.Close = to.Market.Close
	}
	return to
}

// planner is how the planner of rigid jobs works.
func (c Config) planner() backfill.Config {
	return backfill.Config{Discipline: c.Rigid, Retry: c.Retry, AskTTL: c.AskTTL, Late: max(0, c.Starvation.WithDefaults().Places),
		ByAge: c.Search != nil}
}

// view is how the zone's view works.
func (c Config) view() view.Config {
	to := view.Config{Policy: c.Policy.Name(), Horizon: c.Horizon}
	if m := c.Market; m != nil {
		trust := m.Trust()
		to.Trust = &trust
	}
	return to
}

// Validate lists every problem of c.
func (c Config) Validate() error {
	var errs []error
	if c.ID == "" {
		errs = append(errs, errors.New("zone: it needs an id"))
	}
	if c.Policy == nil {
		errs = append(errs, errors.New("zone: it needs a policy"))
	}
	c = c.withDefaults()
	if c.Market != nil {
		if err := c.Market.Validate(); err != nil {
			errs = append(errs, err)
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"horizon", c.Horizon}, {"minWindow", c.MinWindow}, {"retry", c.Retry}, {"askTTL", c.AskTTL}, {"skew", c.Skew},
		{"backoff", c.Backoff}, {"close", c.Close},
	} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("zone: %s is %v, it must be positive", d.name, d.value))
		}
	}
	if c.Rigid.Reserve < 0 {
		errs = append(errs, fmt.Errorf("zone: %d rigid jobs are to hold a reservation, it must be 0 or more", c.Rigid.Reserve))
	}
	if c.Ends < 0 || c.Ends >= forecast.One {
		errs = append(errs, fmt.Errorf("zone: a share of %d in a million subjobs may be cut short, it must be at least 0 and below 1",
			c.Ends))
	}
	if err := c.Starvation.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("zone: %w", err))
	}
	if c.Archive != nil {
		if err := c.Archive.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("zone: %w", err))
		}
	}
	if c.Search != nil {
		if !c.Rigid.Gangs {
			errs = append(errs, errors.New("zone: where tickets search, only jobs of several slices stand in line; want discipline gangs"))
		}
		if _, known := c.Search.Index(c.ID); !known {
			errs = append(errs, fmt.Errorf("zone: %q is none of the zones in which tickets search", c.ID))
		}
	}
	if c.MinWindow > c.Horizon {
		errs = append(errs, fmt.Errorf("zone: minWindow %v is longer than the horizon %v: nothing would be offered", c.MinWindow,
			c.Horizon))
	}
	if err := errors.Join(errs...); err != nil {
		return errkind.Errorf(errkind.Invalid, "%w", err)
	}
	return nil
}
