package host

import (
	"errors"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/zone"
	"sluice.dev/sluice/internal/drive"
)

// Config of the three actors of one process.
type Config struct {
	Gate gate.Config
	Zone zone.Config
	Node node.Config
}

// Build returns what makes fresh actors with this configuration, as often as it is called. The error lists everything
// that is wrong with the configuration.
func (c Config) Build() (func() drive.Actors, error) {
	if _, err := c.make(); err != nil {
		return nil, err
	}
	return func() drive.Actors {
		a, err := c.make()
		invariant.Check(err == nil, "a configuration that was good has become bad: %v", err)
		return a
	}, nil
}

func (c Config) make() (drive.Actors, error) {
	g, err1 := gate.New(c.Gate)
	z, err2 := zone.New(c.Zone)
	err3 := c.Node.Validate()
	var err4 error
	if c.Zone.ID != c.Gate.Zone || c.Zone.ID != c.Node.Zone {
		err4 = errkind.Errorf(errkind.Invalid, "the gate sends jobs to zone %q and the node offers to zone %q, but the zone is %q: they must be one", c.Gate.Zone, c.Node.Zone, c.Zone.ID)
	}
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return drive.Actors{}, err
	}
	return drive.Actors{Gate: g, Zone: z, Node: node.New(c.Node)}, nil
}
