package pages

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/host/nodes"
	"sluice.dev/sluice/internal/host/requests"
	"sluice.dev/sluice/internal/host/stocks"
)

// Views are what people see of all zones and nodes of this process. They change nothing, and belong to the goroutine of the loop.
type Views struct {
	set   actor.Set
	nodes nodes.Directory
	guard status.Guard
	// stocks are what slices machines elsewhere told that they have; nil: no machine may join.
	stocks *stocks.Stocks
}

// NewViews shows these actors. guard is what can be done where this machine's memory runs out.
func NewViews(set actor.Set, n nodes.Directory, guard status.Guard) *Views {
	return &Views{set: set, nodes: n, guard: guard}
}

// Remember shows besides what machines have of which no zone has heard since this daemon came up.
func (v *Views) Remember(s *stocks.Stocks) { v.stocks = s }

// home returns the zone that answers for a job: its home, or a zone that still has it where the gate does not.
func (v *Views) home(now quantity.Instant, name job.ID) actor.Zone {
	zones := v.set.Zones
	if len(zones) == 1 {
		return zones[0].Zone
	}
	if z := v.set.At(v.set.GateOf(name).Home(name)); z != nil {
		return z
	}
	for i := range zones {
		if _, has := zones[i].Brief(now, name); has {
			return zones[i].Zone
		}
	}
	return zones[0].Zone // which says that there is none
}

// filedAt is the zone that filed a job, by the actor of its facts; where that is not told, as of parts that older versions filed, its home.
func (v *Views) filedAt(now quantity.Instant, name job.ID, by protocol.Address) actor.Zone {
	if z := v.set.At(job.ZoneID(by.ID)); z != nil {
		return z
	}
	return v.home(now, name)
}

// Job, brief and explain are what a job's home shows of it.
func (v *Views) Job(now quantity.Instant, name job.ID) (status.Job, bool) {
	return v.home(now, name).Job(now, name)
}

func (v *Views) brief(now quantity.Instant, name job.ID) (status.Job, bool) {
	return v.home(now, name).Brief(now, name)
}

func (v *Views) explain(now quantity.Instant, name job.ID) (status.Explanation, bool) {
	z := v.home(now, name)
	e, ok := z.Explain(now, name)
	v.complete(now, name, z, &e)
	return e, ok
}

// complete adds what the zone that explains a job does not know.
func (v *Views) complete(now quantity.Instant, name job.ID, z actor.Zone, e *status.Explanation) {
	e.Home, e.AirlockSteps = v.nameOf(z), v.airlockSteps(name, e.Job.Generation)
	e.Reclaims = v.reclaims(now, name, e.Job.Generation)
}

// nameOf is a zone's name; empty where it is the only one.
func (v *Views) nameOf(z actor.Zone) job.ZoneID {
	if len(v.set.Zones) > 1 {
		for i := range v.set.Zones {
			if v.set.Zones[i].Zone == z {
				return v.set.Zones[i].ID
			}
		}
	}
	return ""
}

// dryRun explains what would become of a job, and in which zone.
func (v *Views) dryRun(now quantity.Instant, spec *job.Spec) status.Explanation {
	z := v.would(spec)
	e := z.DryRun(now, spec)
	e.Home = v.nameOf(z)
	return e
}

// zones lists the zones.
func (v *Views) zones(now quantity.Instant) []status.Zone {
	all := make([]status.Zone, len(v.set.Zones))
	at := map[job.ZoneID]*status.Zone{}
	for i := range v.set.Zones {
		z := &all[i]
		z.ID = v.set.Zones[i].ID
		for _, q := range v.set.Zones[i].Queues(now) {
			z.Waiting, z.Running = z.Waiting+q.Pending, z.Running+q.Running
		}
		z.Homed = z.Waiting + z.Running
		if k, ok := v.set.Zones[i].Zone.(actor.Keeper); ok {
			z.Over = max(0, k.Kept()-z.Homed)
		}
		if d, ok := v.set.Lead().(actor.Drainer); ok {
			z.Drained = d.Drained(z.ID)
		}
		if s, ok := v.set.Zones[i].Zone.(actor.Searcher); ok {
			z.Search = s.Searching(now)
		}
		if d, ok := v.set.Lead().(actor.Drawer); ok {
			d.Drawn(now, z.ID, z.Search)
		}
		at[z.ID] = z
	}
	for i := range v.set.Nodes {
		n := &v.set.Nodes[i]
		if z := at[n.Zone]; z != nil {
			z.Nodes, z.Slices = append(z.Nodes, n.ID), z.Slices+len(n.Slices(now))
		}
	}
	return all
}

// would is the zone that a job would have its home in if it were submitted now; one that no zone could run is any's to explain.
func (v *Views) would(spec *job.Spec) actor.Zone {
	if z := v.set.At(v.set.GateOf(spec.Name).Draw(spec)); z != nil {
		return z
	}
	return v.set.Zones[0].Zone
}

// Life returns the present life of a job of that name; 0: none but what the archive has.
func (v *Views) Life(name job.ID) job.Generation { return v.set.GateOf(name).Life(name) }

// forgetter is a gate that says up to which life a job of a name was forgotten, while the archive still has it.
type forgetter interface {
	Forgotten(id job.ID) job.Generation
}

func (v *Views) forgotten(name job.ID) job.Generation {
	if g, ok := v.set.Lead().(forgetter); ok {
		return g.Forgotten(name)
	}
	return 0
}

// Home is the zone that a message of a job's agent is for.
func (v *Views) Home(name job.ID) job.ZoneID {
	if len(v.set.Zones) > 1 {
		if home := v.set.GateOf(name).Home(name); home != "" {
			return home
		}
	}
	return v.set.Zones[0].ID
}

// check says what keeps a job from being accepted.
func (v *Views) check(now quantity.Instant, s *job.Spec) error {
	if err := errors.Join(requests.Startable(s), v.set.GateOf(s.Name).Check(now, s)); err != nil {
		return errkind.Errorf(errkind.Of(err), "%w", err)
	}
	return nil
}

// page lists jobs of all zones.
func (v *Views) page(now quantity.Instant, q status.JobQuery) status.JobPage {
	page := v.set.Zones[0].Page(now, q)
	for i := range v.set.Zones[1:] {
		page = merged(q, page, v.set.Zones[1+i].Page(now, q))
	}
	return page
}

// windows lists what is advertised in all zones.
func (v *Views) windows(now quantity.Instant) (all []status.Window) {
	for i := range v.set.Zones {
		all = append(all, v.set.Zones[i].Windows(now)...)
	}
	return all
}

// queues lists the queues with their use in all zones. A queue's cap is the sum of the zones' shares, its trust that of the zone where it
// has been seen most.
func (v *Views) queues(now quantity.Instant) []status.Queue {
	all := v.set.Zones[0].Queues(now)
	if len(v.set.Zones) == 1 {
		return all
	}
	for i := range all {
		all[i].Queue.Cap = max(0, all[i].Queue.Cap)
	}
	for i := range v.set.Zones[1:] {
		for _, q := range v.set.Zones[1+i].Queues(now) {
			at, found := slices.BinarySearchFunc(all, q.Queue.Name,
				func(q status.Queue, name string) int { return cmp.Compare(q.Queue.Name, name) })
			q.Queue.Cap = max(0, q.Queue.Cap)
			if !found {
				all = slices.Insert(all, at, q)
				continue
			}
			sum := &all[at]
			sum.Queue.Cap += q.Queue.Cap
			sum.Pending, sum.Running, sum.Held = sum.Pending+q.Pending, sum.Running+q.Running, sum.Held+q.Held
			sum.Attained, sum.Credits = sum.Attained+q.Attained, sum.Credits+q.Credits
			if q.Trust.Seen > sum.Trust.Seen {
				sum.Trust = q.Trust
			}
		}
	}
	return all
}

// slices lists the slices of all nodes: of those of this process as they are, of those elsewhere as they told last.
func (v *Views) slices(now quantity.Instant) (all []status.Slice) {
	for i := range v.set.Nodes {
		all = append(all, v.set.Nodes[i].Slices(now)...)
	}
	if v.nodes.Others == nil {
		return all
	}
	known := map[job.NodeID]bool{}
	for i := range v.set.Zones {
		z, ok := v.set.Zones[i].Zone.(actor.Surveyor)
		if !ok {
			continue
		}
		for _, s := range z.Survey().Offered(now) {
			if v.nodes.Local(s.Node) {
				continue
			}
			known[s.Node] = true
			if why := v.nodes.Others.Away(s.Node); errkind.Of(why) == errkind.NotFound { // it has just been removed
				continue
			} else if why != nil {
				away(&s, why)
			}
			all = append(all, s)
		}
	}
	return append(all, v.unheard(known)...)
}

// unheard are the slices of machines of which no zone knows a view: they were away when this daemon came up, or have just called.
func (v *Views) unheard(known map[job.NodeID]bool) (all []status.Slice) {
	for _, told := range v.stocks.Told() {
		name := job.NodeID(told.From.ID)
		if known[name] || v.nodes.Local(name) {
			continue
		}
		why := v.nodes.Others.Away(name)
		for _, slice := range told.Body.(*protocol.Stock).Slices {
			s := status.Slice{Slice: slice, Node: name, State: unconfirmed, Reason: "its machine has not told yet how it stands"}
			if why != nil {
				away(&s, why)
			}
			all = append(all, s)
		}
	}
	return all
}

// unconfirmed is the state of a slice that nothing can be started on, since it is not known how it stands.
const unconfirmed = "unconfirmed"

// away says that the machine of a slice is.
func away(s *status.Slice, why error) {
	s.State, s.Reason = unconfirmed, fmt.Sprintf("machine %s is away, and what it runs goes on: %v", s.Node, why)
}

// Negotiation is what the markets of all zones have done since they came up; false where none negotiates.
func (v *Views) Negotiation() (sum status.Negotiation, ok bool) {
	for i := range v.set.Zones {
		if z, is := v.set.Zones[i].Zone.(actor.Negotiator); is {
			sum, ok = sum.Plus(z.Negotiation()), true
		}
	}
	return sum, ok
}

// cuts says what a reservation that cuts running subjobs short would cost on each node that it is about. Of a node elsewhere it is not
// known here.
func (v *Views) cuts(now quantity.Instant, r protocol.Reservation) (all []status.Cut, err error) {
	if v.nodes.Elsewhere(r.Slice) {
		return nil, nil
	}
	for _, i := range v.nodes.Own.OfSlice(r.Slice) {
		some, err := v.set.Nodes[i].Cuts(now, r)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	for i := range v.set.Zones {
		all = v.set.Zones[i].Costs(all)
	}
	return all, nil
}

// airlocks are what the nodes make of the memory of this machine, by their numbers.
func (v *Views) airlocks(now quantity.Instant) []status.Airlock {
	all := make([]status.Airlock, len(v.set.Nodes))
	for i := range all {
		all[i] = v.set.Nodes[i].Airlock(now)
		all[i].Guard = v.guard
	}
	return all
}

// airlockSteps are what was done to a life of a job on all nodes, in order.
func (v *Views) airlockSteps(id job.ID, g job.Generation) (all []status.AirlockStep) {
	for i := range v.set.Nodes {
		all = append(all, v.set.Nodes[i].AirlockSteps(id, g)...)
	}
	if len(v.set.Nodes) > 1 {
		slices.SortStableFunc(all, func(a, b status.AirlockStep) int { return cmp.Compare(a.At, b.At) })
	}
	return all
}

// wishes are who waits for devices of this machine, at all nodes.
func (v *Views) wishes(now quantity.Instant) (all []status.Wish) {
	for i := range v.set.Nodes {
		all = append(all, v.set.Nodes[i].Reclaims(now).Wishes...)
	}
	return all
}

// reclaims are what was decided about a life of a job for those who wait, on all nodes, in order.
func (v *Views) reclaims(now quantity.Instant, id job.ID, g job.Generation) (all []status.ReclaimStep) {
	for i := range v.set.Nodes {
		for _, s := range v.set.Nodes[i].Reclaims(now).Steps {
			if s.Job == id && s.Generation == g {
				all = append(all, s)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b status.ReclaimStep) int { return cmp.Compare(a.At, b.At) })
	return all
}

// HostWaits are the waits that are over, of workloads outside Sluice for what subjobs of this machine had: of each node those with numbers
// above after's.
func (v *Views) HostWaits(after map[job.NodeID]uint64) (all []status.HostWait) {
	for i := range v.set.Nodes {
		all = append(all, v.set.Nodes[i].HostWaits(after[v.set.Nodes[i].ID])...)
	}
	return all
}

// Strain is the memory of this machine, as the first of its nodes has heard of it, with what all of them have done.
func (v *Views) Strain(now quantity.Instant) (sum status.Strain) {
	for i := range v.set.Nodes {
		s := v.set.Nodes[i].Strain(now)
		if i == 0 {
			sum = s
			continue
		}
		sum.Parked, sum.Standing = sum.Parked+s.Parked, sum.Standing+s.Standing
		sum.Suspended, sum.Recovered, sum.Readdressed = sum.Suspended+s.Suspended, sum.Recovered+s.Recovered, sum.Readdressed+s.Readdressed
		sum.Reclaimed, sum.Killed, sum.Decisions = sum.Reclaimed+s.Reclaimed, sum.Killed+s.Killed, sum.Decisions+s.Decisions
		sum.Stood, sum.OverLine = sum.Stood+s.Stood, max(sum.OverLine, s.OverLine)
	}
	return sum
}
