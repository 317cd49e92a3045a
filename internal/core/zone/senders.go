package zone

import (
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/supply"
)

// senders is the zone as it judges who may say what. Nodes run on machines that need not be its own, and a message names its subject by
// numbers and tokens that anybody can guess. So whatever a node says is held to what is its own, here and nowhere else:
//
//	Offer                                            a slice that no other node offers, and on which no other node has a claim
//	Inventory                                        its own slices: the driver says it of nodes that are away as it starts, and a
//	                                                 provider of what its pilots have
//	Granted, Refused                                 an ask, a reservation or an extension that this node was asked for, of that job
//	Leased, RedeemRefused, Running, Report,          a claim, or a member of a gang's, that this node has, or had when it was settled
//	  Extended, Result, Published
//	Room, Probed, Announce, Told, Parting, Winning   nodes of this zone where tickets search; a place on a slice that is the node's own
//	Sighted                                          from a provider, of the pool of its name, and nothing else from one
//
// What is of nobody (an ask that has lapsed, a job that is gone) may be said by any node: all it gets is an answer to itself.
type senders Zone

// entitled reports whether a message may be taken in. One that may not is dropped as if it had been lost: nobody is answered, and nothing
// changes.
func (z *senders) entitled(in *protocol.Message) bool {
	by := job.NodeID(in.From.ID)
	if in.From.Role != protocol.Node {
		by = "" // no node's name
	}
	switch in.Kind {
	case protocol.Offer:
		v := in.Body.(*protocol.SliceView)
		return by != "" && v.Node == by && z.sites.Takes(v)
	case protocol.Inventory:
		return by != "" || in.From.Role == protocol.Provider
	case protocol.Granted:
		node, of := z.asked(in.Body.(*protocol.Grant).Ask)
		return by != "" && (node == "" || node == by && of == in.Job)
	case protocol.Refused:
		node, of := z.asked(in.Body.(*protocol.Refusal).Ask)
		return by != "" && (node == "" && z.holds(by, in) || node == by && of == in.Job)
	case protocol.Leased, protocol.RedeemRefused, protocol.Running, protocol.Report, protocol.Extended, protocol.Published:
		return by != "" && z.holds(by, in)
	case protocol.Result:
		return by != "" && in.Body.(*protocol.Conclusion).Result != nil && z.holds(by, in)
	case protocol.Room, protocol.Parting, protocol.Told, protocol.Announce:
		return z.searches(by)
	case protocol.Probed:
		p := in.Body.(*protocol.Response).Place
		return z.searches(by) && (p == nil || z.offers(by, p))
	case protocol.Winning: // where no ticket searches any more a zone only lets its node go
		return by != "" && (z.seek == nil || z.searches(by)) && z.offers(by, &in.Body.(*protocol.Prize).Place)
	case protocol.Sighted:
		return in.From.Role == protocol.Provider && in.From.ID == in.Body.(*supply.Sight).Pool.Name
	default: // what gates, zones, people's agents and the driver say
		return in.From.Role != protocol.Node && in.From.Role != protocol.Provider
	}
}

// asked is the node that an ask or a reservation waits for, and of which job that is; empty if none has this number.
func (z *senders) asked(number uint64) (job.NodeID, job.ID) {
	if node, of := z.home.Claims().Asked(number); node != "" {
		return node, of
	}
	return z.planner.Asked(number)
}

// holds reports whether what a message's token names is a node's, or nobody's.
func (z *senders) holds(by job.NodeID, in *protocol.Message) bool {
	j := z.home.Book().Job(in.Job)
	return j == nil || may(by, home.Holder(j, in.Token))
}

// searches reports whether the zone's tickets search at a node.
func (z *senders) searches(by job.NodeID) bool { return z.seek != nil && z.seek.Ground().Knows(by) }

// offers reports whether a place that a node tells of may be its own.
func (z *senders) offers(by job.NodeID, p *protocol.Place) bool {
	return p.Node == by && may(by, z.sites.Owner(p.Slice.ID))
}

// may reports whether a node may speak of what has this owner: it is the node, or nobody.
func may(by, owner job.NodeID) bool { return owner == "" || owner == by }
