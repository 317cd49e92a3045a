package api

import (
	"context"
	"math"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/config"
)

// ListSlices lists all slices with what stands on them.
func (h *handler) ListSlices(ctx context.Context, _ *connect.Request[pb.ListSlicesRequest]) (*connect.Response[pb.ListSlicesResponse],
	error) {
	list, err := h.service.Slices(ctx)
	if err != nil {
		return nil, wire(err)
	}
	wishes, err := h.service.Wishes(ctx)
	now := quantity.At(h.now())
	return answer(&pb.ListSlicesResponse{
		Slices: each(list, func(s *status.Slice) *pb.Slice { return sliceMessage(s, now) }), Wishes: each(wishes, wishMessage),
	}, err)
}

// ListWindows lists the advertised gaps.
func (h *handler) ListWindows(ctx context.Context, _ *connect.Request[pb.ListWindowsRequest]) (*connect.Response[pb.ListWindowsResponse],
	error) {
	list, err := h.service.Windows(ctx)
	return answer(&pb.ListWindowsResponse{Windows: each(list, windowMessage)}, err)
}

// ListQueues lists the queues with their use.
func (h *handler) ListQueues(ctx context.Context, _ *connect.Request[pb.ListQueuesRequest]) (*connect.Response[pb.ListQueuesResponse],
	error) {
	list, err := h.service.Queues(ctx)
	return answer(&pb.ListQueuesResponse{Queues: each(list, queueMessage)}, err)
}

// ListZones lists the zones with what they have.
func (h *handler) ListZones(ctx context.Context, _ *connect.Request[pb.ListZonesRequest]) (*connect.Response[pb.ListZonesResponse], error) {
	list, err := h.service.Zones(ctx)
	return answer(&pb.ListZonesResponse{Zones: each(list, zoneMessage)}, err)
}

// ListAirlocks lists each node's view of its host's memory.
func (h *handler) ListAirlocks(ctx context.Context, _ *connect.Request[pb.ListAirlocksRequest]) (*connect.Response[pb.ListAirlocksResponse],
	error) {
	list, err := h.service.Airlocks(ctx)
	return answer(&pb.ListAirlocksResponse{Airlocks: each(list, airlockMessage)}, err)
}

// DrainZone gives a zone's jobs to the others.
func (h *handler) DrainZone(ctx context.Context, r *connect.Request[pb.DrainZoneRequest]) (*connect.Response[pb.DrainZoneResponse], error) {
	var f fields
	id, name := f.request(r.Msg.RequestId), f.label("name", r.Msg.Name)
	if err := f.err(); err != nil {
		return nil, wire(err)
	}
	return answer(&pb.DrainZoneResponse{}, h.service.DrainZone(ctx, id, job.ZoneID(name)))
}

// SetQueue creates or changes a queue.
func (h *handler) SetQueue(ctx context.Context, r *connect.Request[pb.SetQueueRequest]) (*connect.Response[pb.SetQueueResponse], error) {
	q := r.Msg.GetQueue()
	var f fields
	id := f.request(r.Msg.RequestId)
	set := protocol.Queue{
		Name: f.label("queue.name", q.GetName()), Weight: max(q.GetWeight(), 1), Cap: int(q.GetCap()), MaxJobs: int(q.GetMaxJobs()),
		MaxWindow: f.length("queue.max_window", q.GetMaxWindow(), config.MaxTime), User: q.GetUser(),
	}
	if q.GetWeight() < 0 || q.GetWeight() > config.MaxPriority {
		f.wrong("queue.weight", "is %d; want 0 (which means 1) to %d", q.GetWeight(), config.MaxPriority)
	}
	for field, n := range map[string]int32{"queue.cap": q.GetCap(), "queue.max_jobs": q.GetMaxJobs()} {
		if n < 0 {
			f.wrong(field, "is %d; want 0 for none, or more", n)
		}
	}
	if len(set.User) > 32 {
		f.wrong("queue.user", "is %.80q; want the name of an account, at most 32 letters", set.User)
	}
	if err := f.err(); err != nil {
		return nil, wire(err)
	}
	if err := h.mayMap(ctx, &set); err != nil {
		return nil, wire(err)
	}
	return answer(&pb.SetQueueResponse{}, h.service.SetQueue(ctx, id, set))
}

// Reserve takes time off the market.
func (h *handler) Reserve(ctx context.Context, r *connect.Request[pb.ReserveRequest]) (*connect.Response[pb.ReserveResponse], error) {
	m := r.Msg
	var f fields
	id := f.request(m.RequestId)
	now := h.now()
	res := protocol.Reservation{
		Kind: f.reservation(m.Kind), Slice: f.slice(m.Slice, true),
		Start: f.instant("start", m.Start, quantity.At(now)), End: f.instant("end", m.End, quantity.Never),
		Every: f.length("every", m.Every, math.MaxInt64), Source: m.Source, Truncate: m.Truncate,
	}
	if res.End <= res.Start {
		f.wrong("end", "is not after start")
	}
	if len(m.Source) > 200 {
		f.wrong("source", "has %d bytes; want at most 200", len(m.Source))
	}
	f.repeats(m, &res, now)
	if err := f.err(); err != nil {
		return nil, wire(err)
	}
	if m.DryRun {
		return h.preview(ctx, res)
	}
	made, err := h.service.Reserve(ctx, id, res)
	out := &pb.ReserveResponse{}
	told := map[uint64]bool{}
	for i := range made {
		res.ID, res.Slice = made[i].ID, made[i].Slice
		out.Ids, out.Reservations = append(out.Ids, res.ID), append(out.Reservations, reservationMessage(&res, quantity.At(now)))
		if made[i].Stood {
			out.Stood = append(out.Stood, made[i].ID)
		}
		for j := range made[i].Overlaps {
			if o := &made[i].Overlaps[j]; !told[o.ID] {
				told[o.ID] = true
				out.Overlaps = append(out.Overlaps, reservationMessage(o, quantity.At(now)))
			}
		}
	}
	return answer(out, err)
}

// preview says what a reservation would cost.
func (h *handler) preview(ctx context.Context, r protocol.Reservation) (*connect.Response[pb.ReserveResponse], error) {
	cuts, err := h.service.Cuts(ctx, r)
	if !r.Truncate {
		cuts = nil // it waits behind them
	}
	return answer(&pb.ReserveResponse{Cuts: each(cuts, cutMessage)}, err)
}

// Unreserve gives reserved time back.
func (h *handler) Unreserve(ctx context.Context, r *connect.Request[pb.UnreserveRequest]) (*connect.Response[pb.UnreserveResponse], error) {
	var f fields
	id := f.request(r.Msg.RequestId)
	if r.Msg.Id == 0 {
		f.wrong("id", "is missing; ListSlices shows the reservations with their ids")
	}
	if err := f.err(); err != nil {
		return nil, wire(err)
	}
	return answer(&pb.UnreserveResponse{}, h.service.Unreserve(ctx, id, r.Msg.Id))
}

// Release lifts a quarantine.
func (h *handler) Release(ctx context.Context, r *connect.Request[pb.ReleaseRequest]) (*connect.Response[pb.ReleaseResponse], error) {
	var f fields
	id, slice := f.request(r.Msg.RequestId), f.slice(r.Msg.Slice, false)
	if err := f.err(); err != nil {
		return nil, wire(err)
	}
	said, err := h.service.Release(ctx, id, slice)
	return answer(&pb.ReleaseResponse{Text: said}, err)
}

// ListOutputs lists committed output in order of progress.
func (h *handler) ListOutputs(ctx context.Context, r *connect.Request[pb.ListOutputsRequest]) (*connect.Response[pb.ListOutputsResponse],
	error) {
	var f fields
	name := h.job(ctx, &f, "name", r.Msg.Name)
	if err := f.err(); err != nil {
		return nil, wire(err)
	}
	if err := h.mayRead(ctx, name); err != nil {
		return nil, wire(err)
	}
	list, err := h.service.Outputs(ctx, name)
	if err == nil {
		err = h.mayRead(ctx, name) // another user's job could have got the name meanwhile
	}
	if err != nil {
		return nil, wire(err)
	}
	return answer(&pb.ListOutputsResponse{Outputs: each(list, outputMessage)}, err)
}

// History is what each slice did.
func (h *handler) History(ctx context.Context, r *connect.Request[pb.HistoryRequest]) (*connect.Response[pb.HistoryResponse], error) {
	var f fields
	since := f.instant("since", r.Msg.Since, 0)
	if err := f.err(); err != nil {
		return nil, wire(err)
	}
	past, err := h.service.History(ctx, since)
	return answer(&pb.HistoryResponse{From: stamp(past.From), To: stamp(past.To), Slices: each(past.Slices, sliceHistoryMessage)}, err)
}

// About describes the daemon.
func (h *handler) About(ctx context.Context, _ *connect.Request[pb.AboutRequest]) (*connect.Response[pb.AboutResponse], error) {
	a, err := h.service.About(ctx)
	return answer(&pb.AboutResponse{About: aboutMessage(&a)}, err)
}
