// Package guest describes workloads outside Sluice that come for slices of nodes whose machines are shared, as in a Kubernetes cluster, as
// scenarios list them. The simulator plays them.
package guest

import (
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/measure"
)

// Guest arrives, waits until enough slices of a profile are free, uses them for a while, and leaves. The longest waiting is served first,
// on the highest slices that are free.
type Guest struct {
	Name string
	// Owner that similar guests have in common; empty: its name.
	Owner string
	At    quantity.Instant
	// Node that it comes to, and how many of its slices of a Profile it wants.
	Node    job.NodeID
	Profile string
	Slices  int
	// Runs is how long it uses them, Patience how long it waits at most; 0: to the end.
	Runs, Patience time.Duration
}

// House is the guests of a cluster, and the notice that subjobs get.
type House struct {
	Guests []Guest
	// Notice is how long before its slice is taken a subjob is warned.
	Notice time.Duration
	// Visits records what became of the guests; nil: not recorded.
	Visits *measure.Visits
}

// Most bounds the number of guests.
const Most = 10_000

// Slices of each profile that a node has.
type Slices func(job.NodeID) []protocol.Slice

func (of Slices) count(node job.NodeID, profile string) (n int) {
	for _, s := range of(node) {
		if s.Profile == profile {
			n++
		}
	}
	return n
}

// Check lists all errors.
func (h *House) Check(of Slices) (errs []error) {
	if h == nil {
		return nil
	}
	names := map[string]bool{}
	for i := range h.Guests {
		g := &h.Guests[i]
		there := of.count(g.Node, g.Profile)
		if g.Name == "" || names[g.Name] || g.Slices < 1 || there < g.Slices || g.Runs < 0 || g.Patience < 0 {
			errs = append(errs, errkind.Errorf(errkind.Invalid, "guest %d: want a name of his own (%q) and a node with as many slices "+
				"of his "+
				"profile as he wants (%d of %q, and %s has %d)", i, g.Name, g.Slices, g.Profile, g.Node, there))
		}
		names[g.Name] = true
	}
	return errs
}

// Read reads the guests of nodes (of first, if none is named) and the notice with which slices are taken for them; nil if there are none.
func Read(list, notice strict.Value, first job.NodeID, of Slices) *House {
	h := &House{Notice: notice.Duration(0, time.Hour, 30*time.Second)}
	for _, e := range list.List("a list of guests such as [{at: 5m, name: team, slices: 2, for: 20m}]", Most) {
		h.read(e, first, of)
	}
	if len(h.Guests) > 0 {
		return h
	}
	if notice.Given() {
		notice.Wrong("is for guests, and there are none")
	}
	return nil
}

// longest is how long after its begin a guest may come at most, and anything of his may last.
const longest = 10 * 365 * 24 * time.Hour

// read reads one line: a guest, or a stream of them.
func (h *House) read(e strict.Value, first job.NodeID, of Slices) {
	o := e.Object("name", "owner", "node", "profile", "slices", "at", "for", "patience", "every", "count")
	g := Guest{Name: o.Need("name", "team").Label("guest"), Owner: o.Get("owner").Text("what guests have in common who are alike", "")}
	at := o.Get("at").Duration(0, longest, 0)
	g.Runs, g.Patience = o.Get("for").Duration(0, longest, 0), o.Get("patience").Duration(0, longest, 0)
	g.Slices = int(o.Get("slices").Integer(1, 1<<20, 1))
	g.Node = job.NodeID(o.Get("node").Label(string(first)))
	slices := of(g.Node)
	if len(slices) == 0 {
		if len(of(first)) > 0 {
			o.Get("node").Wrong("is none of the nodes; the first is called %s", first)
		}
		return
	}
	g.Profile = o.Get("profile").Text("a profile of the node's slices such as "+slices[0].Profile, slices[0].Profile)
	if there := of.count(g.Node, g.Profile); there < g.Slices {
		e.Wrong("wants %d slices %s of node %s, which has %d", g.Slices, g.Profile, g.Node, there)
		return
	}
	every, count := o.Get("every").Duration(time.Second, longest, 0), int(o.Get("count").Integer(1, Most, 1))
	switch {
	case count > 1 && every == 0:
		o.Get("count").Wrong("is more than one; give every: 10m, how long after each other they come")
		return
	case len(h.Guests)+count > Most:
		e.Wrong("makes them more than %d guests", Most)
		return
	}
	for i := range count {
		one := g
		if one.At = quantity.Instant(at + time.Duration(i)*every); count > 1 {
			one.Name = fmt.Sprintf("%s-%d", g.Name, i+1)
		}
		for k := range h.Guests {
			if h.Guests[k].Name == one.Name {
				e.Wrong("is the second guest %s; give each a name of its own", one.Name)
				return
			}
		}
		h.Guests = append(h.Guests, one)
	}
}

// After is the house with everybody coming later by d, reporting the outcome to visits.
func (h *House) After(d time.Duration, visits *measure.Visits) *House {
	if h == nil {
		return nil
	}
	later := *h
	later.Visits, later.Guests = visits, append([]Guest(nil), h.Guests...)
	for i := range later.Guests {
		later.Guests[i].At = later.Guests[i].At.Add(d)
	}
	return &later
}
