// Package arrangement puts actors together: a gate with the zones and nodes of one process, of which a single machine has one each. A
// daemon and a replay of its tape make the same actors of the same choices.
package arrangement

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/federation/floor"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/gang"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/joint"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/zone"
)

// ZoneName is the one zone of a machine that runs alone; of several it is what their names begin with.
const ZoneName = "local"

// Choice is what people choose of a daemon.
type Choice struct {
	Policy policy.Policy
	// Mechanism is sja, jasda or laminar; Market how jasda negotiates, and laminar at its nodes, Flow how laminar's tickets search, nil:
	// with the defaults.
	Mechanism string
	Market    *auction.Config
	Flow      *flow.Config
	// Capacities of the existing slices, from which laminar's size classes are made.
	Capacities []quantity.Amount
	// Rigid is how rigid jobs wait for one another (backfill.Named); empty: backfill.Default.
	Rigid string
	// Starvation is when a job has waited too long; zero: the defaults.
	Starvation starvation.Limit
	// Horizon is how far ahead windows are offered.
	Horizon time.Duration
	Node    job.NodeID
	// Zones and Nodes are how many there are of each; 0: one, and a node for each zone. Node i offers to zone i mod Zones.
	Zones, Nodes int
	// ZoneNames are those of the zones, as many as Zones; none: they are numbered.
	ZoneNames []job.ZoneID
	// Places are where the nodes stand, in their order; none: nowhere that another does.
	Places []Location
	// Address at which other machines reach this one; empty: none does.
	Address string
	// Ports at which members of gangs may meet; zero, as in tapes of before there was a choice: they are told of none.
	Ports gang.Ports
	// Ends is the share of predictions of the ends of gaps, in parts per million, that may fail; 0, as in tapes of before there was a
	// choice: none is made.
	Ends int64
	// Airlock is where the lines of the host's memory are; zero, as in tapes of before there was a choice: the defaults.
	Airlock airlock.Config
	// Memory is the host's, which its nodes share alike, and what may run there together; zero, as in tapes of before there was a choice:
	// it is not counted.
	Memory joint.Config
	// Fixed: what runs on the nodes can't be given more time than it began with (node.Config.Fixed).
	Fixed bool
	// Archive makes finished jobs leave to the archive; nil, as in tapes from before there was one: they stay.
	Archive *filing.Config
}

// Location is where a node stands: its rack, whose name counts within its block, and its block.
type Location struct{ Rack, Block string }

// Config checks the choice. The error, of kind Invalid, says everything that is wrong.
func (c Choice) Config() (Config, error) {
	negotiates, unknown := c.market()
	rigid, unplanned := backfill.Named(cmp.Or(c.Rigid, backfill.Default))
	if err := errors.Join(unknown, unplanned, c.counted(), c.searched(), c.met()); err != nil {
		return Config{}, errkind.Errorf(errkind.Invalid, "%w", err)
	}
	config := Config{Gate: gate.Config{Horizon: c.Horizon, External: c.Mechanism != Laminar, Archive: c.Archive}}
	zones, nodes := max(1, c.Zones), max(1, c.Zones, c.Nodes)
	for i := range zones {
		id := job.ZoneID(numbered(ZoneName, i, zones))
		if len(c.ZoneNames) > 0 {
			id = c.ZoneNames[i]
		}
		config.Gate.Zones = append(config.Gate.Zones, gate.Zone{ID: id})
		config.Zones = append(config.Zones, zone.Config{
			ID: id, Policy: c.Policy, Market: negotiates, Horizon: c.Horizon, Rigid: rigid, Starvation: c.Starvation, Ends: c.Ends,
			Archive: c.Archive, Ports: c.Ports,
		})
	}
	for i := range nodes {
		id, at := job.NodeID(numbered(string(c.Node), i, nodes)), &config.Gate.Zones[i%zones]
		at.Nodes = append(at.Nodes, id)
		config.Zones[i%zones].Own = append(config.Zones[i%zones].Own, id)
		config.Nodes = append(config.Nodes, node.Config{ID: id, Number: i, Zone: at.ID, Horizon: c.Horizon, Airlock: c.Airlock,
			Host: c.Memory, Fixed: c.Fixed, Address: c.Address})
		config.Nodes[i].Host.Memory /= quantity.Amount(nodes)
		if i < len(c.Places) {
			n := &config.Nodes[i]
			n.Rack, n.Block = c.Places[i].Rack, c.Places[i].Block
		}
	}
	return c.search(config)
}

// Laminar is the mechanism under which jobs look for places with tickets (core/federation/flow).
const Laminar = "laminar"

// met says what is wrong with where members of gangs are to meet.
func (c Choice) met() error {
	if c.Ports != (gang.Ports{}) && !c.Ports.Valid() {
		return fmt.Errorf("gangs: ports %d-%d are no range of ports from 1024 to 65535", c.Ports.First, c.Ports.Last)
	}
	return nil
}

// searched says what is wrong with how tickets are to search.
func (c Choice) searched() error {
	switch {
	case c.Mechanism != Laminar && c.Flow != nil:
		return fmt.Errorf("flow: mechanism %s has no tickets; start with --mechanism laminar, or leave flow out of --config", c.Mechanism)
	case c.Mechanism == Laminar && len(c.Capacities) == 0:
		return errors.New("mechanism laminar: there is no slice to make size classes of")
	case c.Mechanism == Laminar && c.Rigid != "" && c.Rigid != backfill.Default:
		return fmt.Errorf("mechanism laminar: planner %q has rigid jobs stand in line, and here those of one slice look for places; "+
			"leave --rigid out", c.Rigid)
	}
	return nil
}

// search gives all actors the same configuration of tickets, where there are any.
func (c Choice) search(to Config) (Config, error) {
	if c.Mechanism != Laminar {
		return to, nil
	}
	var s search.Config
	if c.Flow != nil {
		s.Flow = *c.Flow
	}
	s.Flow.Classes = flow.Levels(c.Capacities)
	for i := range to.Gate.Zones {
		s.Zones = append(s.Zones, search.Zone{ID: to.Gate.Zones[i].ID, Nodes: to.Gate.Zones[i].Nodes})
	}
	checked, err := s.Checked()
	if err != nil {
		return Config{}, err
	}
	to.Gate.Search = checked
	for i := range to.Zones {
		to.Zones[i].Search = checked
	}
	for i := range to.Nodes {
		to.Nodes[i].Search, to.Nodes[i].GrantTTL = checked, checked.Flow.GrantTTL
		to.Nodes[i].Market = &floor.Config{Policy: c.Policy, Market: to.Zones[0].Market}
	}
	return to, nil
}

// numbered is the name of the i-th of n: as it is where there is one.
func numbered(name string, i, n int) string {
	if n == 1 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, i+1)
}

// Bounds of Choice.Zones and Choice.Nodes: one process serves no more.
const (
	MaxZones = 256
	MaxNodes = 1024
)

// counted says what is wrong with how many there are.
func (c Choice) counted() error {
	switch {
	case c.Zones < 0 || c.Zones > MaxZones:
		return fmt.Errorf("zones: %d is out of range; want 1 to %d", c.Zones, MaxZones)
	case len(c.ZoneNames) > 0 && len(c.ZoneNames) != c.Zones:
		return fmt.Errorf("zones: %d names are given for %d zones", len(c.ZoneNames), c.Zones)
	case c.Nodes < 0 || c.Nodes > MaxNodes:
		return fmt.Errorf("nodes: %d is out of range; want 1 to %d", c.Nodes, MaxNodes)
	case c.Nodes > 0 && c.Nodes < c.Zones:
		return fmt.Errorf("nodes: there are %d for %d zones; each zone needs one: say at least %d, or leave nodes out", c.Nodes, c.Zones,
			c.Zones)
	}
	return nil
}

// market is the market that the mechanism has; nil: sja, where the policy picks.
func (c Choice) market() (*auction.Config, error) {
	switch {
	case c.Mechanism == "sja" && c.Market != nil:
		return nil, errors.New("market: mechanism sja does not negotiate; start with --mechanism jasda, or leave market out of --config")
	case c.Mechanism == "sja":
		return nil, nil
	case c.Mechanism != "jasda" && c.Mechanism != Laminar:
		return nil, fmt.Errorf("mechanism %q is not known; want sja, jasda or laminar", c.Mechanism)
	case c.Market != nil:
		return c.Market, c.Market.Validate()
	}
	m := auction.Config{}.WithDefaults()
	return &m, nil
}

// Config of the actors of one process. Nodes are numbered in their order; the gate's zones are those of Zones, with their nodes.
type Config struct {
	Gate  gate.Config
	Zones []zone.Config
	Nodes []node.Config
}

// Alone is the configuration of one of each.
func Alone(g gate.Config, z zone.Config, n node.Config) Config {
	return Config{Gate: g, Zones: []zone.Config{z}, Nodes: []node.Config{n}}
}

// For a network between a node and its zone. A hold outlasts the slowest round trip that links live with; what a lost message said is said
// again within refresh.
const (
	joinedGrant   = 2 * time.Second
	joinedRefresh = 5 * time.Second
)

// Joined returns a function that makes the actors of a machine that has joined a cluster: its node alone, whose number the head has given
// (node.Config.Number). The error, of kind Invalid, lists everything that is wrong.
func Joined(n node.Config) (func() actor.Set, error) {
	n.GrantTTL, n.Refresh = cmp.Or(n.GrantTTL, joinedGrant), cmp.Or(n.Refresh, joinedRefresh)
	if err := n.Validate(); err != nil {
		return nil, err
	}
	return func() actor.Set {
		return actor.Set{Nodes: []actor.NodeAt{{ID: n.ID, Zone: n.Zone, Node: node.New(n)}}}
	}, nil
}

// Build returns a function that makes fresh actors with this configuration at every call. The error lists everything that is wrong with the
// configuration.
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
	g, err := gate.New(c.Gate)
	errs := []error{err, c.agree()}
	set := actor.Set{Gates: actor.OneGate(g)}
	for i := range c.Zones {
		alone := c.Zones[i]
		alone.Alone = len(c.Zones) == 1
		z, err := zone.New(alone)
		errs = append(errs, err)
		set.Zones = append(set.Zones, actor.ZoneAt{ID: c.Zones[i].ID, Zone: z})
	}
	for i := range c.Nodes {
		if err := c.Nodes[i].Validate(); err != nil {
			errs = append(errs, err)
			continue
		}
		set.Nodes = append(set.Nodes, actor.NodeAt{ID: c.Nodes[i].ID, Zone: c.Nodes[i].Zone, Node: node.New(c.Nodes[i])})
	}
	if err := errors.Join(errs...); err != nil {
		return actor.Set{}, err
	}
	return set, nil
}

// agree says where gate, zones and nodes are configured to know different ones of each other.
func (c Config) agree() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(c.Zones) == 0 || len(c.Nodes) == 0 {
		wrong("there are %d zones and %d nodes: at least one of each is needed", len(c.Zones), len(c.Nodes))
	}
	known := map[job.ZoneID]bool{}
	for i := range c.Zones {
		known[c.Zones[i].ID] = true
	}
	of := map[job.NodeID]job.ZoneID{}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if _, twice := of[n.ID]; twice || n.Number != i {
			wrong("nodes[%d] is %q with the number %d: give each a name of its own, and the number %d", i, n.ID, n.Number, i)
		}
		if of[n.ID] = n.Zone; !known[n.Zone] {
			wrong("node %q offers to zone %q, which is none of the zones", n.ID, n.Zone)
		}
	}
	if len(c.Gate.Zones) != len(c.Zones) {
		wrong("the gate knows %d zones, there are %d", len(c.Gate.Zones), len(c.Zones))
	}
	for _, z := range c.Gate.Zones {
		if !known[z.ID] {
			wrong("the gate sends jobs to zone %q, which is none of the zones", z.ID)
		}
		for _, n := range z.Nodes {
			if at, is := of[n]; !is || at != z.ID {
				wrong("the gate has node %q in zone %q, where it is not", n, z.ID)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return errkind.Errorf(errkind.Invalid, "%w", err)
	}
	return nil
}
