package node

import (
	"cmp"
	"errors"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/departure"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/federation/floor"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/joint"
	"sluice.dev/sluice/internal/core/node/holds"
	"sluice.dev/sluice/internal/core/node/reservations"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/timeline"
)

// MaxNumber bounds a node's number.
const MaxNumber = reservations.MaxNumber

// NumberOf is the number of the node that made a token, NumberOfReservation of the one that gave out a reservation's id.
func NumberOf(t job.Token) int { return holds.NumberOf(t) }

// NumberOfReservation see NumberOf.
func NumberOfReservation(id uint64) int { return reservations.NumberOf(id) }

// maxReservations keeps a slice's closed time below what a timeline bears, with room for what is not asked for by people.
const maxReservations = timeline.Max / 2

// Config is how a node behaves. Zero durations and limits take the default named with them.
type Config struct {
	// ID of the node and Zone it belongs to. Both are needed.
	ID   job.NodeID
	Zone job.ZoneID
	// Number tells the nodes of a zone apart in their tokens: of two nodes with different numbers none are the same. From 0,
	// which is right for a node alone, to MaxNumber.
	Number int
	// Rack and Block that it is in; empty: in none that another node is in. It reports them with each of its slices.
	Rack, Block string
	// Address at which other machines reach this one, which it reports likewise; empty: none does, or nobody knows.
	Address string
	// Horizon is how far ahead gaps are looked for and a lease may start. Default 1 h.
	Horizon time.Duration
	// GrantTTL is how long a hold stands by the node's own clock. Default 200 ms.
	GrantTTL time.Duration
	// ResultRetry is the time between two sendings of an unacknowledged message: Start, Stop, Result, Settle. Default 1 s.
	ResultRetry time.Duration
	// MinGap is the shortest gap worth a message. Default 100 ms.
	MinGap time.Duration
	// TruncateGrace is what a running subjob still gets at most when its time is taken at once, so that it can be warned and leave a
	// checkpoint: its job's grace, 2 s at least. Default 2 s.
	TruncateGrace time.Duration
	// Overdue is how long after its lease's end a subjob may remain unconfirmed before the executor is told to stop it.
	// Its supervisor ends it at the end by itself: this is the second line. Default 5 s.
	Overdue time.Duration
	// Refresh repeats all offers and the inventory, for a fabric that loses messages or a zone that restarts alone. 0:
	// never, because within one process nothing is lost.
	Refresh time.Duration
	// PastTolerance is how long ago a person's reservation may start, for calls that took their time. Default 1 min.
	PastTolerance time.Duration
	// Search has tickets ask the node for places (mechanism laminar), checked; nil: none do.
	Search *search.Config
	// Gates to which slices are reported; none: one.
	Gates protocol.Gates
	// Market is that of the node's own floor, where jobs that wait negotiate (mechanism laminar): its policy and terms; nil: there is none.
	Market *floor.Config
	// Host is the host's memory, which all slices share, and the chance that what runs there needs more; without it nothing is refused for
	// that.
	Host joint.Config
	// Airlock is where the lines of the host's memory are; its own defaults.
	Airlock airlock.Config
	// HandOver is how long before the machine is gone for good (protocol.Stock.Until) its slices are closed. Default 10 s.
	HandOver time.Duration
	// Fixed: what runs here can't be given more time than it began with (a Pod's end can only be moved earlier), so no lease is extended.
	Fixed bool
	// MaxReservations bounds how many reservations one slice may have, leases apart. Default 256.
	MaxReservations int
}

// withDefaults fills what was left out.
func (c Config) withDefaults() Config {
	c.Horizon = cmp.Or(c.Horizon, time.Hour)
	c.GrantTTL = cmp.Or(c.GrantTTL, 200*time.Millisecond)
	c.ResultRetry = cmp.Or(c.ResultRetry, time.Second)
	c.MinGap = cmp.Or(c.MinGap, 100*time.Millisecond)
	c.TruncateGrace = cmp.Or(c.TruncateGrace, 2*time.Second)
	c.Overdue = cmp.Or(c.Overdue, 5*time.Second)
	c.PastTolerance = cmp.Or(c.PastTolerance, time.Minute)
	c.HandOver = cmp.Or(c.HandOver, departure.HandOver)
	c.MaxReservations = cmp.Or(c.MaxReservations, 256)
	return c
}

// Validate returns every problem of the configuration at once, as one error of kind Invalid, or nil.
func (c Config) Validate() error {
	var problems []error
	problem := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, errkind.Errorf(errkind.Invalid, format, args...))
		}
	}
	problem(c.Address != "" && !protocol.SoundAddress(c.Address), "node: Address is %.80q; want a host's name or an IP", c.Address)
	problem(c.ID == "", "node: ID is empty; give the node a name")
	problem(c.Zone == "", "node: Zone is empty; name the zone the node belongs to")
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"Horizon", c.Horizon}, {"GrantTTL", c.GrantTTL}, {"ResultRetry", c.ResultRetry}, {"MinGap", c.MinGap},
		{"TruncateGrace", c.TruncateGrace}, {"Overdue", c.Overdue}, {"Refresh", c.Refresh}, {"PastTolerance", c.PastTolerance},
		{"HandOver", c.HandOver},
	} {
		problem(d.value < 0, "node: %s is %v; it can't be negative", d.name, d.value)
	}
	if c.Search != nil {
		_, known := c.Search.Index(c.Zone)
		problem(!known, "node: zone %q is none of those in which tickets search", c.Zone)
	}
	problem(c.Number < 0 || c.Number > MaxNumber, "node: Number is %d; it must be within 0 and %d", c.Number, MaxNumber)
	problem(c.MaxReservations < 0 || c.MaxReservations > maxReservations,
		"node: MaxReservations is %d; it must be within 1 and %d, or 0 for the default", c.MaxReservations, maxReservations)
	if err := c.Host.WithDefaults().Validate(); err != nil {
		problems = append(problems, err)
	}
	if err := c.Airlock.WithDefaults().Validate(); err != nil {
		problems = append(problems, err)
	}
	if len(problems) == 0 {
		return nil
	}
	return errkind.Errorf(errkind.Invalid, "%w", errors.Join(problems...))
}
