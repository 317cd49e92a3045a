package host

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// What people ask is answered from all zones and nodes of this process. All of it belongs to the loop.

// home is the zone that answers for a job: its home, or whoever has it still where the gate does not have it any more.
func (h *Host) home(now quantity.Instant, name job.ID) actor.Zone {
	zones := h.actors.Zones
	if len(zones) == 1 {
		return zones[0].Zone
	}
	if z := h.actors.At(h.actors.GateOf(name).Home(name)); z != nil {
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
func (h *Host) filedAt(now quantity.Instant, name job.ID, by protocol.Address) actor.Zone {
	if z := h.actors.At(job.ZoneID(by.ID)); z != nil {
		return z
	}
	return h.home(now, name)
}

// job, brief and explain are what a job's home shows of it.
func (h *Host) job(now quantity.Instant, name job.ID) (status.Job, bool) {
	return h.home(now, name).Job(now, name)
}

func (h *Host) brief(now quantity.Instant, name job.ID) (status.Job, bool) {
	return h.home(now, name).Brief(now, name)
}

func (h *Host) explain(now quantity.Instant, name job.ID) (status.Explanation, bool) {
	z := h.home(now, name)
	e, ok := z.Explain(now, name)
	e.Home, e.Endured = h.nameOf(z), h.endured(name, e.Job.Generation)
	return e, ok
}

// nameOf is a zone's name; empty where it is the only one.
func (h *Host) nameOf(z actor.Zone) job.ZoneID {
	if len(h.actors.Zones) > 1 {
		for i := range h.actors.Zones {
			if h.actors.Zones[i].Zone == z {
				return h.actors.Zones[i].ID
			}
		}
	}
	return ""
}

// dryRun explains what would become of a job, and in which zone.
func (h *Host) dryRun(now quantity.Instant, spec *job.Spec) status.Explanation {
	z := h.would(spec)
	e := z.DryRun(now, spec)
	e.Home = h.nameOf(z)
	return e
}

// zones lists the zones.
func (h *Host) zones(now quantity.Instant) []status.Zone {
	all := make([]status.Zone, len(h.actors.Zones))
	at := map[job.ZoneID]*status.Zone{}
	for i := range h.actors.Zones {
		z := &all[i]
		z.ID = h.actors.Zones[i].ID
		for _, q := range h.actors.Zones[i].Queues(now) {
			z.Waiting, z.Running = z.Waiting+q.Pending, z.Running+q.Running
		}
		z.Homed = z.Waiting + z.Running
		if k, ok := h.actors.Zones[i].Zone.(actor.Keeper); ok {
			z.Over = max(0, k.Kept()-z.Homed)
		}
		if d, ok := h.actors.Gates[0].Gate.(actor.Drainer); ok {
			z.Drained = d.Drained(z.ID)
		}
		if s, ok := h.actors.Zones[i].Zone.(actor.Searcher); ok {
			z.Search = s.Searching(now)
		}
		if d, ok := h.actors.Gates[0].Gate.(actor.Drawer); ok {
			d.Drawn(now, z.ID, z.Search)
		}
		at[z.ID] = z
	}
	for i := range h.actors.Nodes {
		n := &h.actors.Nodes[i]
		if z := at[n.Zone]; z != nil {
			z.Nodes, z.Slices = append(z.Nodes, n.ID), z.Slices+len(n.Slices(now))
		}
	}
	return all
}

// would is the zone that a job would have its home in if it were submitted now; one that no zone could run is any's to explain.
func (h *Host) would(spec *job.Spec) actor.Zone {
	if z := h.actors.At(h.actors.GateOf(spec.Name).Draw(spec)); z != nil {
		return z
	}
	return h.actors.Zones[0].Zone
}

// page lists jobs of all zones.
func (h *Host) page(now quantity.Instant, q status.JobQuery) status.JobPage {
	page := h.actors.Zones[0].Page(now, q)
	for i := range h.actors.Zones[1:] {
		page = merged(q, page, h.actors.Zones[1+i].Page(now, q))
	}
	return page
}

// windows lists what is advertised in all zones.
func (h *Host) windows(now quantity.Instant) (all []status.Window) {
	for i := range h.actors.Zones {
		all = append(all, h.actors.Zones[i].Windows(now)...)
	}
	return all
}

// queues lists the queues with their use in all zones. A queue's cap is the sum of the zones' shares, its trust that of the zone where it
// has been seen most.
func (h *Host) queues(now quantity.Instant) []status.Queue {
	all := h.actors.Zones[0].Queues(now)
	if len(h.actors.Zones) == 1 {
		return all
	}
	for i := range all {
		all[i].Queue.Cap = max(0, all[i].Queue.Cap)
	}
	for i := range h.actors.Zones[1:] {
		for _, q := range h.actors.Zones[1+i].Queues(now) {
			at, found := slices.BinarySearchFunc(all, q.Queue.Name, func(q status.Queue, name string) int { return cmp.Compare(q.Queue.Name, name) })
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

// slicesOf lists the slices of all nodes.
func (h *Host) slicesOf(now quantity.Instant) (all []status.Slice) {
	for i := range h.actors.Nodes {
		all = append(all, h.actors.Nodes[i].Slices(now)...)
	}
	return all
}

// negotiation is what the markets of all zones have done since they came up; false where none negotiates.
func (h *Host) negotiation() (sum status.Negotiation, ok bool) {
	for i := range h.actors.Zones {
		if z, is := h.actors.Zones[i].Zone.(actor.Negotiator); is {
			sum, ok = sum.Plus(z.Negotiation()), true
		}
	}
	return sum, ok
}

// cuts says what a reservation that cuts running subjobs short would cost on each node that it is about.
func (h *Host) cuts(now quantity.Instant, r protocol.Reservation) (all []status.Cut, err error) {
	for _, i := range h.nodesOf(r.Slice) {
		some, err := h.actors.Nodes[i].Cuts(now, r)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	for i := range h.actors.Zones {
		all = h.actors.Zones[i].Costs(all)
	}
	return all, nil
}

// nodesOf are the nodes, by their places, that a slice is one of: all of them for no slice; the first for one that none has, and
// which it says so of. Safe for concurrent use.
func (h *Host) nodesOf(slice job.SliceID) []int {
	var all []int
	for i, id := range h.nodes {
		if slice == "" || h.ownerOf(slice) == id {
			all = append(all, i)
		}
	}
	if len(all) == 0 {
		return []int{0}
	}
	return all
}
