//go:build !s3

package all

import (
	"context"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store"
)

// s3Kind says how to get what this build is without.
func s3Kind() Kind {
	none := func(context.Context, string) (store.Store, error) {
		return nil, errkind.Errorf(errkind.Unsupported,
			"this build has no stores of kind s3: build one that has with `make build TAGS=s3`, or use kind path or local")
	}
	return Kind{Name: "s3", Help: "a bucket, such as s3://bucket/prefix?endpoint=https://minio:9000; only in a build with the tag s3, " +
		"which this one is not", Open: none, Init: none}
}
