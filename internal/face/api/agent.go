package api

import (
	"context"
	"math"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/host"
)

// AgentKey is the credential of an external job's agent.
func (h *handler) AgentKey(ctx context.Context, r *connect.Request[pb.AgentKeyRequest]) (*connect.Response[pb.AgentKeyResponse], error) {
	var f fields
	name := f.id("job", r.Msg.Job)
	if err := h.mayReadAs(ctx, &f, name); err != nil {
		return nil, wire(err)
	}
	key, err := h.service.AgentKey(ctx, name)
	if err == nil {
		err = h.mayRead(ctx, name) // another user's job could have got the name meanwhile
	}
	if err != nil {
		return nil, wire(err)
	}
	return answer(&pb.AgentKeyResponse{Key: key}, err)
}

// Negotiate is one call of an external job's agent.
func (h *handler) Negotiate(ctx context.Context, r *connect.Request[pb.NegotiateRequest]) (*connect.Response[pb.NegotiateResponse], error) {
	n, err := negotiation(r.Msg)
	if err != nil {
		return nil, wire(err)
	}
	heard, err := h.service.Negotiate(ctx, n)
	if err != nil {
		return nil, wire(err)
	}
	return connect.NewResponse(&pb.NegotiateResponse{
		Session: heard.Session, Events: each(heard.Events, eventMessage), Dropped: heard.Dropped, Notes: heard.Notes, Over: heard.Over,
	}), nil
}

// negotiation checks every field of what an agent sent. Nothing of it is trusted later either: the zone verifies each variant
// against the window and the job.
func negotiation(m *pb.NegotiateRequest) (host.Negotiation, error) {
	var f fields
	n := host.Negotiation{Job: f.id("job", m.Job), Key: m.Key, Session: m.Session, Wait: f.length("wait", m.Wait, host.MaxWait)}
	if m.Session == 0 && m.Key == "" {
		f.wrong("key", "is missing; `sluice agent key %.63s` prints it", m.Job)
	}
	if len(m.Key) > MaxKey {
		f.wrong("key", "has %d bytes; want a key as `sluice agent key` prints it", len(m.Key))
	}
	if m.Session == 0 && len(m.Answers) > 0 {
		f.wrong("answers", "come with session 0, which has heard no round yet; open a session first")
	}
	if len(m.Answers) > MaxAnswers {
		f.wrong("answers", "has %d answers; want at most %d", len(m.Answers), MaxAnswers)
	}
	variants := 0
	for _, a := range m.Answers {
		variants += len(a.GetVariants())
	}
	if variants > MaxVariants {
		f.wrong("answers", "has %d variants; want at most %d in one call", variants, MaxVariants)
	}
	if err := f.err(); err != nil {
		return n, err
	}
	n.Answers = make([]host.Answer, len(m.Answers))
	for i, a := range m.Answers {
		n.Answers[i] = f.answer(i, a)
	}
	return n, f.err()
}

func (f *fields) answer(i int, a *pb.AgentAnswer) host.Answer {
	if a.GetRound() == 0 {
		f.wrong(at("answers", i, "round"), "is missing; the call says it")
	}
	out := host.Answer{Round: a.GetRound(), Variants: make([]protocol.Variant, len(a.GetVariants()))}
	seen := make(map[uint32]bool, len(out.Variants))
	for j, v := range a.GetVariants() {
		where := at("answers", i, at("variants", j, ""))
		out.Variants[j] = f.variant(where, v)
		if seen[v.GetId()] {
			f.wrong(where+"id", "is %d, as that of another variant of this answer; number them", v.GetId())
		}
		seen[v.GetId()] = true
	}
	return out
}

func (f *fields) variant(where string, v *pb.AgentVariant) protocol.Variant {
	out := protocol.Variant{
		ID: v.GetId(), Window: v.GetWindow(), Range: job.Range{From: v.GetRange().GetFrom(), To: v.GetRange().GetTo()},
		Start: f.instant(where+"start", v.GetStart(), 0), Option: v.GetOption(),
		Run: f.length(where+"run", v.GetRun(), config.MaxTime), Wall: f.length(where+"wall", v.GetWall(), config.MaxTime),
	}
	if out.Window == 0 {
		f.wrong(where+"window", "is missing; the call says it")
	}
	// One that names its window and no piece is a signal of interest; wall and memory say what the piece would use, if they are there.
	if v.GetRange() != nil || v.GetStart() != nil || v.GetRun() != nil {
		f.piece(where, v, &out)
	}
	if b := v.GetMemoryBytes(); b < 0 || b > int64(trp.MaxAmount) {
		f.wrong(where+"memory_bytes", "is %d; want 0 to %d", b, int64(trp.MaxAmount))
	} else {
		out.Demand[trp.Memory] = quantity.Amount(b)
	}
	if len(out.Option) > maxOption {
		f.wrong(where+"option", "has %d bytes; want the name of one of the job's options", len(out.Option))
	}
	if s := v.GetScore(); s >= 0 && s <= 1 { // not so for NaN
		out.Score = int64(math.Round(s * score.One))
	} else {
		f.wrong(where+"score", "is %g; want 0 to 1", s)
	}
	return out
}

// piece checks what a proposed subjob must say of itself.
func (f *fields) piece(where string, v *pb.AgentVariant, out *protocol.Variant) {
	if out.Range.From < 0 || out.Range.To <= out.Range.From {
		f.wrong(where+"range", "is [%d, %d); want units of the job, at least one", out.Range.From, out.Range.To)
	}
	if v.GetStart() == nil {
		f.wrong(where+"start", "is missing; want a moment within the window")
	}
	switch {
	case v.GetRun() == nil || out.Run == 0:
		f.wrong(where+"run", "is missing; want the planned time of the work, more than 0s")
	case v.GetWall() == nil:
		out.Wall = out.Run
	case out.Wall < out.Run:
		f.wrong(where+"wall", "is %s, shorter than run, %s; want run with restore and checkpoint", out.Wall, out.Run)
	}
}

func eventMessage(e *host.Event) *pb.AgentEvent {
	if e.Call != nil {
		return &pb.AgentEvent{Event: &pb.AgentEvent_Call{Call: callMessage(e.Call)}}
	}
	return &pb.AgentEvent{Event: &pb.AgentEvent_Told{Told: &pb.AgentNotices{Round: e.Round, Notices: each(e.Notices, noticeMessage)}}}
}

func callMessage(c *protocol.Call) *pb.AgentCall {
	return &pb.AgentCall{
		Round: c.Round, Closes: stamp(c.Closes), Most: count(c.Most), Left: c.Left, First: c.First,
		MemoryScale: c.Memory, Pace: c.Pace, Wanted: c.Wanted.String(),
		Free:    each(c.Free, func(r *job.Range) *pb.Range { return &pb.Range{From: r.From, To: r.To} }),
		Windows: each(c.Windows, advertMessage),
	}
}

func advertMessage(a *protocol.Advert) *pb.Advert {
	return &pb.Advert{
		Window: a.Window, Slice: string(a.Slice), Profile: a.Profile, Speed: a.Speed, MemoryBytes: int64(a.Capacity[trp.Memory]),
		Start: stamp(a.Start), End: stamp(a.End), Open: a.Open,
	}
}

func noticeMessage(n *protocol.Notice) *pb.AgentNotice {
	out := &pb.AgentNotice{
		Kind: pb.Value[pb.AgentNotice_Kind](n.Kind.String()), Window: n.Window, Variant: n.Variant, Text: n.Text,
		Score: share(n.Score), Clearing: share(n.Clearing),
		Subjob: token(n.Token), Range: span(n.Range), Ran: length(n.Ran), PeakMemoryBytes: int64(n.Peak[trp.Memory]),
	}
	if n.Kind == protocol.Concluded {
		out.Outcome = pb.Value[pb.Subjob_Outcome](n.Outcome.String())
	}
	return out
}
