// Package arrangement puts actors together: today the one gate, zone and node of a machine that runs alone. A daemon and whoever
// plays its tape again make the same actors of the same choices.
package arrangement

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/zone"
)

// ZoneName is the one zone of a machine that runs alone.
const ZoneName = "local"

// Choice is what people choose of a machine that runs alone.
type Choice struct {
	Policy policy.Policy
	// Mechanism is sja or jasda; Market how jasda negotiates, nil: with the defaults.
	Mechanism string
	Market    *market.Config
	// Rigid is how rigid jobs wait for one another (backfill.Named); empty: backfill.Default.
	Rigid string
	// Starvation is when a job has waited too long; zero: the defaults.
	Starvation starvation.Limit
	// Horizon is how far ahead windows are offered.
	Horizon time.Duration
	Node    job.NodeID
	// Ends is the share of predictions of the ends of gaps, in parts per million, that may fail; 0, as in tapes of before there was a
	// choice: none is made.
	Ends int64
	// Archive has jobs that are over leave to the archive; nil, as in tapes of before there was one: they stay.
	Archive *filing.Config
}

// Config checks the choice. The error, of kind Invalid, says everything that is wrong.
func (c Choice) Config() (Config, error) {
	negotiates, unknown := c.market()
	rigid, unplanned := backfill.Named(cmp.Or(c.Rigid, backfill.Default))
	if err := errors.Join(unknown, unplanned); err != nil {
		return Config{}, errkind.Errorf(errkind.Invalid, "%w", err)
	}
	return Config{
		Gate: gate.Config{Zones: gate.Alone(ZoneName), Horizon: c.Horizon, External: true, Archive: c.Archive},
		Zone: zone.Config{ID: ZoneName, Policy: c.Policy, Market: negotiates, Horizon: c.Horizon, Rigid: rigid, Starvation: c.Starvation, Ends: c.Ends, Archive: c.Archive},
		Node: node.Config{ID: c.Node, Zone: ZoneName, Horizon: c.Horizon},
	}, nil
}

// market is the market that the mechanism has; nil: sja, where the policy picks.
func (c Choice) market() (*market.Config, error) {
	switch {
	case c.Mechanism == "sja" && c.Market != nil:
		return nil, errors.New("market: mechanism sja does not negotiate; start with --mechanism jasda, or leave market out of --config")
	case c.Mechanism == "sja":
		return nil, nil
	case c.Mechanism != "jasda":
		return nil, fmt.Errorf("mechanism %q is not known; want sja or jasda", c.Mechanism)
	case c.Market != nil:
		return c.Market, c.Market.Validate()
	}
	m := market.Config{}.WithDefaults()
	return &m, nil
}

// Config of the three actors of one process.
type Config struct {
	Gate gate.Config
	Zone zone.Config
	Node node.Config
}

// Build returns what makes fresh actors with this configuration, as often as it is called. The error lists everything
// that is wrong with the configuration.
func (c Config) Build() (func() actor.Set, error) {
	if _, err := c.make(); err != nil {
		return nil, err
	}
	return func() actor.Set {
		a, err := c.make()
		invariant.Check(err == nil, "a configuration that was good has become bad: %v", err)
		return a
	}, nil
}

func (c Config) make() (actor.Set, error) {
	g, err1 := gate.New(c.Gate)
	z, err2 := zone.New(c.Zone)
	err3 := c.Node.Validate()
	var err4 error
	if len(c.Gate.Zones) != 1 || c.Zone.ID != c.Gate.Zones[0].ID || c.Zone.ID != c.Node.Zone {
		err4 = errkind.Errorf(errkind.Invalid, "the gate sends jobs to zones %v and the node offers to zone %q, but the zone is %q: they must be one", c.Gate.Zones, c.Node.Zone, c.Zone.ID)
	}
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return actor.Set{}, err
	}
	return actor.Set{Gate: g, Zone: z, Node: node.New(c.Node)}, nil
}
