package view

import (
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/timeline"
)

// Offered lists the slices that nodes have offered, by capacity, then id: what is claimed there, and what their nodes told last. Of a node
// in another process nobody here knows more.
func (v *View) Offered(now quantity.Instant) []status.Slice {
	out := make([]status.Slice, 0, len(v.floor.Slices()))
	for _, sl := range v.floor.Slices() {
		s := offered(now, v.slices.Seen(sl))
		if holder, end := v.slices.Holder(now, sl); holder != "" && s.State != "unconfirmed" {
			s.State, s.Reason, s.Job, s.Until = "running", "", holder, end
		}
		out = append(out, s)
	}
	return out
}

// Sold is until when the last claim on a node's slices lasts; 0: none stands.
func (v *View) Sold(node job.NodeID) (until quantity.Instant) {
	for _, j := range v.home.Book().Busy() {
		for i := range j.Claims() {
			c := &j.Claims()[i]
			if c.Node == node || slices.ContainsFunc(c.Members, func(m protocol.Member) bool { return m.Node == node }) {
				until = max(until, c.End)
			}
		}
	}
	return until
}

// offered says what a slice is doing by its node's view.
func offered(now quantity.Instant, told *protocol.SliceView) status.Slice {
	s := status.Slice{Slice: told.Slice, Node: told.Node, State: "idle", Reservations: told.Reserved}
	for i := range told.Reserved {
		r := &told.Reserved[i]
		if _, hit := timeline.Overlap(r, now, now+1); hit && s.State == "idle" {
			s.State, s.Reason = "reserved", timeline.Describe(r)
		}
	}
	if !told.Usable {
		s.State, s.Reason = "unconfirmed", told.Why
	}
	return s
}
