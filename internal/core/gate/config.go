package gate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/gate/queues"
	"sluice.dev/sluice/internal/core/gate/stock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// Config of a gate.
type Config struct {
	// ID of the gate, and all Gates with it: it has the jobs whose names are its own, and the first has the queues' settings. Both are
	// empty for one alone.
	ID    job.GateID
	Gates protocol.Gates
	// Zones that are home to jobs, at least one. Queues' caps depend on their order: append new ones.
	Zones []Zone
	// Retain is how long a job is kept after its end. Default 168 h.
	Retain time.Duration
	// Retry is after how long an unanswered message is repeated; it doubles up to 64 times that. Default search.Config.Retry.
	Retry time.Duration
	// Horizon is the longest window a job may count on. Default 1 h.
	Horizon time.Duration
	// MaxJobs bounds the unfinished jobs of all queues together. Default 1,048,576.
	MaxJobs int
	// Archive makes finished jobs leave to the archive; nil: they stay until their retention is over.
	Archive *filing.Config
	// Search has tickets search among zones (mechanism laminar), checked; nil: none do.
	Search *search.Config
	// External accepts jobs whose own agents cut them: agents are asked.
	External bool
}

// Zone is one zone as the gate is configured to know it.
type Zone = stock.Zone

// Alone is the list of one zone that every node offers to.
func Alone(id job.ZoneID) []Zone { return []Zone{{ID: id}} }

// DefaultQueue always exists.
const DefaultQueue = queues.Default

func (c Config) withDefaults() Config {
	c.Retain = cmp.Or(c.Retain, 168*time.Hour)
	c.Retry = cmp.Or(c.Retry, c.Search.Retry())
	c.Horizon = cmp.Or(c.Horizon, time.Hour)
	c.MaxJobs = cmp.Or(c.MaxJobs, 1<<20)
	return c
}

// Validate lists every problem of c.
func (c Config) Validate() error {
	errs := validateZones(c.Zones)
	if !slices.Contains(c.Gates, c.ID) && (len(c.Gates) > 0 || c.ID != "") {
		errs = append(errs, fmt.Errorf("gate: %q is none of the gates %v", c.ID, c.Gates))
	}
	if c.Retain < 0 || c.Retry < 0 || c.Horizon < 0 || c.MaxJobs < 0 {
		errs = append(errs, fmt.Errorf("gate: retain %v, retry %v, horizon %v and maxJobs %d must not be negative", c.Retain, c.Retry,
			c.Horizon, c.MaxJobs))
	}
	if c.Archive != nil {
		errs = append(errs, c.Archive.Validate())
	}
	if err := errors.Join(errs...); err != nil {
		return errkind.Errorf(errkind.Invalid, "%w", err)
	}
	return nil
}

// validateZones lists what is wrong with the zones.
func validateZones(zones []Zone) (errs []error) {
	if len(zones) == 0 {
		errs = append(errs, errors.New("gate: it needs a zone"))
	}
	ids, nodes := map[job.ZoneID]bool{}, map[job.NodeID]job.ZoneID{}
	for i := range zones {
		z := &zones[i]
		if z.ID == "" || ids[z.ID] {
			errs = append(errs, fmt.Errorf("gate: zones[%d] is called %q; give each zone a name of its own", i, z.ID))
		}
		ids[z.ID] = true
		if len(z.Nodes) == 0 && len(zones) > 1 {
			errs = append(errs, fmt.Errorf("gate: zone %q has no node; name at least one, or leave the zone out", z.ID))
		}
		for _, n := range z.Nodes {
			if other, had := nodes[n]; had {
				errs = append(errs, fmt.Errorf("gate: node %q is one of zone %q and of zone %q; a node offers to one zone", n, other, z.ID))
			}
			nodes[n] = z.ID
		}
	}
	return errs
}

// listeners are how many the gate tells the settings of queues: all zones, then the other gates. With several gates the first owns the
// settings, and the others keep a copy.
func (c *Config) listeners() int {
	switch {
	case len(c.Gates) == 0:
		return len(c.Zones)
	case c.Gates[0] != c.ID:
		return 0
	}
	return len(c.Zones) + len(c.Gates) - 1
}

// listener is the address of the i-th listener.
func (c *Config) listener(i int) protocol.Address {
	if n := len(c.Zones); i >= n {
		return protocol.Address{Role: protocol.Gate, ID: string(c.Gates[i-n+1])}
	}
	return zone(c.Zones[i].ID)
}

func zone(id job.ZoneID) protocol.Address {
	return protocol.Address{Role: protocol.Zone, ID: string(id)}
}
