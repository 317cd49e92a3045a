package node

import (
	"slices"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// A slice is quarantined while processes live on it that should be gone. That lifts itself when the executor says that the last of them is,
// or at a boot that does not find them any more; a person may lift it earlier.

// stuck: processes of a subjob remain that can't be ended.
func (n *Node) stuck(now quantity.Instant, in *protocol.Message, r *protocol.Reason, out *protocol.Out) {
	l := n.lease(in.Token)
	if l == nil || l.stuck() || !l.issued() || l.vacated() {
		return
	}
	why := remaining(l)
	if r.Text != "" {
		why += ": " + r.Text
	}
	n.strand(now, l, why, out)
	n.outstanding(now, l, out)
}

// strand quarantines every slice of a lease whose processes can't be ended. The lease stands until they are gone or a person releases the
// slice.
func (n *Node) strand(now quantity.Instant, l *lease, why string, out *protocol.Out) {
	n.each(l.slice, l.also, func(s *slice) { n.quarantine(now, s, l.token, why, out) })
}

// quarantine takes a slice off the market because processes of a subjob are there. What was sold there and has not begun is withdrawn;
// holds lapse by themselves and are not redeemed until then.
func (n *Node) quarantine(now quantity.Instant, s *slice, t job.Token, why string, out *protocol.Out) {
	if s.quarantined && s.holder == t { // a restart finds it again
		return
	}
	n.fact(out, protocol.Fact{Kind: protocol.Quarantined, Slice: s.id, Token: t, Text: why, At: now})
	n.withdraw(now, s, "withdrawn: "+string(s.id)+" was quarantined: "+why, out)
}

// remaining is why a slice is quarantined on which a lease's processes can't be ended.
func remaining(l *lease) string {
	return "processes of subjob " + l.token.String() + " of job " + string(l.job) + " remain"
}

// strayed is why a slice is quarantined on which a subjob runs without a lease.
func strayed(t job.Token) string {
	return "subjob " + t.String() + " runs there and no lease stands for it"
}

// remain says whether processes of a subjob may be there still.
func (n *Node) remain(t job.Token) bool {
	l := n.lease(t)
	return l != nil && !l.vacated() || slices.ContainsFunc(n.strays, func(s stray) bool { return s.token == t })
}

// cleared lifts the quarantine of every slice that had a subjob's processes for its reason: the last of them is gone.
func (n *Node) cleared(now quantity.Instant, t job.Token, out *protocol.Out) {
	if n.barred == 0 {
		return
	}
	for _, s := range n.slices {
		if s.holder == t {
			n.lift(now, s, out)
		}
	}
}

// lift ends the quarantine of a slice whose reason is gone, unless another subjob's processes are there.
func (n *Node) lift(now quantity.Instant, s *slice, out *protocol.Out) {
	if s.holder.Zero() {
		return
	}
	for _, t := range n.strays {
		if t.slice == s.id {
			n.quarantine(now, s, t.token, strayed(t.token), out)
			return
		}
	}
	for _, l := range n.leasesOn(s) {
		if l.stuck() {
			n.quarantine(now, s, l.token, remaining(l), out)
			return
		}
	}
	n.fact(out, protocol.Fact{Kind: protocol.QuarantineLifted, Slice: s.id})
}

// barred is why nothing is sold on a quarantined slice, for people.
func (s *slice) barred() string {
	why := s.quarantine
	if s.barredAt != 0 {
		why += ", since " + clock(s.barredAt)
	}
	if !s.holder.Zero() {
		why += "; it is sold again once they are gone"
	}
	return why
}

// release lifts a quarantine after a person has looked. A subjob that was stuck there counts as gone from then on.
func (n *Node) release(now quantity.Instant, c *protocol.Clearance, out *protocol.Out) (string, error) {
	s := n.slice(c.Slice)
	if c.Slice == "" || s == nil || !s.known && !s.quarantined && s.fault == nil {
		_, err := n.targets(c.Slice)
		if err == nil {
			err = errkind.Errorf(errkind.Invalid, "name one slice")
		}
		return "", errkind.Errorf(errkind.Of(err), "release: %w", err)
	}
	if !s.quarantined && s.fault == nil {
		return string(s.id) + " is not quarantined, nothing changed", nil
	}
	n.waive(s, out)
	if !s.quarantined {
		return string(s.id) + " is released", nil
	}
	for _, l := range n.leasesOn(s) {
		if l.stuck() {
			n.end(now, l, ownResult(now, l, job.Lost, "its processes could not be ended; a person released "+string(s.id)), false, out)
		}
	}
	n.fact(out, protocol.Fact{Kind: protocol.QuarantineLifted, Slice: s.id})
	return string(s.id) + " is unquarantined", nil
}
