package sim

import (
	"errors"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/archive"
	"sluice.dev/sluice/internal/lab/guest"
	"sluice.dev/sluice/internal/lab/lender"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/workload"
)

// Options of a simulation of the whole protocol. A gate, one zone and one node are needed; nothing else is.
type Options struct {
	// Start is the first instant; the actors are recovered and told the inventory then.
	Start quantity.Instant
	Gates []actor.GateAt
	Zones []actor.ZoneAt
	Nodes []Node

	// Source gives the jobs, and Spec what the gate is told of one; it is asked once for each, when the job is next.
	// Names must be unique among the jobs that the gate keeps. Without a source only At brings jobs.
	Source workload.Source
	Spec   func(*workload.Job) (*job.Spec, error)
	// Model decides how a subjob really goes; nil: as its workload.Job truly is, and exactly as planned for what has come by At.
	Model Model

	// Archive keeps the jobs that actors drop; nil where they are configured to keep all. Only the gate's retention makes it forget any.
	Archive archive.Archive

	// Agent makes the agents of external jobs; nil: none has one.
	Agent Agents

	// Seed of all that is drawn.
	Seed    uint64
	Network Network
	Faults  Faults
	// Memory of the nodes' hosts, and what happens to it; nil: it is not modelled.
	Memory *HostMemory
	// Guests that come for slices of the nodes; nil: none.
	Guests *guest.House
	// Lenders lend pilots to the only zone; nil: nobody does. Pilot makes a pilot's node, with the number that tells its tokens from those
	// of others.
	Lenders *lender.Lenders
	Pilot   func(id job.NodeID, number int, p *lender.Pool) actor.Node
	// Rebuild makes a fresh actor, as configured at the start, after a crash. Needed where there are crashes.
	Rebuild func(protocol.Address) protocol.Actor

	// Mailed hears each message between actors as it is sent; nil: nobody does. The message is the caller's.
	Mailed func(*protocol.Message)
	// Observer hears what happens to the jobs of the source; nil if nobody does.
	Observer measure.Observer
	// Progress is called now and then with how far the simulation has come; nil if not wanted.
	Progress func(now quantity.Instant, live int)
	// Fact gets every fact in order; Stepped is called after every step. Both may be nil.
	Fact    func(now quantity.Instant, f *protocol.Fact)
	Stepped func(now quantity.Instant, p actor.Party)
	// Reply gets every answer to a person; nil if not wanted.
	Reply func(now quantity.Instant, m *protocol.Message)
}

// Node is one machine. Its actor must be configured with a number of its own, so that no two nodes make the same token.
type Node struct {
	ID     job.NodeID
	Actor  actor.Node
	Slices []protocol.Slice
	// Classes is the class of every slice, for the observer. nil for all nodes: one class for each profile, in the order in which Classes
	// finds them.
	Classes []uint8
}

// Berths are the places that pilots run in, as many of each pool in their order as it may have. They come after the nodes.
func Berths(l *lender.Lenders) (list []Node) {
	for i := 0; l != nil && i < len(l.Pools); i++ {
		for range l.Pools[i].Most {
			list = append(list, Node{Slices: l.Pools[i].Offers("")})
		}
	}
	return list
}

// berths are those of the options, once every slice has its class.
func (o *Options) berths() []Node {
	all := slices.Concat(o.Nodes, Berths(o.Lenders))
	if all[0].Classes == nil {
		Classes(all)
	}
	return all[copy(o.Nodes, all):]
}

// Classes makes one class of every profile, in order of first appearance, and notes the class of every slice in the nodes.
// A slice weighs its speed.
func Classes(nodes []Node) []measure.Class {
	var classes []measure.Class
	for i := range nodes {
		n := &nodes[i]
		n.Classes = make([]uint8, len(n.Slices))
		for j := range n.Slices {
			s, k := &n.Slices[j], 0
			for k < len(classes) && classes[k].Name != s.Profile {
				k++
			}
			if k == len(classes) {
				classes = append(classes, measure.Class{Name: s.Profile, Weight: s.Speed, Memory: s.Capacity[0]})
			}
			classes[k].Count++
			n.Classes[j] = uint8(k)
		}
	}
	return classes
}

// slicesOf are those of a node; none: there is no such node.
func (o *Options) slicesOf(id job.NodeID) []protocol.Slice {
	for i := range o.Nodes {
		if o.Nodes[i].ID == id {
			return o.Nodes[i].Slices
		}
	}
	return nil
}

// check lists everything that is wrong with the options.
func (o *Options) check() error {
	var errs []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, errkind.Errorf(errkind.Invalid, "simulation: "+format, args...))
		}
	}
	wrong(len(o.Gates) == 0 || len(o.Zones) == 0, "it needs a gate and at least one zone")
	gates := map[job.GateID]bool{}
	for i := range o.Gates {
		g := &o.Gates[i]
		wrong(g.Gate == nil || g.ID == "" && len(o.Gates) > 1, "gates[%d]: it needs an actor, and with others an id", i)
		wrong(gates[g.ID], "gates[%d]: there are two gates %q; give each a name of its own", i, g.ID)
		gates[g.ID] = true
	}
	zones := map[job.ZoneID]bool{}
	for i := range o.Zones {
		z := &o.Zones[i]
		wrong(z.ID == "" || z.Zone == nil, "zones[%d]: it needs an id and an actor", i)
		wrong(zones[z.ID], "zones[%d]: there are two zones %q; give each a name of its own", i, z.ID)
		zones[z.ID] = true
	}
	wrong(len(o.Nodes) == 0 && o.Lenders.Most() == 0, "it needs at least one node, or a pool that lends some")
	wrong(o.Lenders != nil && (o.Pilot == nil || len(o.Zones) != 1 || o.Memory != nil || len(o.Nodes) > 0 && o.Nodes[0].Classes != nil),
		"pools lend to one zone, make classes of their own, know no hosts' memory, and need what makes a pilot's node")
	wrong((o.Source == nil) != (o.Spec == nil), "a source of jobs and what makes a spec of a job belong together; give both or neither")
	owners, nodes := map[job.SliceID]job.NodeID{}, map[job.NodeID]bool{}
	for i := range o.Nodes {
		n := &o.Nodes[i]
		wrong(n.ID == "" || n.Actor == nil, "nodes[%d]: it needs an id and an actor", i)
		wrong(nodes[n.ID], "nodes[%d]: there are two nodes %q; give each a name of its own", i, n.ID)
		nodes[n.ID] = true
		wrong(n.Classes != nil && len(n.Classes) != len(n.Slices), "node %s: it has %d slices and says the class of %d", n.ID,
			len(n.Slices), len(n.Classes))
		for j := range n.Slices {
			other, had := owners[n.Slices[j].ID]
			wrong(had, "node %s: slice %q is one of node %s too; name slices so that they are unique in the cluster", n.ID, n.Slices[j].ID,
				other)
			owners[n.Slices[j].ID] = n.ID
		}
	}
	for _, w := range []struct {
		name string
		link *Link
	}{{"gate-zone", &o.Network.GateZone}, {"zone-node", &o.Network.ZoneNode}, {"zone-bidder", &o.Network.ZoneBidder}} {
		l := w.link
		wrong(l.Delay < 0 || l.Jitter < 0, "link %s: delay %v and jitter %v can't be negative", w.name, l.Delay, l.Jitter)
		wrong(min(l.Loss, l.Double) < 0 || max(l.Loss, l.Double) > 1e6,
			"link %s: loss %d and doubling %d are parts per million, 0 to 1000000", w.name, l.Loss, l.Double)
	}
	errs = append(errs, o.Memory.check()...)
	errs = append(errs, o.Guests.Check(o.slicesOf)...)
	errs = append(errs, o.Lenders.Check()...)
	errs = append(errs, o.Faults.check(nodes, zones, gates, o.Rebuild != nil)...)
	if err := errors.Join(errs...); err != nil {
		return errkind.Errorf(errkind.Invalid, "%w", err)
	}
	return nil
}

// Agent bids for one external job (protocol.Bidder).
type Agent interface {
	// Hear handles a zone's message, which is valid only during the call, and returns the answers, which leave together after its thinking
	// time, at least 0. Sender, receiver and job are put in by the driver, as a connection with credentials would; the session too, where
	// an answer names none.
	Hear(now quantity.Instant, m *protocol.Message) (answers []protocol.Message, think time.Duration)
}

// Agents makes the agent of an external job when its home takes it in; nil if it has none. j is what the source gave, nil
// for a job that came by At.
type Agents func(j *workload.Job, spec *job.Spec) Agent
