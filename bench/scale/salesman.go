package main

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// salesman stands in for the zone where a node is measured alone: it sells whatever is offered at once, to one job after the
// other, and commits what comes back. Its own facts serve to count.
type salesman struct {
	specs []job.Spec
	draw  prng.Stream
	asks  uint64
	sites map[job.SliceID]*site
}

// The subjobs of a salesman.
const shortest, longest = 5 * time.Minute, 45 * time.Minute

// site is a slice as the salesman knows it.
type site struct {
	view  *protocol.SliceView
	taken bool
	spec  *job.Spec
}

// Step implements protocol.Actor.
func (z *salesman) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	say := func(m protocol.Message) {
		m.To, m.Epoch, m.Generation = in.From, 1, 1
		out.Effects = append(out.Effects, m)
	}
	slice := sliceOf(&in)
	s := z.sites[slice]
	if s == nil {
		s = &site{}
		z.sites[slice] = s
	}
	switch in.Kind {
	case protocol.Offer:
		s.view = in.Body.(*protocol.SliceView)
	case protocol.Granted:
		g := in.Body.(*protocol.Grant)
		wall := g.End.Sub(g.Start)
		z.asks++
		out.Facts = append(out.Facts, protocol.Fact{Kind: protocol.Claimed, Body: &protocol.Sale{}})
		say(protocol.Message{
			Kind: protocol.Redeem, Token: in.Token, Job: in.Job,
			Body: &protocol.Work{Placement: protocol.Placement{Slice: slice, Range: job.Range{From: 0, To: s.spec.Total}, Start: g.Start,
				End: g.End, Demand: trp.Vector{4 << 30}, Plan: protocol.Plan{Run: wall, Wall: wall - 10*time.Second}}, Spec: s.spec},
		})
	case protocol.Refused, protocol.RedeemRefused:
		s.taken = false
	case protocol.Result:
		end := in.Body.(*protocol.Conclusion)
		s.taken = false
		say(protocol.Message{Kind: protocol.ResultAck, Token: in.Token, Job: in.Job,
			Body: &protocol.Acknowledgement{Range: job.Range{From: end.Range.From, To: end.Result.Progress}}})
	}
	if v := s.view; v != nil && !s.taken && v.Usable && len(v.Gaps) > 0 && v.Gaps[0].Start <= now && v.Gaps[0].End > now.Add(longest) {
		s.taken = true
		z.asks++
		s.spec = specOf(z.specs, z.draw.IntN(shapes), jobName("sale", int(z.asks)))
		say(protocol.Message{
			Kind: protocol.Ask, Body: &protocol.Asking{Ask: z.asks, Placement: protocol.Placement{Slice: slice, Start: now,
				End: now.Add(shortest + time.Duration(z.draw.IntN(int(longest-shortest)))), Demand: trp.Vector{4 << 30}}}, Job: s.spec.Name,
		})
	}
}

// sliceOf is the slice that a node speaks of.
func sliceOf(m *protocol.Message) job.SliceID {
	switch b := m.Body.(type) {
	case *protocol.SliceView:
		return b.Slice.ID
	case *protocol.Grant:
		return b.Slice
	case *protocol.Refusal:
		return b.Slice
	case *protocol.Holding:
		return b.Slice
	case *protocol.Beginning:
		return b.Slice
	case *protocol.Observation:
		return b.Slice
	case *protocol.Conclusion:
		return b.Slice
	case *protocol.Extension:
		return b.Slice
	}
	return ""
}

// Apply implements protocol.Actor.
func (z *salesman) Apply(protocol.Fact) {}

// Recover implements protocol.Actor.
func (z *salesman) Recover(quantity.Instant, *protocol.Out) {}

// Digest implements protocol.Actor.
func (z *salesman) Digest() uint64 { return 0 }
