package flow

import (
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Node is what one node has of fragments: free, granted (held for a token that lapses), or leased. It is 64 bytes, a line of cache, since
// there may be many. A node that starts again is a new Node of the next epoch, whose fragments are granted again only once what ran there
// is gone.
type Node struct {
	// Free and Leased fragments by class: with those held for grants all that there are.
	Free, Leased Fragments
	// version counts its changes, seq is the sequence of its last token.
	version, seq uint64
	// grants in the order that they lapse.
	grants []Grant
	// Epoch is the node's boot count, Pressure on its memory in parts per thousand, as last measured.
	Epoch    uint32
	Pressure uint16
}

// Grant is a node's short hold of one fragment for one ticket.
type Grant struct {
	Seq    uint64
	Ticket TicketID
	// Expiry by the node's clock.
	Expiry quantity.Instant
	// Home and Epoch of the ticket, and Fragment, the class of the held slice.
	Epoch    uint32
	Home     ZoneID
	Fragment Class
}

// NewNode is a node of some free fragments. grants is room for its holds, nil for its own: a flat array of many nodes gives each a part of
// one.
func NewNode(epoch uint32, free Fragments, grants []Grant) Node {
	return Node{Free: free, Epoch: epoch, version: uint64(epoch) << 32, grants: grants[:0]}
}

// Summary is what the node says of itself. It is free of nothing while it is under high pressure.
func (n *Node) Summary(cfg *Config) Summary {
	s := Summary{Version: n.version, Pressure: n.Pressure, Usable: true}
	if int(n.Pressure) < cfg.HighPressure {
		s.Free = n.Free
	}
	return s
}

// Lapse releases holds that were not redeemed in time.
func (n *Node) Lapse(now quantity.Instant) {
	k := 0
	for k < len(n.grants) && n.grants[k].Expiry <= now {
		n.Free[n.grants[k].Fragment]++
		n.version++
		k++
	}
	if k > 0 {
		n.grants = slices.Delete(n.grants, 0, k)
	}
}

// Redeem turns a grant into a lease, once: false if the token is of another boot, has lapsed or was redeemed.
func (n *Node) Redeem(now quantity.Instant, token job.Token) (Grant, bool) {
	n.Lapse(now)
	for i := range n.grants {
		if g := n.grants[i]; g.Seq == token.Seq && n.Epoch == token.Epoch {
			n.grants = slices.Delete(n.grants, i, i+1)
			n.Leased[g.Fragment]++
			n.version++
			return g, true
		}
	}
	return Grant{}, false
}

// Release gives back a fragment of a class that was leased or taken; false if none is.
func (n *Node) Release(fragment Class) bool { return n.move(&n.Leased, &n.Free, fragment) }

// Take leases a fragment of exactly that class to other work than tickets (a gang); false if none is free.
func (n *Node) Take(fragment Class) bool { return n.move(&n.Free, &n.Leased, fragment) }

// Held is the fragments of these.
func (n *Node) Held() (f Fragments) {
	for i := range n.grants {
		f[n.grants[i].Fragment]++
	}
	return f
}

func (n *Node) move(from, to *Fragments, c Class) bool {
	if int(c) >= MaxClasses || from[c] == 0 {
		return false
	}
	from[c]--
	to[c]++
	n.version++
	return true
}

// Answer is what a node says to a probe.
type Answer struct {
	Ticket TicketID
	// Granted with a Token that lapses at Expiry, and the class of the fragment that is held; else refused.
	Granted  bool
	Fragment Class
	Token    job.Token
	Expiry   quantity.Instant
}

// Arbiter decides for a node which of the probes that lie there land. It has scratch alone, so one serves any number of nodes in turn. Not
// safe for concurrent use.
type Arbiter struct {
	cfg   *Config
	keys  []key
	order []int
}

// NewArbiter decides by a valid configuration.
func NewArbiter(cfg *Config) *Arbiter { return &Arbiter{cfg: cfg} }

// Decide answers the probes that lie at a node at one instant, in one decision: in the order of their utility each gets the smallest free
// fragment that serves it, while there is one. The answers are appended to out, in the order of the probes, and do not depend on
// that order. Nothing is granted under high pressure. A ticket whose grant stands already is given the same again: its probe was doubled,
// or the answer was lost. A ticket of a later epoch of its home is another one.
func (a *Arbiter) Decide(now quantity.Instant, n *Node, probes []Probe, out []Answer) []Answer {
	n.Lapse(now)
	if len(probes) == 1 { // as nearly always, and there is nothing to order
		return append(out, a.answer(now, n, &probes[0]))
	}
	first := len(out)
	out = slices.Grow(out, len(probes))[:first+len(probes)]
	for _, i := range a.Order(now, &n.Free, probes) {
		out[first+i] = a.answer(now, n, &probes[i])
	}
	return out
}

// Order is the indices of probes in the order in which a node with some free fragments serves them: by utility, ties by ticket. What it
// returns is overwritten by the next call. Fit is that to the smallest fragment which serves a probe before any of them lands, so the
// order stays while it is gone through; a probe that nothing serves has none.
func (a *Arbiter) Order(now quantity.Instant, free *Fragments, probes []Probe) []int {
	a.keys = a.keys[:0]
	for i := range probes {
		fragment, ok := free.Fit(probes[i].Class)
		a.keys = append(a.keys, keyOf(a.cfg.utility(now, &probes[i], fragment, ok), probes[i].Ticket))
	}
	a.order = orderOf(a.keys, probes, a.order)
	return a.order
}

// answer answers one probe from what is free now.
func (a *Arbiter) answer(now quantity.Instant, n *Node, p *Probe) Answer {
	g := n.standing(p)
	if g == nil {
		fragment, ok := n.Free.Fit(p.Class)
		if !ok || int(n.Pressure) >= a.cfg.HighPressure {
			return Answer{Ticket: p.Ticket}
		}
		n.seq++
		n.version++
		n.Free[fragment]--
		n.grants = append(n.grants, Grant{Seq: n.seq, Ticket: p.Ticket, Expiry: now.Add(a.cfg.GrantTTL), Epoch: p.Epoch, Home: p.Home,
			Fragment: fragment})
		g = &n.grants[len(n.grants)-1]
	}
	return Answer{Ticket: p.Ticket, Granted: true, Fragment: g.Fragment, Token: job.Token{Epoch: n.Epoch, Seq: g.Seq}, Expiry: g.Expiry}
}

// standing is the grant that stands for the ticket of a probe, nil if there is none.
func (n *Node) standing(p *Probe) *Grant {
	for i := range n.grants {
		if g := &n.grants[i]; g.Ticket == p.Ticket && g.Epoch == p.Epoch && g.Home == p.Home {
			return g
		}
	}
	return nil
}
