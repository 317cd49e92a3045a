package membership

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/edge/authority"
)

// SetStay tells the head that the machine belongs to its cluster for another time than it has said before. Errors: those of a call.
func (m *Membership) SetStay(ctx context.Context, s Stay) error {
	m.mu.Lock()
	m.options.Stay = &s
	m.mu.Unlock()
	_, _, err := m.asked(ctx)
	return err
}

// Leave takes this machine out of its cluster for good. It may be called again if the answer was lost. Errors: Unavailable.
func (m *Membership) Leave(ctx context.Context) error {
	err := m.ask(ctx, func(ctx context.Context, c sluicev1alpha1connect.ClusterServiceClient) error {
		_, err := c.Leave(ctx, connect.NewRequest(&pb.LeaveRequest{}))
		return err
	})
	if err != nil && !errors.Is(err, authority.ErrRemoved) {
		return fmt.Errorf("tell the head that machine %s leaves: %w", m.Name(), err)
	}
	return nil
}
