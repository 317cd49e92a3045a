package host

import (
	"context"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/host/gather"
)

// Left is what subjobs on machines that have joined leave. Safe for concurrent use.
type Left struct{ gather *gather.Gatherer }

// Bring returns once what these jobs have committed is where people look for it, or could not be had at the first try, or ctx is done.
func (l Left) Bring(ctx context.Context, names ...job.ID) { l.gather.Bring(ctx, names...) }
