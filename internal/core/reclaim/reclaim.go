// Package reclaim decides which subjobs stop for workloads outside Sluice that wait for devices that Sluice holds: for which wish a place
// is kept, on which machine and devices, which subjobs are truncated for it and when, and which wishes back off.
//
// A Keeper hears of machines, wishes and groups, each message replacing what was known of that one. Decide is a function of what it has
// heard, of its memory of earlier decisions and of the current cost of stopping each subjob: the same input at the same times gives the
// same victims. It has no clock and does not depend on map order. Its memory is soft: after a restart the same wishes are heard again.
//
// It knows neither Kubernetes nor Slurm, nor leases: the inventories (edge/inventory) translate from the cluster, and the owner of the
// slices applies the closures (core/node).
package reclaim

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// ID names a wish or a group, uniquely and for as long as it exists. The IDs that a Keeper makes for members of groups that have not come
// contain a slash.
type ID string

// Equiv is an equivalence class of wishes: the same owner asking for the same. After a search for one found nothing, the others are
// not searched for either until the retry delay is over.
type Equiv struct{ Owner, Shape string }

// Wish is a workload outside Sluice that waits for devices of one machine.
type Wish struct {
	ID ID
	// Who is the one that waits, as people read it; what follows a comma is left out where it is clear that it waits.
	Who   string
	Equiv Equiv
	// Since is since when it waits. Among wishes searched for equally long ago the oldest is first.
	Since quantity.Instant
	// Blocked: what it wants is not known yet, so it is not searched for.
	Blocked bool
	// Asks are for counted devices; all of them are needed.
	Asks []Ask
	// Claims are for devices selected by their attributes; all of them are needed.
	Claims []Claim
	Where  Where
	// Group that it belongs to, and its part there; empty: none.
	Group ID
	Part  int
	// Nominated is the machine on which its scheduler makes room for it by itself; empty: it does not. What leaves there is waited for, and
	// nothing else is stopped for it, unless nothing comes of that.
	Nominated string
}

// Ask is an amount of a counted resource, used or wanted.
type Ask struct {
	Resource string
	N        int64
}

// Claim is a list of requests that are satisfied together on one machine.
type Claim struct {
	// Key names a claim that several wishes may share: its devices are allocated once. Empty: it is the wish's own.
	Key      string
	Requests []Request
}

// Request is for devices of one kind. One of its choices is enough, the preferred first.
type Request struct{ Choices []Choice }

// Choice is N devices that match Terms.
type Choice struct {
	// N is at least 1, or 0: all that match, and for none may that be uncertain.
	N int64
	// Class is the device class that a device must be in (Device.Classes); empty: any.
	Class string
	Terms []Term
	// Alike are attributes in which devices of the claim must agree, if they have the constraint of the same number.
	Alike []Alike
	// Odd: it has a condition that is not understood, so a match is uncertain.
	Odd bool
}

// Alike is a constraint of a claim, by its number there, on an attribute.
type Alike struct {
	Number       int
	Domain, Name string
}

// Group is a set of wishes that are placed all or nothing: places are kept ahead for all of them, or for none.
type Group struct {
	ID ID
	// Owners of its members, as in Equiv.
	Owners []string
	// Since is when its quota was reserved; 0: not yet. Admitted: no admission check holds it back either.
	Since    quantity.Instant
	Admitted bool
	// Of the groups that wait in a Queue one is placed: the first by Rank that does not back off. It wants its places from From until
	// Until.
	Queue       string
	Rank        int
	From, Until quantity.Instant
	Parts       []Part
}

// Part is N interchangeable members of a group.
type Part struct {
	N int
	// Bound are the machines of members that have come and are bound, one entry each.
	Bound []string
	// Like is the wish that each member that has not come will have; its ID and Since are unused.
	Like Wish
}

// Machine is the state of one machine, complete.
type Machine struct {
	Name string
	// Labels, in order of name, and Taints restrict which wishes may be served here.
	Labels []Pair
	Taints []Taint
	// Shut: it is closed without a known end.
	Shut bool
	// Slices are ours that may be taken back, in order of ID.
	Slices    []Slice
	Resources []Resource
	Tenants   []Tenant
	Pools     []Pool
}

// Pair is a name with its value.
type Pair struct{ Name, Value string }

// Taint keeps every wish away that does not tolerate it.
type Taint struct{ Key, Value, Effect string }

// Slice may be taken back; Notice is how long before its subjob is warned. Pool is the name of what offers it, for people.
type Slice struct {
	ID     job.SliceID
	Notice time.Duration
	Pool   string
}

// Resource is a kind of counted devices: who uses which of them is not known.
type Resource struct {
	Name string
	N    int64
	// Slices that we offer of it. Others has one entry for each: until when others use it, 0 if they do not.
	Slices []job.SliceID
	Others []quantity.Instant
}

// Tenant is a workload that uses devices of the machine.
type Tenant struct {
	// Slice that it runs on, if it is a subjob of ours; empty: it is not.
	Slice job.SliceID
	Asks  []Ask
	// Began is when it started (0: not yet), Limit its maximum run time (0: none), End when it has ended at the latest.
	Began quantity.Instant
	Limit time.Duration
	End   quantity.Instant
	// Leaving: somebody else ends it already, by End. A place on the slice of a subjob of ours that leaves costs nothing more.
	Leaving bool
}

// Pool is a set of devices that may share counters.
type Pool struct {
	Name, Driver string
	// Total of each counter, by its number.
	Total   []int64
	Devices []Device
	// Layout are the indices of the devices that we offer, in the order in which they fit side by side.
	Layout []int64
}

// Device is one of a pool. A pool has them in order of Name.
type Device struct {
	Name string
	// Here: it is on this machine. Barred: it can't be allocated. Failing: it is offered, and not allocated to anyone.
	Here, Barred, Failing bool
	// Classes are the device classes that it is in.
	Classes    []string
	Attributes []Pair
	Capacities []Capacity
	Uses       []Use
	// Slice that we offer it as; empty: we do not.
	Slice job.SliceID
	// Holder is who uses it, until End.
	Holder Holder
	End    quantity.Instant
}

// Capacity of a device, by name.
type Capacity struct {
	Name string
	Amount
}

// Use is how much of a counter a device takes.
type Use struct {
	Counter int
	N       int64
}

// Holder is the user of a device.
type Holder uint8

// The possible holders of a device.
const (
	Nobody Holder = iota
	Ours
	Others
)

// Renamed is a copy with other names of slices; the machine itself does not change.
func (m *Machine) Renamed(named func(job.SliceID) job.SliceID) Machine {
	n := *m
	give := func(id *job.SliceID) {
		if *id != "" {
			*id = named(*id)
		}
	}
	n.Slices, n.Resources = slices.Clone(m.Slices), slices.Clone(m.Resources)
	n.Tenants, n.Pools = slices.Clone(m.Tenants), slices.Clone(m.Pools)
	for i := range n.Slices {
		give(&n.Slices[i].ID)
	}
	for i := range n.Resources {
		r := &n.Resources[i]
		r.Slices = slices.Clone(r.Slices)
		for k := range r.Slices {
			give(&r.Slices[k])
		}
	}
	for i := range n.Tenants {
		give(&n.Tenants[i].Slice)
	}
	for i := range n.Pools {
		p := &n.Pools[i]
		p.Devices = slices.Clone(p.Devices)
		for k := range p.Devices {
			give(&p.Devices[k].Slice)
		}
	}
	return n
}

// Place is a reservation for one wish: what it gets, and which subjobs are truncated for it.
type Place struct {
	Wish    ID
	Who     string
	Equiv   Equiv
	Machine string
	// Devices and Asks are reserved. Claims are the keys of the shared claims that get their devices here.
	Devices []DeviceRef
	Asks    []Ask
	Claims  []string
	// Group and Part of the member it is kept for, which has not come yet; empty: it is for a wish. The member will want it from From (0:
	// now) until Until; with Open the time is not known, and nothing is truncated.
	Group       ID
	Part        int
	From, Until quantity.Instant
	Open        bool
	// Closed are slices that are not sold, Stops those of ours whose subjobs stop at At.
	Closed, Stops []job.SliceID
	At            quantity.Instant
	Notice        time.Duration
	// Cost of stopping what is in Stops, as of when it was chosen by Search. Spared are ways to make room that were not taken then, as they
	// were compared, at most maxSpared; none for a place that is kept ahead, since the next member may get them.
	Cost   Cost
	Search Search
	Spared []Way

	// made is when it was kept, freed when all that is in Stops was first seen gone; 0 before.
	made, freed quantity.Instant
	// spare: nothing stops for it, as there was room already. It is kept for no longer than the scheduler may take to use that. preempted:
	// the wish's scheduler ends what is in Stops, so that nothing is truncated.
	spare, preempted bool
}

// DeviceRef is a device, by its pool and its name.
type DeviceRef struct{ Pool, Device string }

// Search is what a search for a place compared.
type Search struct {
	// Machines that the wish may be served on were searched, of Known with subjobs or, for a place kept ahead, with devices.
	Machines, Known int
	// Of these machines Places have a place where subjobs stop, Free one where nothing stops, and Avoided are those of Places where the
	// class left a place unused: they come last. Last: the place is on one of them, since there is no other.
	Places, Free, Avoided int
	Last                  bool
	// Whole: no place that costs less was left out, but on Avoided machines. Not so once a bound was reached, or if the devices that the
	// wish prefers go before the cost.
	Whole bool
}

// Way is a way to make room for a wish: subjobs of one machine to stop, and the cost. Of one machine the ways have no subjob in common.
type Way struct {
	Machine string
	Stops   []job.SliceID
	Cost    Cost
	// Avoided: the class left a place unused on the machine.
	Avoided bool
}

func (w *Way) stopCost() stopCost { return stopCost{w.Cost, len(w.Stops)} }

// scheduled reports whether the place is for a known time rather than for now. That time may be past by up to unusedTimeout.
func (pl *Place) scheduled() bool { return pl.From != 0 }

// Freed is when all that is in Stops was first seen gone; 0: it is not, or there is nothing in it.
func (pl *Place) Freed() quantity.Instant {
	if len(pl.Stops) == 0 {
		return 0
	}
	return pl.freed
}

func (pl *Place) stopCost() stopCost { return stopCost{pl.Cost, len(pl.Stops)} }

// Closure is time of a slice that is not for sale: a node makes a reservation of it, and no hold, since it does not lapse. Truncate: a
// subjob that overlaps it is truncated.
type Closure struct {
	Slice      job.SliceID
	Start, End quantity.Instant
	Who        string
	Truncate   bool
}

// Term is one comparison of a selector. All terms of a choice must hold.
type Term struct {
	Kind TermKind
	// Domain and Name of an attribute or a capacity; a name without a domain is the driver's.
	Domain, Name string
	// Op is == or !=, and for capacities also >=, >, <= or <.
	Op     string
	Value  string
	Amount Amount
}

// TermKind is what a term compares.
type TermKind uint8

// What a term compares. An Unknown term may match any device.
const (
	Unknown TermKind = iota
	OfDriver
	OfAttribute
	HasAttribute
	OfCapacity
	HasCapacity
)

// Amount is N / 10^Places, exactly. Places are 0 to 18.
type Amount struct {
	N      int64
	Places int16
}

// Where restricts the machines: they have all Labels, satisfy one of AnyOf, and have their taints tolerated.
type Where struct {
	Labels []Pair
	// AnyOf are lists of rules of which one must hold as a whole, if there are any or Restricted is set.
	AnyOf      []Rules
	Restricted bool
	Tolerates  []Toleration
}

// Rules hold only together.
type Rules struct{ All []Rule }

// Rule is about one label of a machine. Op is In, NotIn, Exists, DoesNotExist, Gt or Lt, as in Kubernetes.
type Rule struct {
	Key, Op string
	Values  []string
}

// Toleration of taints. Op is Equal (also if empty), Exists, Lt or Gt; an empty Key or Effect is any.
type Toleration struct{ Key, Op, Value, Effect string }
