package host

import (
	"context"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Member is a running daemon of a machine that has joined a cluster: its nodes, whose gate and zones are at the cluster's head
// (docs/adr/0065-links.md). It answers for its slices and for nothing else: jobs are the head's. Make it with OpenMember, drive it with
// Run; every other method is safe for concurrent use, and says what that of Host does.
type Member struct {
	host *Host
	// Departure is for a machine that is gone for good one day.
	Departure Departure
}

// OpenMember is Open of nodes alone, which reach their gate and zones by Options.Fabric.
func OpenMember(ctx context.Context, o Options) (*Member, error) {
	h, err := open(ctx, o, true)
	if err != nil {
		return nil, err
	}
	return &Member{h, Departure{h.daemon}}, nil
}

// Run is Host.Run.
func (m *Member) Run(ctx context.Context) error { return m.host.Run(ctx) }

// Close is Host.Close.
func (m *Member) Close() error { return m.host.Close() }

// Monitor see Host.Monitor.
func (m *Member) Monitor() Monitor { return m.host.Monitor() }

// About is Host.About.
func (m *Member) About(ctx context.Context) (status.About, error) { return m.host.About(ctx) }

// Slices is Host.Slices.
func (m *Member) Slices(ctx context.Context) ([]status.Slice, error) { return m.host.Slices(ctx) }

// Wishes is Host.Wishes.
func (m *Member) Wishes(ctx context.Context) ([]status.Wish, error) { return m.host.Wishes(ctx) }

// Airlocks is Host.Airlocks.
func (m *Member) Airlocks(ctx context.Context) ([]status.Airlock, error) { return m.host.Airlocks(ctx) }

// History is Host.History.
func (m *Member) History(ctx context.Context, since quantity.Instant) (status.History, error) {
	return m.host.History(ctx, since)
}

// Cuts is Host.Cuts. What a cut would cost is known at the head alone.
func (m *Member) Cuts(ctx context.Context, r protocol.Reservation) ([]status.Cut, error) {
	return m.host.Cuts(ctx, r)
}

// Reserve is Host.Reserve.
func (m *Member) Reserve(ctx context.Context, request string, r protocol.Reservation) ([]protocol.Made, error) {
	return m.host.Reserve(ctx, request, r)
}

// Unreserve is Host.Unreserve.
func (m *Member) Unreserve(ctx context.Context, request string, id uint64) error {
	return m.host.Unreserve(ctx, request, id)
}

// Release is Host.Release.
func (m *Member) Release(ctx context.Context, request string, slice job.SliceID) (said string, err error) {
	return m.host.Release(ctx, request, slice)
}
