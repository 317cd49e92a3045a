package search

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Config of a search; the gate and all zones have the same one. It is shared, and nobody changes it.
type Config struct {
	// Flow has two defaults of its own here: Guesses is 1, Epsilon ten fragments for each second of the Period, one at least.
	Flow flow.Config
	// Gates that draw zones; none: one.
	Gates protocol.Gates
	// Zones in which tickets search, in the order that numbers them.
	Zones []Zone
	// Lag is how long a zone waits for its nodes' words of a period before it says its own. Default a tenth of the period.
	Lag time.Duration
	// Name names the tickets of a job, of one life, in turn; nil: TicketID.
	Name func(id job.ID, of job.Generation, turn uint64) flow.TicketID
}

// Zone is one zone with its nodes, in the order that numbers them.
type Zone struct {
	ID    job.ZoneID
	Nodes []job.NodeID
}

// Checked is the configuration with its defaults, or what is wrong with it.
func (c Config) Checked() (*Config, error) {
	if c.Flow.Guesses == 0 { // nodes tell of room where somebody waits
		c.Flow.Guesses = 1
	}
	if c.Flow.Epsilon == 0 { // the older digests are, the more of the room that they show is noise
		c.Flow.Epsilon = min(max(1000, c.Flow.Period.Milliseconds()*10), 1_000_000)
	}
	cfg, err := c.Flow.Checked()
	errs := []error{err}
	if len(c.Zones) == 0 || len(c.Zones) > flow.MaxZones {
		errs = append(errs, fmt.Errorf("flow: there are %d zones; give 1 to %d", len(c.Zones), flow.MaxZones))
	}
	if c.Lag < 0 {
		errs = append(errs, fmt.Errorf("flow: lag is %v, it must be positive", c.Lag))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errkind.Errorf(errkind.Invalid, "%w", err)
	}
	c.Flow = *cfg
	c.Lag = cmp.Or(c.Lag, cfg.Period/10)
	if c.Name == nil {
		c.Name = TicketID
	}
	return &c, nil
}

// Retry is after how long a gate and a home say again what nobody has answered, where no other time is given: 1 s, and less where tasks
// give up sooner, so that one which is lost twice is still heard in time. Of no search (nil) too.
func (c *Config) Retry() time.Duration {
	if c == nil {
		return time.Second
	}
	return min(time.Second, c.Flow.Patience/8)
}

// TicketID is the id of a job's ticket: of one life, in turn. The same for every caller, and different from other jobs'.
func TicketID(id job.ID, of job.Generation, turn uint64) flow.TicketID {
	return flow.TicketID(digest.Key(string(id), int64(of), int64(turn)))
}

// Index of a zone; false if tickets do not search there.
func (c *Config) Index(id job.ZoneID) (flow.ZoneID, bool) {
	for i := range c.Zones {
		if c.Zones[i].ID == id {
			return flow.ZoneID(i), true
		}
	}
	return 0, false
}

// Phase is when in every period the nodes of a zone say what they have free: not all zones at once.
func (c *Config) Phase(z flow.ZoneID) time.Duration {
	return time.Duration(int64(c.Flow.Period) * int64(z) / int64(len(c.Zones)))
}

// At is a zone's address.
func (c *Config) At(z flow.ZoneID) protocol.Address {
	return protocol.Address{Role: protocol.Zone, ID: string(c.Zones[z].ID)}
}

// Beat is the first instant after now of the period's beats, at a phase of it.
func Beat(now quantity.Instant, period, phase time.Duration) quantity.Instant {
	since := (int64(now) - int64(phase)) % int64(period)
	if since < 0 {
		since += int64(period)
	}
	return now.Add(period - time.Duration(since))
}
