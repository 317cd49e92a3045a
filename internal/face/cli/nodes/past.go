package nodes

import (
	"context"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/picture"
	"sluice.dev/sluice/internal/face/cli/session"
)

// Past is by which mechanism the daemon sells, and all that it remembers of its slices.
func Past(ctx context.Context, a *session.Session) (mechanism string, past status.History, err error) {
	c, err := a.Client()
	if err != nil {
		return "", past, err
	}
	about, err := c.About(ctx, connect.NewRequest(&pb.AboutRequest{}))
	if err != nil {
		return "", past, err
	}
	m, err := c.History(ctx, connect.NewRequest(&pb.HistoryRequest{}))
	if err != nil {
		return "", past, err
	}
	past, err = picture.FromWire(m.Msg)
	return about.Msg.GetAbout().GetMechanism(), past, err
}
