//go:build !kubernetes

package kubernetes

import (
	"context"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/live"
)

// Open says that this build has no Kubernetes in it.
func Open(context.Context, Options) (live.Source, error) {
	return nil, errkind.Errorf(errkind.Invalid, "--kubernetes: this build has no Kubernetes in it: `make build "+
		"TAGS=\"s3 kubernetes\"` makes one that has; a record is answered without it (sluice forecast DIR)")
}
