// Package reclaim decides what is given back to those who are not ours and wait for devices that we hold: for whom a place is kept, on
// which machine and which devices, which subjobs are cut short for it and when, and who is left alone.
//
// A Keeper hears of machines and wishes in the words of this package, each time all of one, in place of what was said before. It decides by
// Decide, from what it has heard, what it remembers of earlier decisions and what stopping each subjob costs now: the same words in the
// same order at the same times give the same victims. It has no clock, and nothing depends on the order of a map. What it remembers is
// soft: after a restart the same wishes are heard again.
//
// It knows neither Kubernetes nor Slurm, nor leases: who talks to a cluster translates (edge/inventory), who owns the slices applies the
// holds (core/node).
package reclaim

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// ID names a wish or a group of them, uniquely and for as long as it is heard of. The IDs of wishes that a Keeper makes (for members of
// groups that have not come) have a slash in them.
type ID string

// Kin is what wishes have in common that are alike: the same owner, asking for the same. What is found in vain for one is not looked for
// again for the others.
type Kin struct{ Owner, Shape string }

// Wish is somebody who waits for devices of one machine.
type Wish struct {
	ID ID
	// Who waits, for people.
	Who string
	Kin Kin
	// Since is since when it waits: of those tried equally long ago the longest waiting is first.
	Since quantity.Instant
	// Blocked: what it wants is not known yet, so nothing is looked for.
	Blocked bool
	// Asks are devices that are only counted; of them it wants all.
	Asks []Ask
	// Claims are requests for devices that are told apart.
	Claims []Claim
	Where  Where
	// Group that it belongs to, and its part there; empty: none.
	Group ID
	Part  int
}

// Ask is how many of a counted resource somebody has or wants.
type Ask struct {
	Resource string
	N        int64
}

// Claim is a list of requests whose devices are found together on one machine.
type Claim struct {
	// Key names a claim that several wishes may share: it gets its devices once. Empty: it is the wish's own.
	Key      string
	Requests []Request
}

// Request is for devices of one kind; of its choices, the preferred first, one is enough.
type Request struct{ Choices []Choice }

// Choice is N devices that match Terms.
type Choice struct {
	// N is at least 1, or 0: all that match, of which none may be in doubt.
	N int64
	// Class that a device must be listed under (Device.Classes); empty: any.
	Class string
	Terms []Term
	// Alike are attributes that must be equal among the devices of the claim that have the constraint of the same number.
	Alike []Alike
	// Odd: something applies that is not understood, so that a match is only a maybe.
	Odd bool
}

// Alike is a constraint of a claim, by its number there, on an attribute.
type Alike struct {
	Number       int
	Domain, Name string
}

// Group are wishes that are to come together: places are kept ahead for all of them, or for none.
type Group struct {
	ID ID
	// Owners of its members, as in Kin.
	Owners []string
	// Since is since when its members are let in; 0: they are not. Admitted: nothing else holds them back.
	Since    quantity.Instant
	Admitted bool
	// Of those not let in yet, one of each Queue is looked at: the first by Rank that is not left alone. It wants its places from From
	// until Until.
	Queue       string
	Rank        int
	From, Until quantity.Instant
	Parts       []Part
}

// Part is N members of a group that are alike.
type Part struct {
	N int
	// Bound are the machines of its members that have come and have a machine, once for each.
	Bound []string
	// Like is what each that has not come will want; its ID and Since mean nothing.
	Like Wish
}

// Machine is all that is known of one.
type Machine struct {
	Name string
	// Labels, in order of name, and taints decide who may come.
	Labels []Pair
	Taints []Taint
	// Shut: it is closed without a known end.
	Shut bool
	// Slices are those of ours that may be taken back, in order of id.
	Slices    []Slice
	Resources []Resource
	Tenants   []Tenant
	Pools     []Pool
}

// Pair is a name with its value.
type Pair struct{ Name, Value string }

// Taint keeps everybody away who does not tolerate it.
type Taint struct{ Key, Value, Effect string }

// Slice is one that may be taken back, and how long before its subjob is told.
type Slice struct {
	ID     job.SliceID
	Notice time.Duration
}

// Resource is a kind of devices that are only counted: which of them somebody has nobody says.
type Resource struct {
	Name string
	N    int64
	// Slices that we offer of it, and, of the same length, until when others have each: 0, nobody has.
	Slices []job.SliceID
	Others []quantity.Instant
}

// Tenant is who has something of the machine.
type Tenant struct {
	// Slice that it is on, if it is a subjob of ours; empty: it is not.
	Slice job.SliceID
	Asks  []Ask
	// Began is since when it runs (0: not yet), Limit how long it may (0: not bounded), End when it is gone at the latest.
	Began quantity.Instant
	Limit time.Duration
	End   quantity.Instant
}

// Pool is a set of devices that may share counters.
type Pool struct {
	Name, Driver string
	// Total of each counter, by its number.
	Total   []int64
	Devices []Device
	// Layout are the devices that we offer, by index, in the order in which they fit side by side.
	Layout []int64
}

// Device is one of a pool's, in order of name.
type Device struct {
	Name string
	// Here: it is this machine's. Barred: nobody can be given it. Failing: it is offered, and nobody gets it.
	Here, Barred, Failing bool
	// Classes that it is listed under.
	Classes    []string
	Attributes []Pair
	Capacities []Capacity
	Uses       []Use
	// Slice that we offer it as; empty: we do not.
	Slice job.SliceID
	// Holder is who has it, until End.
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

// Holder is whose a device is.
type Holder uint8

// Who may have a device.
const (
	Nobody Holder = iota
	Ours
	Others
)

// Renamed is the machine with its slices named otherwise; the machine itself stays as it is.
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

// Place is kept for one wish: what it gets, and which subjobs are cut short for it.
type Place struct {
	Wish    ID
	Who     string
	Kin     Kin
	Machine string
	// Devices are kept for it, and so is what it Asks for. Claims are the keys of those that get their devices here.
	Devices []At
	Asks    []Ask
	Claims  []string
	// Group and Part it is kept for, whose member has not come yet; empty: a wish. It will want it from From (0: now) until Until; with
	// Open the time is not known, and nothing is cut short.
	Group       ID
	Part        int
	From, Until quantity.Instant
	Open        bool
	// Closed are slices that are not sold, Cut those of ours whose subjobs end at At.
	Closed, Cut []job.SliceID
	At          quantity.Instant
	Notice      time.Duration
	// Cost of what is cut, as of when it was chosen, the least of Looked machines' that would do.
	Cost   Cost
	Looked int

	// made is when it was kept, freed when all that is cut was first seen gone, 0 before.
	made, freed quantity.Instant
}

// At is a device, by its pool and its name.
type At struct{ Pool, Device string }

// later reports whether the place is for a known time rather than for now. That time may be past by up to patience.
func (g *Place) later() bool { return g.From != 0 }

func (g *Place) toll() toll { return toll{g.Cost, len(g.Cut)} }

// Hold is time of a slice that is not for sale. Truncate: what runs into it is cut short.
type Hold struct {
	Slice      job.SliceID
	Start, End quantity.Instant
	Who        string
	Truncate   bool
}

// Term is one comparison of a selector. All of a choice's must hold.
type Term struct {
	Kind TermKind
	// Domain and Name of an attribute or a capacity; a name without a domain is the driver's.
	Domain, Name string
	// Op is ==, !=, and for capacities >=, >, <= or < as well.
	Op     string
	Value  string
	Amount Amount
}

// TermKind is what a term compares.
type TermKind uint8

// What a term compares. Unknown terms are not understood: they may mean any device.
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

// Where says which machines would do: those with all Labels, for which one of AnyOf holds, and whose taints are tolerated.
type Where struct {
	Labels []Pair
	// AnyOf are lists of rules of which one must hold as a whole, if there is any, or Restricted is set.
	AnyOf      []Rules
	Restricted bool
	Tolerates  []Toleration
}

// Rules hold as a whole.
type Rules struct{ All []Rule }

// Rule is about one label of a machine. Op is In, NotIn, Exists, DoesNotExist, Gt or Lt, as in Kubernetes.
type Rule struct {
	Key, Op string
	Values  []string
}

// Toleration of taints. Op is Equal (also if empty), Exists, Lt or Gt; an empty Key or Effect is any.
type Toleration struct{ Key, Op, Value, Effect string }
