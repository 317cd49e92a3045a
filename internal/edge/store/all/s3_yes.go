//go:build s3

package all

import (
	"context"

	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/s3"
)

func s3Kind() Kind {
	open := func(ctx context.Context, spec string) (store.Store, error) {
		o, err := s3.Parse(spec)
		if err != nil {
			return nil, err
		}
		return as(s3.Open(ctx, o))
	}
	later := func(spec string) (store.Store, error) {
		o, err := s3.Parse(spec)
		if err != nil {
			return nil, err
		}
		return as(s3.New(o))
	}
	return Kind{Name: s3.Name, Later: later, Help: "a bucket, such as s3://bucket/prefix?endpoint=https://minio:9000, with the keys of " +
		"the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) or of ~/.aws/credentials", Open: open, Init: open}
}
