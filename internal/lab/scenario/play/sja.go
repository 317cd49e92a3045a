package play

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/federation/floor"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone"
	"sluice.dev/sluice/internal/lab/lender"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/sim"
	"sluice.dev/sluice/internal/lab/workload"
)

// playProtocol plays the scenario through the gate, the zones and the nodes of the live program. It returns how far it came
// and whether all jobs were over then.
func playProtocol(ctx context.Context, on stage) (quantity.Instant, bool, error) {
	s := on.scenario
	actors, err0 := newActors(s, on.mechanism, on.seed)
	if err0 != nil {
		return 0, false, err0
	}
	gates, err1 := actors.gates()
	zones, err2 := actors.zones()
	if err := errors.Join(err1, err2); err != nil {
		return 0, false, err
	}
	negotiates := on.mechanism.Market != nil && actors.search == nil
	specs := workload.Specs{
		Agents: negotiates, Continue: s.Settings.Continue, OverheadMax: s.Settings.OverheadMax, TauMin: s.Settings.TauMin,
		Grace: s.Settings.Grace, Cold: on.mechanism.Cold,
	}
	o := sim.Options{
		Start: quantity.Instant(epoch - time.Second), Gates: gates,
		Source: later{on.from}, Spec: func(j *workload.Job) (*job.Spec, error) {
			name, written := on.from.named[j.Number]
			if !written {
				return specs.Spec(j, j.Name())
			}
			return specs.Spec(j, job.ID(name))
		},
		Seed: on.seed, Network: links(s.Model.Network), Faults: faultsOf(s), Memory: hosts(s, on.mechanism),
		Guests: s.Guests.After(epoch, on.visits), Rebuild: actors.rebuild,
		Lenders: s.Pools.After(epoch, on.lent), Pilot: actors.pilot,
		Observer: &earlier{to: on.to},
		Progress: func(now quantity.Instant, live int) { on.progress(now.Add(-epoch), live) },
	}
	if negotiates {
		o.Agent = bidders(s)
	}
	if on.mail != nil {
		o.Mailed = on.mail.Count
	}
	for i, z := range zones {
		o.Zones = append(o.Zones, actor.ZoneAt{ID: s.ZoneName(i), Zone: z})
	}
	for i := range s.Nodes {
		o.Nodes = append(o.Nodes, sim.Node{ID: s.Nodes[i].ID, Actor: node.New(actors.node(s.Nodes[i].ID)), Slices: s.Nodes[i].Slices})
	}
	host := &landlord{lifts: map[string]quantity.Instant{}}
	o.Reply = host.answered
	world, err := sim.New(o)
	if err != nil {
		return 0, false, err
	}
	host.world = world
	prepare(s, world, on.world.queues)
	if s.Host != nil {
		host.tell(s.Nodes, on.world.host)
	}
	over, err := world.RunOut(ctx, s.Window.Limit.Add(epoch))
	at := world.Now().Add(-epoch)
	*on.market = world.Negotiation()
	*on.survival = world.Survival()
	world.FinishPilots()
	for i := range o.Nodes {
		*on.strains = append(*on.strains, o.Nodes[i].Actor.Strain(world.Now()))
		for _, r := range o.Nodes[i].Actor.Reclaims(world.Now()).Steps {
			r.At = r.At.Add(-epoch)
			*on.reclaims = append(*on.reclaims, r)
		}
	}
	slices.SortStableFunc(*on.reclaims, func(a, b status.ReclaimStep) int { return cmp.Compare(a.At, b.At) })
	for _, z := range zones {
		_, e := z.Learned()
		on.market.Kept, on.market.CutShort = on.market.Kept+e.Kept.N, on.market.CutShort+e.Kept.Cut
	}
	err = errors.Join(err, host.refused)
	if err != nil && ctx.Err() == nil {
		return at, false, err
	}
	return at, over, nil
}

// prepare sets up the cluster's queues and reservations.
func prepare(s *scenario.Scenario, world *sim.Sim, queues []string) {
	person := protocol.Address{Role: protocol.Person, ID: "scenario"}
	known := map[string]bool{gate.DefaultQueue: true}
	set := func(q protocol.Queue) {
		known[q.Name] = true
		world.At(0, protocol.Message{
			Kind: protocol.SetQueue, From: person, To: s.GateNames().First(), Body: &protocol.QueueSetting{Request: "queue " + q.Name,
				Queue: &q},
		})
	}
	for _, q := range s.Queues {
		set(q)
	}
	for _, name := range queues {
		if !known[name] {
			set(protocol.Queue{Name: name, Weight: 1})
		}
	}
	for i := range s.Faults {
		if f := &s.Faults[i]; f.Kind == scenario.DrainZone {
			world.At(f.At.Add(epoch), protocol.Message{
				Kind: protocol.DrainZone, From: person, To: s.GateNames().First(),
				Body: &protocol.Draining{Request: fmt.Sprint("drain ", i), Zone: f.Zone},
			})
		}
	}
	for i := range s.Reservations {
		r := s.Reservations[i].Reservation
		if r.Kind == protocol.ForForeign {
			continue
		}
		r.Start, r.Source = r.Start.Add(epoch), "scenario"
		if r.End != quantity.Never {
			r.End = r.End.Add(epoch)
		}
		world.At(s.Reservations[i].At.Add(epoch), protocol.Message{
			Kind: protocol.Reserve, From: person, To: protocol.Address{Role: protocol.Node, ID: string(s.Reservations[i].Node)},
			Body: &protocol.Booking{Request: fmt.Sprint("reservation ", i), Reservation: &r},
		})
	}
	holds(s, world, person)
}

// actorsOf makes the actors of a scenario under a policy, as often as they crash.
type actorsOf struct {
	s *scenario.Scenario
	m *Mechanism
	// search of tickets; nil where windows are offered.
	search *search.Config
}

// newActors are the actors under a mechanism.
func newActors(s *scenario.Scenario, m *Mechanism, seed uint64) (actorsOf, error) {
	a := actorsOf{s: s, m: m}
	if m.Flow == nil {
		return a, nil
	}
	c := search.Config{Flow: *m.Flow}
	c.Flow.Seed = seed
	c.Flow.GrantTTL = cmp.Or(c.Flow.GrantTTL, a.grantTTL())
	for i := range a.gate("").Zones {
		z := &a.gate("").Zones[i]
		c.Zones = append(c.Zones, search.Zone{ID: z.ID, Nodes: z.Nodes})
	}
	c.Gates = a.s.GateNames()
	var levels []quantity.Amount
	for i := range s.Nodes {
		for k := range s.Nodes[i].Slices {
			levels = append(levels, s.Nodes[i].Slices[k].Capacity[trp.Memory])
		}
	}
	c.Flow.Classes = flow.Levels(levels)
	checked, err := c.Checked()
	a.search = checked
	return a, err
}

// grantTTL is how long a node holds what it has granted.
func (a actorsOf) grantTTL() time.Duration { return 200*time.Millisecond + slack(a.s.Model.Network) }

// retain is how long the gate keeps a finished job: not at all, for memory is to grow with live jobs alone.
const retain = time.Second

// gates makes all of them.
func (a actorsOf) gates() (list []actor.GateAt, err error) {
	names := a.s.GateNames()
	if len(names) == 0 {
		names = protocol.Gates{""}
	}
	for _, id := range names {
		g, wrong := gate.New(a.gate(id))
		err = errors.Join(err, wrong)
		list = append(list, actor.GateAt{ID: id, Gate: g})
	}
	return list, err
}

func (a actorsOf) gate(id job.GateID) gate.Config {
	zones := make([]gate.Zone, max(1, a.s.Zones))
	for i := range zones {
		zones[i].ID = a.s.ZoneName(i)
	}
	for i := range a.s.Nodes {
		z := &zones[i%len(zones)]
		z.Nodes = append(z.Nodes, a.s.Nodes[i].ID)
	}
	return gate.Config{ID: id, Gates: a.s.GateNames(), Zones: zones, Horizon: a.s.Settings.Horizon, Retain: retain,
		MaxJobs: scenario.MaxGenerated, External: a.m.Market != nil && a.search == nil, Search: a.search}
}

// zones makes all of them.
func (a actorsOf) zones() (list []*zone.Zone, err error) {
	for i := range max(1, a.s.Zones) {
		z, wrong := zone.New(a.zone(a.s.ZoneName(i)))
		list, err = append(list, z), errors.Join(err, wrong)
	}
	return list, err
}

func (a actorsOf) zone(id job.ZoneID) zone.Config {
	c := zone.Config{
		ID: id, Policy: a.m.Policy, Rigid: a.m.Rigid, Starvation: a.s.Settings.Starvation, Horizon: a.s.Settings.Horizon,
		MinWindow: a.s.Settings.MinWindow, Ends: a.s.Settings.Ends,
		AskTTL: time.Second + slack(a.s.Model.Network), Retry: time.Second + slack(a.s.Model.Network),
		Search: a.search, Gates: a.s.GateNames(),
	}
	if a.m.Market != nil {
		m := *a.m.Market
		m.Close = min(m.Close+slack(a.s.Model.Network), time.Minute)
		c.Market = &m
	}
	return c
}

func (a actorsOf) node(id job.NodeID) node.Config {
	number := max(0, slices.IndexFunc(a.s.Nodes, func(n scenario.Node) bool { return n.ID == id }))
	c := node.Config{
		ID: id, Number: number, Zone: a.s.ZoneOf(number), Horizon: a.s.Settings.Horizon, MaxReservations: len(a.s.Reservations) + 1024,
		GrantTTL: a.grantTTL(), Search: a.search, Gates: a.s.GateNames(),
	}
	if a.search != nil && a.m.Market != nil {
		c.Market = &floor.Config{Policy: a.m.Policy, Market: a.m.Market}
	}
	if a.s.Memory != nil {
		c.Airlock, c.Host = a.s.Memory.Airlock, a.s.Memory.Joint
	}
	if a.s.Host != nil {
		c.TruncateGrace = atOnce
	}
	if a.s.Model.Network.Loss > 0 || len(a.s.Faults) > 0 {
		c.Refresh = 5 * time.Second
	}
	return c
}

// pilot is the node of a pilot, as its daemon is configured.
func (a actorsOf) pilot(id job.NodeID, number int, p *lender.Pool) actor.Node {
	c := a.node(id)
	c.Number, c.Zone, c.HandOver, c.TruncateGrace = number, a.s.ZoneName(0), p.HandOver, lender.Grace-p.HandOver
	return node.New(c)
}

// rebuild makes an actor anew, as configured at the start.
func (a actorsOf) rebuild(at protocol.Address) protocol.Actor {
	switch at.Role {
	case protocol.Gate:
		g, _ := gate.New(a.gate(job.GateID(at.ID))) // it was good at the start
		return g
	case protocol.Zone:
		z, _ := zone.New(a.zone(job.ZoneID(at.ID)))
		return z
	default:
		return node.New(a.node(job.NodeID(at.ID)))
	}
}

// slack is what a network adds to every time limit on an answer: two ways there and back, each with a jitter that is passed
// once in 3,000 times. Without it no grant could be redeemed on a network slower than the limits are meant for.
func slack(n scenario.Network) time.Duration { return 4 * (n.Delay + 8*n.Jitter) }

// links are the ways of the network.
func links(n scenario.Network) sim.Network {
	l := sim.Link{Delay: n.Delay, Jitter: n.Jitter, Loss: n.Loss, Double: n.Duplication}
	return sim.Network{GateZone: l, ZoneNode: l, ZoneBidder: l}
}

// faultsOf turns the scenario's faults into those of the driver.
func faultsOf(s *scenario.Scenario) (out sim.Faults) {
	for _, f := range s.Faults {
		if f.Kind == scenario.DrainZone {
			continue
		}
		x := sim.Fault{At: f.At.Add(epoch), For: f.For, Node: f.Node, Zone: f.Zone, Gate: f.Gate, Offset: f.Offset, Drift: f.Drift,
			Keep: f.Keep}
		switch f.Kind {
		case scenario.KillNode:
			x.Kind = sim.NodeCrash
		case scenario.KillDaemon:
			x.Kind = sim.DaemonCrash
		case scenario.KillZone:
			x.Kind = sim.ZoneCrash
		case scenario.KillGate:
			x.Kind = sim.GateCrash
		case scenario.CutNode:
			x.Kind = sim.Partition
		default:
			x.Kind = sim.ClockSet
		}
		if f.Every > 0 {
			out.Random = append(out.Random, sim.Rate{Fault: x, Every: f.Every})
		} else {
			out.Schedule = append(out.Schedule, x)
		}
	}
	return out
}
