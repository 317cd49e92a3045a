package api

import (
	"context"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/status"
)

// Providers lend machines to the head that this daemon is. Safe for concurrent use.
type Providers interface {
	// Providers lists them, by the order of the daemon's file.
	Providers() []status.Provider
	// PauseProvider has one ask for nothing more and give back what waits; why is for people. Errors: NotFound.
	PauseProvider(ctx context.Context, name, why string) error
	// ResumeProvider ends a pause. Errors: NotFound.
	ResumeProvider(ctx context.Context, name string) error
	// TryProvider says what would be asked for now, and whether the host would take it. Errors: NotFound, those of the provider.
	TryProvider(ctx context.Context, name string) (status.Trial, error)
}

// providerHandler turns calls of ProviderService into calls of the daemon's providers.
type providerHandler struct {
	providers Providers // nil: there are none
}

func errNoProviders() error {
	return errkind.Errorf(errkind.NotFound, "this daemon has no providers: the head of a cluster has, by key providers of its file")
}

// maxWhy bounds what people say, in bytes.
const maxWhy = 1000

// ListProviders lists them.
func (h *providerHandler) ListProviders(context.Context, *connect.Request[pb.ListProvidersRequest]) (
	*connect.Response[pb.ListProvidersResponse], error) {
	m := &pb.ListProvidersResponse{}
	if h.providers != nil {
		m.Providers = each(h.providers.Providers(), providerMessage)
	}
	return connect.NewResponse(m), nil
}

// PauseProvider pauses one.
func (h *providerHandler) PauseProvider(ctx context.Context, r *connect.Request[pb.PauseProviderRequest]) (
	*connect.Response[pb.PauseProviderResponse], error) {
	var f fields
	if n := len(r.Msg.GetWhy()); n > maxWhy {
		f.wrong("why", "has %d bytes; at most %d are taken", n, maxWhy)
	}
	err := f.err()
	switch {
	case err != nil:
	case h.providers == nil:
		err = errNoProviders()
	default:
		err = h.providers.PauseProvider(ctx, r.Msg.GetName(), r.Msg.GetWhy())
	}
	return answer(&pb.PauseProviderResponse{}, err)
}

// ResumeProvider ends a pause.
func (h *providerHandler) ResumeProvider(ctx context.Context, r *connect.Request[pb.ResumeProviderRequest]) (
	*connect.Response[pb.ResumeProviderResponse], error) {
	if h.providers == nil {
		return nil, wire(errNoProviders())
	}
	return answer(&pb.ResumeProviderResponse{}, h.providers.ResumeProvider(ctx, r.Msg.GetName()))
}

// TryProvider asks a host what it would do.
func (h *providerHandler) TryProvider(ctx context.Context, r *connect.Request[pb.TryProviderRequest]) (
	*connect.Response[pb.TryProviderResponse], error) {
	if h.providers == nil {
		return nil, wire(errNoProviders())
	}
	t, err := h.providers.TryProvider(ctx, r.Msg.GetName())
	return answer(&pb.TryProviderResponse{Provider: providerMessage(&t.Provider), Length: length(t.Length), Wanted: t.Wanted,
		Taken: t.Taken, Starts: stamp(t.Starts), Why: t.Why, Command: t.Command}, err)
}

func providerMessage(p *status.Provider) *pb.Provider {
	return &pb.Provider{
		Name: p.Name, Kind: p.Kind, Describes: p.Describes, Paused: p.Paused, Silent: p.Silent, Seen: stamp(p.Seen), Blind: p.Blind,
		AtMost: count(p.Most), Lengths: each(p.Lengths, func(d *time.Duration) *durationpb.Duration { return durationpb.New(*d) }),
		Slices: count(p.Slices), Why: p.Why, Decided: stamp(p.Decided), Next: stamp(p.Next),
		Pilots: each(p.Pilots, func(x *status.Pilot) *pb.Pilot {
			return &pb.Pilot{Name: x.Name, State: pb.Value[pb.Pilot_State](x.State), Length: length(x.Length), Id: x.ID,
				Asked: stamp(x.Asked), Started: stamp(x.Started), Joined: stamp(x.Joined), Until: stamp(x.Until),
				Expected: stamp(x.Expected), Idle: stamp(x.Idle), Why: x.Why}
		}),
		Ended: each(p.Ended, func(x *status.Ended) *pb.PilotEnds {
			return &pb.PilotEnds{How: pb.Value[pb.PilotEnding_How](x.How), Count: count(x.Count)}
		}),
		Endings: each(p.Endings, func(x *status.PilotEnd) *pb.PilotEnding {
			return &pb.PilotEnding{Name: x.Name, How: pb.Value[pb.PilotEnding_How](x.How), Why: x.Why, Length: length(x.Length),
				Asked: stamp(x.Asked), Started: stamp(x.Started), Joined: stamp(x.Joined), Ended: stamp(x.Ended)}
		}),
	}
}
